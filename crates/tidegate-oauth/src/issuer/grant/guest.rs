//! The guest grant: a token of the tenant's default user for anonymous callers.

use super::GrantContext;
use crate::rate_limit;
use crate::{Error, GrantKind, GuestRequest, Result, TokenResponse};
use tidegate_identity::{AttemptKey, UserKey};

/// Issues tokens of a tenant's default user.
///
/// Errors: [`Error::GrantNotAllowed`]; those of `Issuer::authenticate`;
/// [`Error::ForeignDatabase`] when the request names the database of a tenant other than the
/// client's;
/// [`Error::NoDefaultUser`] when the tenant does not exist or has no default user;
/// `TooManyAttempts` when the address has opened too many sessions.
pub(crate) async fn exchange(
    cx: &GrantContext<'_>,
    request: &GuestRequest,
) -> Result<TokenResponse> {
    cx.require_grant(GrantKind::Guest)?;
    cx.issuer
        .authenticate(cx.client, &request.client, cx.address)
        .await?;
    let store = &cx.issuer.ports.store;
    if !cx.client.belongs_to(&request.database) {
        let tenant = store.user(&UserKey::owner(&request.database)).await?;
        return Err(tenant.map_or(Error::NoDefaultUser, |_| Error::ForeignDatabase));
    }
    let user = store
        .default_user(&request.database)
        .await?
        .ok_or(Error::NoDefaultUser)?;
    if let Some(address) = cx.address {
        let key = AttemptKey::of_address(rate_limit::GUEST, address);
        let limit = &cx.issuer.settings.limits.guest;
        // The attempt is not refunded after success: the limit is for opened sessions, not for
        // failures.
        cx.issuer.identity.attempts().count(key, limit).await?;
    }
    let opened = (GrantKind::Guest, request.scopes);
    let response = cx.issuer.open_session(cx, &user, opened).await?;
    Ok(TokenResponse {
        token_type: "bearer",
        ..response
    })
}
