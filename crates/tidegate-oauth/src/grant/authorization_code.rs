//! The authorization code grant (RFC 6749, section 4.1), with PKCE (RFC 7636).
//!
//! Everything that a request must know is checked before the code is used, so that somebody who has
//! the code and not the verifier cannot burn it. Using it and opening the session are one atomic
//! step. Who then shows all of it once more has a copy of everything, and what the code gave ends.

use super::Exchange;
use crate::flow::Challenge;
use crate::{EndReason, Error, GrantKind, Result, Secret, SecretHash, TokenResponse};

/// Gives tokens to whom the code stands for.
///
/// [`Error::DeadCode`] for everything that is not a good code of this client with its address and
/// its verifier.
pub(super) async fn exchange(
    cx: &Exchange<'_>,
    code: &Secret,
    redirect_uri: &str,
    verifier: &Secret,
) -> Result<TokenResponse> {
    let store = &cx.issuer.ports.store;
    let hash = SecretHash::of(code);
    let code = store.code(hash).await?;
    let code = code
        .filter(|code| code.client_id == cx.client.id && code.redirect_uri == redirect_uri)
        .filter(|code| {
            let challenge = Challenge::parse(&code.challenge);
            challenge.is_some_and(|challenge| challenge.is_of(verifier.expose()))
        })
        .ok_or(Error::DeadCode)?;
    if let Some(session) = code.session {
        cx.issuer
            .end_session(cx, session, EndReason::CodeReuse)
            .await?;
        return Err(Error::DeadCode);
    }
    let browser = code.browser.ok_or(Error::DeadCode)?;
    let user = cx.issuer.signed_in(&code.user, browser).await?;
    let user = user.ok_or(Error::DeadCode)?;
    let session = cx
        .issuer
        .new_session(cx, &user, GrantKind::AuthorizationCode)?;
    if store.redeem_code(hash, &session).await? {
        return cx.issuer.first_tokens(cx, &session, &user).await;
    }
    // Expired, or another request with everything was faster.
    let winner = store.code(hash).await?.and_then(|code| code.session);
    if let Some(session) = winner {
        cx.issuer
            .end_session(cx, session, EndReason::CodeReuse)
            .await?;
    }
    Err(Error::DeadCode)
}
