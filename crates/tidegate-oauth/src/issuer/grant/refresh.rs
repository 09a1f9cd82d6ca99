//! The refresh grant (RFC 6749, section 6), with detection of reuse.
//!
//! Existing clients may continue to use the old token, lose a response, or refresh twice in
//! parallel. So a token may be presented again until a later token of the session is presented. A
//! token that is presented after a later token must have been copied, so the session is ended.
//!
//! Tokens are numbered, and the session stores the highest number presented. Token n is valid while
//! the stored number is at most n. Presenting token n issues token n + 1.

use super::GrantContext;
use crate::token::Issue;
use crate::{Error, RefreshOutcome, Result, Scopes, TokenResponse};
use tidegate_identity::{EndReason, Secret};

/// Issues the next tokens of the session that `token` belongs to. `asked` narrows the access token
/// only: the session and its refresh tokens keep their scopes (RFC 6749, section 6).
///
/// Errors: [`Error::InvalidRefreshToken`] if the token is not valid for this client, or if its user
/// is disabled or no longer exists. [`Error::InvalidScope`] for a scope that the session lacks; in
/// this case the token does not count as presented.
pub(super) async fn exchange(
    cx: &GrantContext<'_>,
    token: &Secret,
    asked: Scopes,
) -> Result<TokenResponse> {
    let issuer = cx.issuer;
    let now = issuer.ports.clock.now();
    let claims = issuer
        .read_refresh_token(token)
        .filter(|claims| now < claims.expires_at && claims.client_id == cx.client.id)
        .ok_or(Error::InvalidRefreshToken)?;
    let store = &issuer.ports.store;
    if asked != Scopes::UNRESTRICTED
        && let Some(session) = store.session(claims.session).await?
    {
        // The scopes are checked before the token is presented, because presenting it invalidates
        // earlier tokens of the session.
        session.scopes.narrowed_to(asked)?;
    }
    let idle_expiry = issuer.idle_expiry(now);
    match store
        .present_refresh_token(claims.session, claims.number, now, idle_expiry)
        .await?
    {
        RefreshOutcome::Accepted(session) => {
            let user = store.user(&session.user).await?;
            let user = user
                .filter(|user| !user.disabled)
                .ok_or(Error::InvalidRefreshToken)?;
            let scopes = session.scopes.narrowed_to(asked)?;
            let number = claims.number.saturating_add(1);
            // An ID token of a refresh has no nonce (OpenID Connect Core, section 12.2).
            let issue = Issue {
                number,
                scopes,
                nonce: None,
            };
            issuer.tokens(&session, &user, &issue)
        }
        RefreshOutcome::Reused => {
            issuer
                .end_session(cx, claims.session, EndReason::RefreshReuse)
                .await?;
            Err(Error::InvalidRefreshToken)
        }
        RefreshOutcome::Invalid => Err(Error::InvalidRefreshToken),
    }
}
