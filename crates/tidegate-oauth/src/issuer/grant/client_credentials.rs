//! The client credentials grant (RFC 6749, section 4.4).

use super::GrantContext;
use crate::{ClientAuthentication, Error, GrantKind, Result, Scopes, TokenResponse};
use tidegate_identity::UserKey;

/// Issues an access token of the client's service user, without a refresh token (section 4.4.3).
///
/// Errors: [`Error::NoServiceUser`] if the client is public or has no service user, or if its
/// service user does not exist; [`Error::ServiceUserDisabled`].
pub(super) async fn exchange(cx: &GrantContext<'_>, scopes: Scopes) -> Result<TokenResponse> {
    let client = cx.client;
    if client.authentication == ClientAuthentication::Public {
        return Err(Error::NoServiceUser);
    }
    let named = client
        .database
        .as_deref()
        .zip(client.service_user.as_deref());
    let (database, name) = named.ok_or(Error::NoServiceUser)?;
    let key = UserKey::new(database, name);
    let user = cx.issuer.ports.store.user(&key).await?;
    let user = user.ok_or(Error::NoServiceUser)?;
    if user.disabled {
        return Err(Error::ServiceUserDisabled);
    }
    let opened = (GrantKind::ClientCredentials, scopes);
    cx.issuer.open_session(cx, &user, opened).await
}
