//! Routes for statements of members.

use std::sync::Arc;

use tidegate_sql::{Error, Login, Member, Result, RoleUse};
use tidegate_wire::outage;

use super::claims_key_cache::KeyLookup;
use super::route::Route;
use super::user_executor::UserExecutor;
use crate::claims_key::ClaimsKey;
use crate::statement::is_refused_seal;

impl UserExecutor {
    /// The route for a connection that logged in as the caller's role. For a member, the connection
    /// logged in as the role of the member's group.
    pub(super) async fn own_route(&self, login: &Login) -> Result<Route> {
        match &login.role_use {
            RoleUse::Member(member) => self.member_route(login, member, false).await,
            _ => Ok(Route::own(login)),
        }
    }

    /// The route of a connection that logged in as the group of a member; see [`Route::member`].
    pub(super) async fn member_route(
        &self,
        login: &Login,
        member: &Arc<Member>,
        shares: bool,
    ) -> Result<Route> {
        let key = self.key_of(login)?.get(None).await?;
        Ok(Route::member(login, shares, member.clone(), key))
    }

    /// The route for a second attempt, after PostgreSQL refused the caller on the first route with
    /// `error`.
    ///
    /// `sealed` is [`Route::sealed`] of the first route. If it is `Some`, the second route is the
    /// same route with the current key. If it is `None`, the second route is the caller's own
    /// login, and the decision about shared connections is invalidated.
    pub(super) async fn route_again(
        &self,
        login: &Login,
        sealed: Option<(Route, ClaimsKey)>,
        error: &Error,
    ) -> Result<Route> {
        let Some((route, refused)) = sealed else {
            self.refused(login, error);
            return Ok(Route::own(login));
        };
        let key = self.key_of(login)?.get(Some(refused)).await?;
        Ok(route.with_key(key))
    }

    fn key_of<'a>(&'a self, login: &'a Login) -> Result<KeyLookup<'a>> {
        let (Some(keys), Some(service)) = (self.claims.as_deref(), self.service.as_deref()) else {
            return Err(Error::internal("no keys for the claims of members"));
        };
        Ok(KeyLookup {
            keys,
            service,
            database: &login.database,
        })
    }
}

/// Turns an error into an outage (HTTP status 503) if the database has refused the claims of a
/// request for the second time. The cause is that the functions or the key in the database are not
/// those of this service, or that code in the transaction has changed the claims. Returns other
/// errors unchanged.
pub(super) fn claims_error(login: &Login, error: Error) -> Error {
    match error {
        Error::Rejected(rejection)
            if matches!(login.role_use, RoleUse::Member(_)) && is_refused_seal(&rejection) =>
        {
            tracing::warn!(database = %login.database, "the database refused the claims of a member");
            outage(*rejection)
        }
        error => error,
    }
}
