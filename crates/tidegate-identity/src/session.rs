//! Ids of OAuth sessions, and the reasons for which sessions are ended. The records of sessions
//! belong to the issuer.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// A session id: 128 random bits, displayed as 22 characters of base64url.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId([u8; 16]);

impl SessionId {
    /// The id from its bytes.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The 16 bytes to store.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// The id as a big-endian number, for example to format it in hexadecimal.
    pub const fn as_u128(&self) -> u128 {
        u128::from_be_bytes(self.0)
    }

    /// Parses the text that [`Display`](fmt::Display) writes; `None` for any other text.
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

/// Why a session was ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EndReason {
    /// The client revoked one of the session's tokens (RFC 7009), or the session was a personal
    /// access token and was revoked.
    Revoked,
    /// A refresh token was presented again after one of its successors had been presented, so it
    /// was copied.
    RefreshReuse,
    /// The session's authorization code was presented again, so it was copied.
    CodeReuse,
    /// The user ended the session on the account page, or withdrew the consent to its client.
    UserEnded,
    /// The user or the tenant's owner ended the session over the API. A session of the grant
    /// `client_credentials` also ends for this reason if its client loses the grant or gets another
    /// service user.
    Ended,
    /// The user's password was set.
    PasswordChanged,
    /// The user became or stopped being the default user, got or lost its role, or had credentials
    /// removed by the tenant's owner or the operator. Or the group or the properties of a member
    /// changed.
    UserChanged,
    /// The user was disabled.
    UserDisabled,
    /// The user was dropped.
    UserDropped,
    /// The client was dropped.
    ClientDropped,
    /// The tenant was dropped.
    TenantDropped,
}

impl EndReason {
    /// All reasons.
    pub const ALL: [Self; 11] = [
        Self::Revoked,
        Self::RefreshReuse,
        Self::CodeReuse,
        Self::UserEnded,
        Self::Ended,
        Self::PasswordChanged,
        Self::UserChanged,
        Self::UserDisabled,
        Self::UserDropped,
        Self::ClientDropped,
        Self::TenantDropped,
    ];

    /// The name of the reason in a store and in the audit log.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Revoked => "revoked",
            Self::RefreshReuse => "refresh_reuse",
            Self::CodeReuse => "code_reuse",
            Self::UserEnded => "user_ended",
            Self::Ended => "ended",
            Self::PasswordChanged => "password_changed",
            Self::UserChanged => "user_changed",
            Self::UserDisabled => "user_disabled",
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
