//! The refresh grant (RFC 6749, section 6), with detection of reuse.
//!
//! Existing clients keep the old token, lose a response, or refresh twice in parallel. So a token
//! may be presented again until one of its successors is presented. A token presented after that
//! was copied, and the session is ended.
//!
//! Tokens are numbered, and the session stores the highest number presented. Token n is valid while
//! that number is at most n; presenting it issues token n + 1.

use super::GrantContext;
use crate::{Error, RefreshOutcome, Result, TokenResponse};
use tidegate_identity::{EndReason, Secret};

/// Issues the next tokens of the token's session.
///
/// [`Error::InvalidRefreshToken`] unless the token is valid for this client.
pub(super) async fn exchange(cx: &GrantContext<'_>, token: &Secret) -> Result<TokenResponse> {
    let issuer = cx.issuer;
    let now = issuer.ports.clock.now();
    let claims = issuer
        .read_refresh_token(token)
        .filter(|claims| now < claims.expires_at && claims.client_id == cx.client.id)
        .ok_or(Error::InvalidRefreshToken)?;
    let store = &issuer.ports.store;
    let idle_expiry = issuer.idle_expiry(now);
    match store
        .present_refresh_token(claims.session, claims.number, now, idle_expiry)
        .await?
    {
        RefreshOutcome::Accepted(session) => {
            let user = store
                .user(&session.user)
                .await?
                .ok_or(Error::InvalidRefreshToken)?;
            issuer.tokens(&session, &user, claims.number.saturating_add(1))
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
