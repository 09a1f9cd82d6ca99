//! Browser sessions of the sign-in pages.

use std::net::IpAddr;

use crate::{SecretHash, Timestamp, UserKey};

/// A signed-in browser, as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrowserSession {
    /// The hash of the session's cookie, which has 256 random bits.
    pub id: SecretHash,
    /// The user who is signed in.
    pub user: UserKey,
    /// The fingerprint of the user's stored password hash at sign-in. When the stored hash changes,
    /// the session is invalid.
    pub password_fingerprint: SecretHash,
    /// Whether the second factor was verified in this session.
    pub second_factor: bool,
    /// The `User-Agent` of the browser, cut to 256 characters.
    pub agent: String,
    /// The client address at sign-in.
    pub address: Option<IpAddr>,
    /// When the user signed in.
    pub created_at: Timestamp,
    /// When the session was most recently used, accurate to a few minutes.
    pub seen_at: Timestamp,
    /// When the session expires unless it is used before.
    pub expires_at: Timestamp,
}

/// The browser and the address that a request for a page came from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestContext {
    /// The client address of the request.
    pub address: Option<IpAddr>,
    /// The `User-Agent` of the request.
    pub agent: String,
}

const AGENT_CHARACTERS: usize = 256;

impl RequestContext {
    /// The `User-Agent` without control characters, cut to the stored length.
    pub(crate) fn stored_agent(&self) -> String {
        let plain = self.agent.chars().filter(|c| !c.is_control());
        plain.take(AGENT_CHARACTERS).collect()
    }
}
