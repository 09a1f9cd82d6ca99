//! Issues ID tokens, and reads the ID tokens that clients send back as hints.

use super::Issuer;
use crate::token::{IdToken, IdTokenHint, Issue};
use crate::{GrantKind, Result, Session};
use tidegate_identity::{Secret, Timestamp, User};

impl Issuer {
    /// The ID token that is issued together with an access token (OpenID Connect Core 1.0, sections
    /// 3.1.3.3 and 12.2). `None` if the scopes lack `openid`, or if the session was opened by a
    /// grant in which no person signs in.
    pub(super) fn id_token(
        &self,
        session: &Session,
        user: &User,
        (access_token, expires_at): (&str, Timestamp),
        issue: &Issue<'_>,
    ) -> Result<Option<Secret>> {
        let is_sign_in = match session.grant {
            GrantKind::AuthorizationCode | GrantKind::DeviceCode | GrantKind::Password => true,
            GrantKind::Guest
            | GrantKind::ClientCredentials
            | GrantKind::PersonalToken
            | GrantKind::Impersonation
            | GrantKind::RefreshToken => false,
        };
        if !is_sign_in || !issue.scopes.has("openid") {
            return Ok(None);
        }
        let token = IdToken {
            issuer: self.settings.issuer(),
            user,
            client_id: &session.client_id,
            scopes: issue.scopes,
            nonce: issue.nonce,
            access_token,
            authenticated_at: session.authenticated_at,
            issued_at: session.refreshed_at,
            expires_at,
        };
        Ok(Some(Secret::new(token.encode(self.ring().active())?)))
    }

    /// The content of an ID token that a client sends as a hint; `None` unless this issuer signed
    /// it.
    pub(super) fn id_token_hint(&self, token: &str) -> Option<IdTokenHint> {
        IdTokenHint::decode(token, &self.ring(), self.settings.issuer())
    }
}
