//! The audit log: what happened to whose access, for the owner to read.

use std::net::IpAddr;

use crate::{EndReason, GrantKind, SessionId, Timestamp};

/// One line of the audit log. It never holds a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEvent {
    /// When.
    pub at: Timestamp,
    /// What.
    pub kind: AuditKind,
    /// What the kind does not tell: an account's issuer, a table. Cut to 255 characters.
    pub detail: Option<String>,
    /// The tenant's database; none for what concerns all of them.
    pub database: Option<String>,
    /// The user's name as it was given, cut to 64 characters.
    pub user: Option<String>,
    /// The client.
    pub client_id: Option<String>,
    /// The session.
    pub session: Option<SessionId>,
    /// Where the request came from.
    pub address: Option<IpAddr>,
    /// The user of the tenant who changed a record; none for the operator, and for what users do
    /// about themselves by signing in.
    pub actor: Option<String>,
}

/// An event as the log has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEntry {
    /// Its number, by which the log is read on; later events have higher ones.
    pub number: u64,
    /// When.
    pub at: Timestamp,
    /// The event's name; a newer program may have written others than [`AuditKind`] knows.
    pub event: String,
    /// The word that tells more.
    pub detail: Option<String>,
    /// The user's name as it was given.
    pub user: Option<String>,
    /// The client.
    pub client_id: Option<String>,
    /// The session.
    pub session: Option<SessionId>,
    /// Where the request came from.
    pub address: Option<IpAddr>,
    /// Who changed a record.
    pub actor: Option<String>,
}

/// A part of the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditPage {
    /// The events, by number.
    pub entries: Vec<AuditEntry>,
    /// The number after which the next page begins.
    pub next: u64,
}

impl AuditPage {
    /// The page of at most `limit` entries `since`, in a log whose highest number is `highest`.
    pub fn new(entries: Vec<AuditEntry>, limit: u32, since: AuditSince, highest: u64) -> Self {
        let full = entries.len() >= limit as usize;
        let next = match (entries.last(), since) {
            (Some(last), _) if full => last.number,
            (_, AuditSince::Number(number)) => number.max(highest),
            (_, AuditSince::Time(_)) => highest,
        };
        Self { entries, next }
    }
}

/// From where on the log is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditSince {
    /// After the event of this number; 0 is before the first.
    Number(u64),
    /// From this moment on.
    Time(Timestamp),
}

/// How much of a user's name is kept: names that were tried may be of any length.
const NAME_CHARACTERS: usize = 64;
const DETAIL_CHARACTERS: usize = 255;

impl AuditEvent {
    pub(crate) fn new(at: Timestamp, kind: AuditKind, database: Option<&str>) -> Self {
        Self {
            at,
            kind,
            detail: None,
            database: database.map(str::to_owned),
            user: None,
            client_id: None,
            session: None,
            address: None,
            actor: None,
        }
    }

    /// The word that tells more: the event's own, or that of its kind.
    pub fn detail(&self) -> Option<&str> {
        self.detail.as_deref().or(self.kind.detail())
    }

    pub(crate) fn about(self, detail: &str) -> Self {
        Self {
            detail: Some(detail.chars().take(DETAIL_CHARACTERS).collect()),
            ..self
        }
    }

    pub(crate) fn by(self, actor: Option<String>) -> Self {
        Self { actor, ..self }
    }

    pub(crate) fn of_user(self, name: &str) -> Self {
        Self {
            user: Some(name.chars().take(NAME_CHARACTERS).collect()),
            ..self
        }
    }

    pub(crate) fn of_client(self, id: &str) -> Self {
        Self {
            client_id: Some(id.to_owned()),
            ..self
        }
    }

    pub(crate) fn in_session(self, id: SessionId) -> Self {
        Self {
            session: Some(id),
            ..self
        }
    }

    pub(crate) fn from(self, address: Option<IpAddr>) -> Self {
        Self { address, ..self }
    }
}

/// What an audit event tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditKind {
    /// A grant opened a session.
    SessionOpened(GrantKind),
    /// A session was ended before its time. A reuse shows as `refresh_reuse`.
    SessionEnded(EndReason),
    /// A user name or password was wrong.
    SignInFailed,
    /// A person signed in on one of our pages.
    SignedIn,
    /// A person signed out on one of our pages.
    SignedOut,
    /// A person allowed a client's request on a page.
    ConsentGiven,
    /// A person denied a client's request on a page.
    ConsentDenied,
    /// A second factor was set up.
    SecondFactorAdded,
    /// A second factor was taken away.
    SecondFactorRemoved,
    /// A code of a second factor was wrong.
    SecondFactorFailed,
    /// A recovery code was used.
    RecoveryCodeUsed,
    /// An account elsewhere was linked to a user.
    IdentityLinked,
    /// An account elsewhere was taken away from a user.
    IdentityUnlinked,
    /// A client's secret was wrong or missing.
    ClientRefused,
    /// A user was created.
    UserCreated,
    /// A user's record was changed.
    UserChanged,
    /// A user's password was set.
    PasswordChanged,
    /// A user was dropped.
    UserDropped,
    /// What a user may do with a table was set.
    PrivilegeSet,
    /// A setting of the tenant was changed.
    TenantChanged,
    /// A client was created.
    ClientCreated,
    /// A client's record was changed.
    ClientChanged,
    /// A client got a new secret.
    ClientSecretRotated,
    /// A client was dropped.
    ClientDropped,
    /// Another key signs from now on.
    KeyRotated,
}

impl AuditKind {
    /// The event's name in the log.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SessionOpened(_) => "session_opened",
            Self::SessionEnded(EndReason::RefreshReuse) => "refresh_reuse",
            Self::SessionEnded(EndReason::CodeReuse) => "code_reuse",
            Self::SessionEnded(_) => "session_ended",
            Self::SignInFailed => "sign_in_failed",
            Self::SignedIn => "signed_in",
            Self::SignedOut => "signed_out",
            Self::ConsentGiven => "consent_given",
            Self::ConsentDenied => "consent_denied",
            Self::SecondFactorAdded => "second_factor_added",
            Self::SecondFactorRemoved => "second_factor_removed",
            Self::SecondFactorFailed => "second_factor_failed",
            Self::RecoveryCodeUsed => "recovery_code_used",
            Self::IdentityLinked => "identity_linked",
            Self::IdentityUnlinked => "identity_unlinked",
            Self::ClientRefused => "client_refused",
            Self::UserCreated => "user_created",
            Self::UserChanged => "user_changed",
            Self::PasswordChanged => "password_changed",
            Self::UserDropped => "user_dropped",
            Self::PrivilegeSet => "privilege_set",
            Self::TenantChanged => "tenant_changed",
            Self::ClientCreated => "client_created",
            Self::ClientChanged => "client_changed",
            Self::ClientSecretRotated => "client_secret_rotated",
            Self::ClientDropped => "client_dropped",
            Self::KeyRotated => "key_rotated",
        }
    }

    /// The word that tells more: the grant that opened a session, the reason that ended it.
    pub const fn detail(self) -> Option<&'static str> {
        match self {
            Self::SessionOpened(grant) => Some(grant.name()),
            Self::SessionEnded(reason) => Some(reason.name()),
            _ => None,
        }
    }
}
