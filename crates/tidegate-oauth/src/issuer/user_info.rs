//! The claims of the userinfo endpoint (OpenID Connect Core 1.0, section 5.3).

use super::Issuer;
use crate::token::UserClaims;
use crate::{Claims, Error, Result, TokenError, json};
use tidegate_identity::UserKey;

impl Issuer {
    /// The claims about the user of an access token, as JSON text: the current values of the claims
    /// that the token's scopes request. `sub` equals the `sub` of the user's ID tokens. The calling
    /// function must check that the token has the scope `openid`.
    ///
    /// Errors: [`Error::InvalidToken`] if the user does not exist any more.
    pub async fn user_info(&self, claims: &Claims) -> Result<String> {
        let key = UserKey::new(&*claims.database, &*claims.user);
        let user = self.ports.store.user(&key).await?;
        let user = user.ok_or(Error::InvalidToken(TokenError::SessionEnded))?;
        Ok(json::text(&UserClaims::of(&user, claims.scopes)))
    }
}
