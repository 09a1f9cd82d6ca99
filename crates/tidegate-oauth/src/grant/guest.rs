//! The guest grant: a token of the tenant's default user, for a stranger.

use super::Exchange;
use crate::throttle;
use crate::{AttemptScope, Error, GrantKind, GuestRequest, Result, TokenResponse, UserKey};

/// Gives tokens of the default user.
///
/// [`Error::ForeignDatabase`] when the client is of another tenant than the one named,
/// [`Error::NoDefaultUser`] when there is no such tenant or it has no default user.
pub(crate) async fn exchange(cx: &Exchange<'_>, request: &GuestRequest) -> Result<TokenResponse> {
    cx.allow(GrantKind::Guest)?;
    cx.issuer
        .authenticate(cx.client, &request.client, cx.address)
        .await?;
    let store = &cx.issuer.ports.store;
    if request.database != cx.client.database {
        let tenant = store.user(&UserKey::owner(&request.database)).await?;
        return Err(tenant.map_or(Error::NoDefaultUser, |_| Error::ForeignDatabase));
    }
    let user = store
        .default_user(&request.database)
        .await?
        .ok_or(Error::NoDefaultUser)?;
    if let Some(address) = cx.address {
        let key = throttle::address(AttemptScope::Guest, address);
        let limit = &cx.issuer.settings.limits.guest;
        // Never given back: what is counted here is sessions, not failures.
        cx.issuer.attempts().count(key, limit).await?;
    }
    let response = cx.issuer.open_session(cx, &user, GrantKind::Guest).await?;
    Ok(TokenResponse {
        token_type: "bearer",
        ..response
    })
}
