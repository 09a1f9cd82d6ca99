//! Sessions: what a sign-in opens, what refresh tokens keep alive, what revocation ends.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::{GrantKind, Timestamp, UserKey};

/// A session's name: 128 random bits, shown as 22 characters of base64url.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId([u8; 16]);

impl SessionId {
    /// The id made of these bytes.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The 16 bytes to keep.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// The id as a number, for whoever tells sessions apart without knowing tokens.
    pub const fn as_u128(&self) -> u128 {
        u128::from_be_bytes(self.0)
    }

    /// Reads the 22 characters that [`Display`](fmt::Display) writes; none for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        let mut bytes = [0; 16];
        let length = URL_SAFE_NO_PAD.decode_slice(text, &mut bytes).ok()?;
        (length == bytes.len()).then_some(Self(bytes))
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&URL_SAFE_NO_PAD.encode(self.0))
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SessionId({self})")
    }
}

/// One sign-in and the tokens that follow from it: one row, whatever the number of refreshes.
///
/// Its refresh tokens are numbered. The first has number 1; presenting token n gives token n + 1.
/// `presented` is the highest number that was ever presented, 0 before the first refresh.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// The `sid` of its tokens.
    pub id: SessionId,
    /// Who signed in.
    pub user: UserKey,
    /// The client that the tokens were given to.
    pub client_id: String,
    /// The grant that opened it.
    pub grant: GrantKind,
    /// The highest number of a refresh token that was ever presented.
    pub presented: u64,
    /// When it was opened.
    pub created_at: Timestamp,
    /// When it was opened or last refreshed.
    pub refreshed_at: Timestamp,
    /// When it dies if nobody refreshes it; moves with every refresh, never beyond `closes_at`.
    pub expires_at: Timestamp,
    /// When it dies however busy it is.
    pub closes_at: Timestamp,
    /// Whether and why it was ended before its time.
    pub ended: Option<SessionEnd>,
}

impl Session {
    /// Whether the session is neither ended nor expired at `now`.
    pub fn is_alive(&self, now: Timestamp) -> bool {
        self.ended.is_none() && now < self.expires_at && now < self.closes_at
    }
}

/// The end of a session before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionEnd {
    /// When.
    pub at: Timestamp,
    /// Why.
    pub reason: EndReason,
}

/// Why a session was ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EndReason {
    /// The client revoked one of its tokens (RFC 7009).
    Revoked,
    /// A refresh token was presented after one of its successors: somebody has a copy.
    RefreshReuse,
    /// The authorization code that it came from was shown again: somebody has a copy.
    CodeReuse,
    /// The user ended it on the account page.
    UserEnded,
    /// The user's password was set.
    PasswordChanged,
    /// The user became, or ceased to be, the user that strangers run as.
    UserChanged,
    /// The user was dropped.
    UserDropped,
    /// The client was dropped.
    ClientDropped,
    /// The tenant was dropped.
    TenantDropped,
}

impl EndReason {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Revoked,
        Self::RefreshReuse,
        Self::CodeReuse,
        Self::UserEnded,
        Self::PasswordChanged,
        Self::UserChanged,
        Self::UserDropped,
        Self::ClientDropped,
        Self::TenantDropped,
    ];

    /// The name in a store and in the audit log.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Revoked => "revoked",
            Self::RefreshReuse => "refresh_reuse",
            Self::CodeReuse => "code_reuse",
            Self::UserEnded => "user_ended",
            Self::PasswordChanged => "password_changed",
            Self::UserChanged => "user_changed",
            Self::UserDropped => "user_dropped",
            Self::ClientDropped => "client_dropped",
            Self::TenantDropped => "tenant_dropped",
        }
    }

    /// The reason with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.name() == name)
    }
}

/// An entry of the denylist: no access token of this session is accepted any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndedSession {
    /// The session.
    pub id: SessionId,
    /// When it was ended.
    pub at: Timestamp,
}
