//! Authorization codes (RFC 6749, section 4.1.2).

use tidegate_identity::{SecretHash, SessionId, Timestamp, UserKey};

/// An authorization code as stored. The code itself has 256 random bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthorizationCode {
    /// The code's hash.
    pub hash: SecretHash,
    /// The client that may redeem it.
    pub client_id: String,
    /// The redirect URI of the request, byte by byte.
    pub redirect_uri: String,
    /// The S256 challenge (RFC 7636, section 4.2): 43 characters of base64url.
    pub challenge: String,
    /// The user who approved the request.
    pub user: UserKey,
    /// The browser session in which it was issued; `None` when that has ended, which voids an
    /// unused code.
    pub browser: Option<SecretHash>,
    /// When it expires.
    pub expires_at: Timestamp,
    /// The session that it opened; `None` while it is unused.
    pub session: Option<SessionId>,
}
