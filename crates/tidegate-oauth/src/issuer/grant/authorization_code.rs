//! The authorization code grant (RFC 6749, section 4.1), with PKCE (RFC 7636).
//!
//! Everything is checked before the code is marked as used, so a thief without the verifier cannot
//! burn the code. Marking it as used and opening the session are one atomic step. A second complete
//! request means that everything was copied, so the session of the first is ended.

use super::GrantContext;
use crate::pkce::Challenge;
use crate::{Error, GrantKind, Result, TokenResponse};
use tidegate_identity::{EndReason, Secret, SecretHash};

/// Redeems an authorization code.
///
/// [`Error::InvalidCode`] unless the code is valid for this client, redirect URI and verifier.
pub(super) async fn exchange(
    cx: &GrantContext<'_>,
    code: &Secret,
    redirect_uri: &str,
    verifier: &Secret,
) -> Result<TokenResponse> {
    let store = &cx.issuer.ports.store;
    let hash = SecretHash::of(code);
    let code = store.code(hash).await?;
    let code = code
        .filter(|code| code.client_id == cx.client.id && code.redirect_uri == redirect_uri)
        // The code of a client that was dropped is not one for a new client with its id.
        .filter(|code| cx.client.admits(&code.user.database))
        .filter(|code| {
            let challenge = Challenge::parse(&code.challenge);
            challenge.is_some_and(|challenge| challenge.matches(verifier.expose()))
        })
        .ok_or(Error::InvalidCode)?;
    if let Some(session) = code.session {
        cx.issuer
            .end_session(cx, session, EndReason::CodeReuse)
            .await?;
        return Err(Error::InvalidCode);
    }
    let browser = code.browser.ok_or(Error::InvalidCode)?;
    let user = cx.issuer.identity.signed_in(&code.user, browser).await?;
    let user = user.ok_or(Error::InvalidCode)?;
    let session = cx
        .issuer
        .new_session(cx, &user, GrantKind::AuthorizationCode)?;
    if store.redeem_code(hash, &session).await? {
        return cx.issuer.first_tokens(cx, &session, &user).await;
    }
    // Expired, or a parallel request with the same code won.
    let winner = store.code(hash).await?.and_then(|code| code.session);
    if let Some(session) = winner {
        cx.issuer
            .end_session(cx, session, EndReason::CodeReuse)
            .await?;
    }
    Err(Error::InvalidCode)
}
