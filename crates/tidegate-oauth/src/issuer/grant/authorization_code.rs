//! The authorization code grant (RFC 6749, section 4.1), with PKCE (RFC 7636).
//!
//! Everything is checked before the code is marked as used, so a thief without the verifier cannot
//! invalidate the code. Marking the code and opening the session are one atomic step. If a second
//! valid request has the same code, the code and the verifier were copied, so the session of the
//! first request is ended.

use super::GrantContext;
use crate::pkce::Challenge;
use crate::{Error, GrantKind, Result, Session, TokenResponse};
use tidegate_identity::{EndReason, Secret, SecretHash, SignedIn};

/// Redeems an authorization code.
///
/// Errors: [`Error::InvalidCode`] if the code is unknown, used or expired; if it was issued for
/// another client, redirect URI or challenge; or if the user is no longer signed in in the browser
/// session.
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
        // After a client was dropped, another tenant may register a client with the same id. A code
        // of a user of the old tenant is not valid for the new client.
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
    let signed_in = cx.issuer.identity.signed_in(&code.user, browser).await?;
    let SignedIn { user, since } = signed_in.ok_or(Error::InvalidCode)?;
    let opened = (GrantKind::AuthorizationCode, code.scopes);
    let session = Session {
        authenticated_at: since,
        ..cx.issuer.new_session(cx, &user, opened)?
    };
    if store.redeem_code(hash, &session).await? {
        let nonce = code.nonce.as_deref();
        return cx.issuer.first_tokens(cx, &session, &user, nonce).await;
    }
    // The code was not redeemed: it has expired, its browser session has ended, or a parallel
    // request redeemed it first.
    let winner = store.code(hash).await?.and_then(|code| code.session);
    if let Some(session) = winner {
        cx.issuer
            .end_session(cx, session, EndReason::CodeReuse)
            .await?;
    }
    Err(Error::InvalidCode)
}
