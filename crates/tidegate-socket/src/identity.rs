//! Who asks on a socket, and for how long.

use std::time::Duration;

use super::handshake::Credentials;
use tidegate_http::app::App;
use tidegate_http::authenticate::{self, Caller};
use tidegate_http::error::Failure;

/// Who asks, once that is known.
pub(super) struct Identity {
    pub caller: Caller,
    /// Kept to look at it again: its session may end before it expires. Never logged.
    token: Option<String>,
}

impl Identity {
    /// Who shows this token, and how long it is good.
    pub(super) fn by_token(app: &App, token: &str) -> Result<(Self, Duration), Failure> {
        let user = authenticate::by_token(app, token)?;
        let left = app.issuer().remaining(&user.claims);
        let identity = Self {
            caller: Caller::from(user),
            token: Some(token.to_owned()),
        };
        Ok((identity, left))
    }

    /// Who shows none.
    pub(super) async fn anonymous(app: &App, credentials: &Credentials) -> Result<Self, Failure> {
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

    /// Looks at the token again. Costs no I/O.
    pub(super) fn check(&self, app: &App) -> Result<(), Failure> {
        match &self.token {
            Some(token) => authenticate::by_token(app, token).map(|_| ()),
            None => Ok(()),
        }
    }
}
