//! The identity of a socket's caller, and the check of its validity.

use std::sync::Arc;
use std::time::Duration;

use super::handshake::Credentials;
use tidegate_http::app::App;
use tidegate_http::authenticate::{self, Caller, User};
use tidegate_http::error::ApiError;
use tidegate_sql::RoleUse;

pub(super) struct CallerIdentity {
    pub caller: Caller,
    /// The user of the caller's token; `None` for an anonymous caller. It is needed for later
    /// checks, because the session of the token may end before the token expires.
    user: Option<User>,
}

impl CallerIdentity {
    /// Validates a token. Returns the identity, and the remaining lifetime of the token.
    pub(super) async fn by_token(
        app: &App,
        token: &str,
        credentials: &Credentials,
    ) -> Result<(Self, Duration), ApiError> {
        let database = || Ok(credentials.database.as_deref());
        let user = authenticate::by_token(app, token, database).await?;
        let left = app.issuer().remaining(&user.claims);
        let identity = Self {
            caller: Caller::from(user.clone()),
            user: Some(user),
        };
        Ok((identity, left))
    }

    /// The identity of a caller without a token, who runs as the default user.
    pub(super) async fn anonymous(app: &App, credentials: &Credentials) -> Result<Self, ApiError> {
        let database = credentials.database.as_deref();
        Ok(Self {
            caller: authenticate::anonymous(app, database).await?,
            user: None,
        })
    }

    /// Whether both identities have the same scopes, database and role. Members of a group must
    /// also be the same member with the same claims.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let role = |identity: &Self| {
            let login = identity.caller.login()?;
            let member = match &login.role_use {
                RoleUse::Member(member) => Some(Arc::clone(member)),
                _ => None,
            };
            Some((login.database.clone(), login.role.clone(), member))
        };
        role(self) == role(other) && self.caller.scopes == other.caller.scopes
    }

    /// Fails if the token is no longer valid. An anonymous identity is always valid.
    pub(super) async fn check(&self, app: &App) -> Result<(), ApiError> {
        match &self.user {
            Some(user) => authenticate::recheck(app, user).await,
            None => Ok(()),
        }
    }
}
