//! Browsers in which a person has signed in on one of our pages.

use std::net::IpAddr;

use crate::{SecretHash, Timestamp, UserKey};

/// A signed-in browser, as a store keeps it: the cookie is the 256-bit preimage of its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrowserSession {
    /// The hash of its cookie.
    pub id: SecretHash,
    /// Who signed in.
    pub user: UserKey,
    /// The hash of what the user's password was then: when that changes, the session is over.
    pub stamp: SecretHash,
    /// Whether a second factor was shown too.
    pub second_factor: bool,
    /// What the browser called itself, cut to 256 characters.
    pub agent: String,
    /// Where it came from.
    pub address: Option<IpAddr>,
    /// When the person signed in.
    pub created_at: Timestamp,
    /// When it was last used, within a few minutes.
    pub seen_at: Timestamp,
    /// When it is over if nobody uses it.
    pub expires_at: Timestamp,
}

/// From where a page was asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Visit {
    /// The address.
    pub address: Option<IpAddr>,
    /// The `User-Agent`.
    pub agent: String,
}

const AGENT_CHARACTERS: usize = 256;

impl Visit {
    /// What is kept of the browser's name for itself.
    pub(crate) fn kept_agent(&self) -> String {
        let plain = self.agent.chars().filter(|c| !c.is_control());
        plain.take(AGENT_CHARACTERS).collect()
    }
}
