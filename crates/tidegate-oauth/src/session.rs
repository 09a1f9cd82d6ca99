//! Sessions: opened by a grant, kept alive by refresh tokens, ended by revocation.

use tidegate_identity::{EndReason, SessionId, Timestamp, UserKey};

use crate::GrantKind;

/// One login and its tokens: one row, whatever the number of refreshes.
///
/// Its refresh tokens are numbered from 1; presenting token n issues token n + 1. `presented` is
/// the highest number that was ever presented, 0 before the first refresh.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// The `sid` of its tokens.
    pub id: SessionId,
    /// The user.
    pub user: UserKey,
    /// The client that the tokens were issued to.
    pub client_id: String,
    /// The grant that opened it.
    pub grant: GrantKind,
    /// The highest number of a refresh token that was ever presented.
    pub presented: u64,
    /// When it was opened.
    pub created_at: Timestamp,
    /// When it was opened or last refreshed.
    pub refreshed_at: Timestamp,
    /// When it expires without a refresh; moves with every refresh, never beyond `closes_at`.
    pub expires_at: Timestamp,
    /// When it expires in any case.
    pub closes_at: Timestamp,
    /// When and why it was ended early.
    pub ended: Option<SessionEnd>,
}

impl Session {
    /// Whether the session is neither ended nor expired at `now`.
    pub fn is_alive(&self, now: Timestamp) -> bool {
        self.ended.is_none() && now < self.expires_at && now < self.closes_at
    }
}

/// The early end of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionEnd {
    /// When it was ended.
    pub at: Timestamp,
    /// Why it was ended.
    pub reason: EndReason,
}

/// An entry of the denylist: access tokens of this session are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndedSession {
    /// The session.
    pub id: SessionId,
    /// When it was ended.
    pub at: Timestamp,
}
