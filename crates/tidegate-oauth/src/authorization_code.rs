//! Authorization codes (RFC 6749, section 4.1.2).

use tidegate_identity::{SecretHash, SessionId, Timestamp, UserKey};

use crate::Scopes;

/// An authorization code as stored. The code itself has 256 random bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthorizationCode {
    /// The code's hash.
    pub hash: SecretHash,
    /// The client that may redeem the code.
    pub client_id: String,
    /// The redirect URI, exactly as the authorization request gave it.
    pub redirect_uri: String,
    /// The S256 challenge (RFC 7636, section 4.2): 43 characters of base64url.
    pub challenge: String,
    /// The scopes of the request.
    pub scopes: Scopes,
    /// The `nonce` of the request, which the ID token repeats (OpenID Connect Core, section 2).
    pub nonce: Option<String>,
    /// The user who approved the request.
    pub user: UserKey,
    /// The browser session in which the code was issued. `None` after the browser session has
    /// ended; an unused code is then invalid.
    pub browser: Option<SecretHash>,
    /// When the code expires.
    pub expires_at: Timestamp,
    /// The session that the code opened; `None` while the code is unused.
    pub session: Option<SessionId>,
}
