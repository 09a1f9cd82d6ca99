//! Browser sessions of the sign-in pages.

use std::net::IpAddr;

use crate::{SecretHash, Timestamp, UserKey};

/// A signed-in browser, as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrowserSession {
    /// The hash of its cookie, which has 256 random bits.
    pub id: SecretHash,
    /// The user.
    pub user: UserKey,
    /// Fingerprint of the user's password: when the password changes, the session is invalid.
    pub password_fingerprint: SecretHash,
    /// Whether the second factor was verified.
    pub second_factor: bool,
    /// The `User-Agent`, cut to 256 characters.
    pub agent: String,
    /// The client address.
    pub address: Option<IpAddr>,
    /// When the user signed in.
    pub created_at: Timestamp,
    /// When it was last used, accurate to a few minutes.
    pub seen_at: Timestamp,
    /// When it expires if it is not used.
    pub expires_at: Timestamp,
}

/// Where a request for a page came from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestContext {
    /// The client address.
    pub address: Option<IpAddr>,
    /// The `User-Agent`.
    pub agent: String,
}

const AGENT_CHARACTERS: usize = 256;

impl RequestContext {
    /// The `User-Agent` to store.
    pub(crate) fn stored_agent(&self) -> String {
        let plain = self.agent.chars().filter(|c| !c.is_control());
        plain.take(AGENT_CHARACTERS).collect()
    }
}
