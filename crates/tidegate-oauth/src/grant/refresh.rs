//! The refresh grant (RFC 6749, section 6), with the successor rule.
//!
//! Clients in use keep the old token, others lose the answer, others refresh twice at once. So a
//! token may be presented again as long as no successor of it was presented; a token presented after
//! one of its successors was used is a copy in other hands, and the whole session ends.
//!
//! Tokens are numbered; the session remembers the highest number presented. Token n is good while
//! that number is at most n, and presenting it gives token n + 1.

use super::Exchange;
use crate::{EndReason, Error, Presented, Result, Secret, TokenResponse};

/// Gives the next tokens of the session that the token belongs to.
///
/// [`Error::DeadRefreshToken`] for everything that is not a good token of this client.
pub(super) async fn exchange(cx: &Exchange<'_>, token: &Secret) -> Result<TokenResponse> {
    let issuer = cx.issuer;
    let now = issuer.ports.clock.now();
    let claims = issuer
        .read_refresh_token(token)
        .filter(|claims| now < claims.expires_at && claims.client_id == cx.client.id)
        .ok_or(Error::DeadRefreshToken)?;
    let store = &issuer.ports.store;
    let idle_end = issuer.idle_end(now);
    match store
        .present_refresh_token(claims.session, claims.number, now, idle_end)
        .await?
    {
        Presented::Accepted(session) => {
            let user = store
                .user(&session.user)
                .await?
                .ok_or(Error::DeadRefreshToken)?;
            issuer.tokens(&session, &user, claims.number.saturating_add(1))
        }
        Presented::Superseded => {
            issuer
                .end_session(cx, claims.session, EndReason::RefreshReuse)
                .await?;
            Err(Error::DeadRefreshToken)
        }
        Presented::Dead => Err(Error::DeadRefreshToken),
    }
}
