//! Authorization codes (RFC 6749, section 4.1.2).

use crate::{SecretHash, SessionId, Timestamp, UserKey};

/// An authorization code as a store keeps it: what the browser carries is its 256-bit preimage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthorizationCode {
    /// The code's hash.
    pub hash: SecretHash,
    /// The client that may redeem it.
    pub client_id: String,
    /// The address that it was sent to, byte by byte.
    pub redirect_uri: String,
    /// The S256 challenge (RFC 7636, section 4.2): 43 characters of base64url.
    pub challenge: String,
    /// Who signed in.
    pub user: UserKey,
    /// The browser session in which the code was given; none when that is over, and with it the
    /// code unless it was used.
    pub browser: Option<SecretHash>,
    /// When it is good no more.
    pub expires_at: Timestamp,
    /// The session that it opened; none as long as it was not used.
    pub session: Option<SessionId>,
}
