//! Sessions: opened by a grant, kept alive by refresh tokens, ended by revocation.

use tidegate_identity::{EndReason, SecretHash, SessionId, Timestamp, UserKey};

use crate::{GrantKind, Scopes};

/// One sign-in and its tokens. It is one row in the store, whatever the number of refreshes.
///
/// The refresh tokens of a session are numbered from 1. Presenting token n issues token n + 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// The session's id: the claim `sid` of its tokens.
    pub id: SessionId,
    /// The user of the session.
    pub user: UserKey,
    /// The client that the tokens were issued to; empty for a personal access token.
    pub client_id: String,
    /// The grant that opened the session.
    pub grant: GrantKind,
    /// The scopes of the session's tokens.
    pub scopes: Scopes,
    /// The name and the hash of the token, if the session is a personal access token.
    pub personal: Option<Box<PersonalToken>>,
    /// The highest number of a refresh token that was presented; 0 before the first refresh.
    pub presented: u64,
    /// When the user signed in, which may be long before the session was opened. It is the claim
    /// `auth_time` of ID tokens (OpenID Connect Core, section 2).
    pub authenticated_at: Timestamp,
    /// When the session was opened.
    pub created_at: Timestamp,
    /// When the session was opened or most recently refreshed; for a personal access token, when
    /// the token was most recently used.
    pub refreshed_at: Timestamp,
    /// When the session expires unless it is refreshed. A refresh moves this time, but not beyond
    /// `closes_at`.
    pub expires_at: Timestamp,
    /// When the session expires even if it is refreshed.
    pub closes_at: Timestamp,
    /// When and why the session was ended early; `None` if it was not.
    pub ended: Option<SessionEnd>,
}

impl Session {
    /// Whether the session is neither ended nor expired at `now`.
    pub fn is_alive(&self, now: Timestamp) -> bool {
        self.ended.is_none() && now < self.expires_at && now < self.closes_at
    }
}

/// A personal access token: a secret that a user made for a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PersonalToken {
    /// The name that the user gave the token.
    pub name: String,
    /// The hash of the token.
    pub hash: SecretHash,
}

/// The early end of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionEnd {
    /// When the session was ended.
    pub at: Timestamp,
    /// Why the session was ended.
    pub reason: EndReason,
}

/// An entry of the denylist: access tokens of this session are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndedSession {
    /// The session's id.
    pub id: SessionId,
    /// When the session was ended.
    pub at: Timestamp,
}
