//! The identity of a socket's caller, and how long it is valid.

use std::time::Duration;

use super::handshake::Credentials;
use tidegate_http::app::App;
use tidegate_http::authenticate::{self, Caller};
use tidegate_http::error::ApiError;

/// The identity of the caller.
pub(super) struct CallerIdentity {
    pub caller: Caller,
    /// Kept to check it again, because its session may end before it expires. Never logged.
    token: Option<String>,
}

impl CallerIdentity {
    /// The identity of a token, and its remaining lifetime.
    pub(super) fn by_token(app: &App, token: &str) -> Result<(Self, Duration), ApiError> {
        let user = authenticate::by_token(app, token)?;
        let left = app.issuer().remaining(&user.claims);
        let identity = Self {
            caller: Caller::from(user),
            token: Some(token.to_owned()),
        };
        Ok((identity, left))
    }

    /// The identity of a caller without a token.
    pub(super) async fn anonymous(app: &App, credentials: &Credentials) -> Result<Self, ApiError> {
        let database = credentials.database.as_deref();
        Ok(Self {
            caller: authenticate::anonymous(app, database).await?,
            token: None,
        })
    }

    /// Whether both run as the same role.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let role = |identity: &Self| {
            let login = identity.caller.login();
            login.map(|login| (login.database.clone(), login.role.clone()))
        };
        role(self) == role(other)
    }

    /// Checks the token again. Needs no I/O.
    pub(super) fn check(&self, app: &App) -> Result<(), ApiError> {
        match &self.token {
            Some(token) => authenticate::by_token(app, token).map(|_| ()),
            None => Ok(()),
        }
    }
}
