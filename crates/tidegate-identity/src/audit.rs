//! The audit log: security events of a tenant, for its owner to read.

use std::net::IpAddr;

use crate::{EndReason, SessionId, Timestamp};

/// An event for the audit log. It never contains a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEvent {
    /// When the event happened.
    pub at: Timestamp,
    /// The kind of the event.
    pub kind: AuditKind,
    /// Additional detail, such as the name of a passkey or the issuer of a linked account; cut to
    /// 255 characters.
    pub detail: Option<String>,
    /// The tenant's database; `None` for events of the whole service.
    pub database: Option<String>,
    /// The user name as given in the request, cut to 64 characters.
    pub user: Option<String>,
    /// The id of the OAuth client that the event concerns.
    pub client_id: Option<String>,
    /// The OAuth session that the event concerns.
    pub session: Option<SessionId>,
    /// The client address of the request.
    pub address: Option<IpAddr>,
    /// The user who changed a record; `None` for the operator, and for events that users cause by
    /// signing in.
    pub actor: Option<String>,
}

/// An event as read from the audit log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEntry {
    /// The event's number, for paging; later events have higher numbers.
    pub number: u64,
    /// When the event happened.
    pub at: Timestamp,
    /// The event's name; a newer version may have written names that [`AuditKind`] lacks.
    pub event: String,
    /// Additional detail, such as the name of a passkey or the issuer of a linked account.
    pub detail: Option<String>,
    /// The user name as given in the request.
    pub user: Option<String>,
    /// The id of the OAuth client that the event concerns.
    pub client_id: Option<String>,
    /// The OAuth session that the event concerns.
    pub session: Option<SessionId>,
    /// The client address of the request.
    pub address: Option<IpAddr>,
    /// The user who changed a record; `None` for the operator, and for events that users cause by
    /// signing in.
    pub actor: Option<String>,
}

/// A page of the audit log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditPage {
    /// The events, in the order of their numbers.
    pub entries: Vec<AuditEntry>,
    /// The number after which the next page starts.
    pub next: u64,
}

impl AuditPage {
    /// Builds a page from `entries`, which were read from `since` on. At most `limit` entries were
    /// read. `highest` is the highest number in the log.
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

/// The point in the audit log at which to start reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditSince {
    /// Read after the event with this number; 0 reads from the start.
    Number(u64),
    /// Read from this time on.
    Time(Timestamp),
}

/// User names are cut to this length, because a name in a failed sign-in may have any length.
const NAME_CHARACTERS: usize = 64;
const DETAIL_CHARACTERS: usize = 255;

impl AuditEvent {
    /// An event without details. `database` is the tenant's database; `None` for an event of the
    /// whole service.
    pub fn new(at: Timestamp, kind: AuditKind, database: Option<&str>) -> Self {
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

    /// The detail of the event. If the event has none, the detail of its kind.
    pub fn detail(&self) -> Option<&str> {
        self.detail.as_deref().or(self.kind.detail())
    }

    /// The same event with a detail, which is cut to 255 characters.
    #[must_use]
    pub fn with_detail(self, detail: &str) -> Self {
        Self {
            detail: Some(detail.chars().take(DETAIL_CHARACTERS).collect()),
            ..self
        }
    }

    /// The same event with the user who changed the record; `None` for the operator.
    #[must_use]
    pub fn with_acting_user(self, actor: Option<String>) -> Self {
        Self { actor, ..self }
    }

    /// The same event with a user name, which is cut to 64 characters.
    #[must_use]
    pub fn with_user(self, name: &str) -> Self {
        Self {
            user: Some(name.chars().take(NAME_CHARACTERS).collect()),
            ..self
        }
    }

    /// The same event with the id of an OAuth client; `None` if it concerns no client.
    #[must_use]
    pub fn with_client(self, id: Option<&str>) -> Self {
        Self {
            client_id: id.map(str::to_owned),
            ..self
        }
    }

    /// The same event with a session.
    #[must_use]
    pub fn with_session(self, id: SessionId) -> Self {
        Self {
            session: Some(id),
            ..self
        }
    }

    /// The same event with the client address of the request.
    #[must_use]
    pub fn with_address(self, address: Option<IpAddr>) -> Self {
        Self { address, ..self }
    }
}

/// The kinds of audit events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditKind {
    /// A session was opened by the grant of this name.
    SessionOpened(&'static str),
    /// A session was ended before it expired. The event's name is `refresh_reuse` or `code_reuse`
    /// if a token or code was reused, otherwise `session_ended`.
    SessionEnded(EndReason),
    /// A user name or password was wrong.
    SignInFailed,
    /// A person signed in on one of the service's pages.
    SignedIn,
    /// An owner got a token to act as a user.
    Impersonated,
    /// A person signed out on one of the service's pages.
    SignedOut,
    /// A person approved a client's request on a page.
    ConsentGiven,
    /// A person denied a client's request on a page.
    ConsentDenied,
    /// A person withdrew the consent to a client.
    ConsentWithdrawn,
    /// A personal access token was created; the detail is its name.
    TokenCreated,
    /// A personal access token was revoked; the detail is its name.
    TokenRevoked,
    /// A second factor was set up.
    SecondFactorAdded,
    /// A second factor was removed.
    SecondFactorRemoved,
    /// A code of a second factor was wrong.
    SecondFactorFailed,
    /// A recovery code was used.
    RecoveryCodeUsed,
    /// A passkey was created; the detail is its name.
    PasskeyAdded,
    /// A passkey was renamed; the detail is the new name.
    PasskeyRenamed,
    /// A passkey was removed; the detail is its name.
    PasskeyRemoved,
    /// An account of an identity provider was linked to a user.
    IdentityLinked,
    /// An account of an identity provider was unlinked from a user.
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
    /// A privilege of a user on a table was set; the detail names the privilege and the table.
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
    /// An issuer of tokens was added to a tenant; the detail is its name.
    IssuerCreated,
    /// An issuer of tokens was changed; the detail is its name.
    IssuerChanged,
    /// An issuer of tokens was dropped; the detail is its name.
    IssuerDropped,
    /// The signing key was rotated.
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
            Self::Impersonated => "impersonated",
            Self::SignedOut => "signed_out",
            Self::ConsentGiven => "consent_given",
            Self::ConsentDenied => "consent_denied",
            Self::ConsentWithdrawn => "consent_withdrawn",
            Self::TokenCreated => "token_created",
            Self::TokenRevoked => "token_revoked",
            Self::SecondFactorAdded => "second_factor_added",
            Self::SecondFactorRemoved => "second_factor_removed",
            Self::SecondFactorFailed => "second_factor_failed",
            Self::RecoveryCodeUsed => "recovery_code_used",
            Self::PasskeyAdded => "passkey_added",
            Self::PasskeyRenamed => "passkey_renamed",
            Self::PasskeyRemoved => "passkey_removed",
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
            Self::IssuerCreated => "issuer_created",
            Self::IssuerChanged => "issuer_changed",
            Self::IssuerDropped => "issuer_dropped",
            Self::KeyRotated => "key_rotated",
        }
    }

    /// The grant that opened a session, or the reason for which a session was ended. `None` for
    /// other kinds.
    pub const fn detail(self) -> Option<&'static str> {
        match self {
            Self::SessionOpened(grant) => Some(grant),
            Self::SessionEnded(reason) => Some(reason.name()),
            _ => None,
        }
    }
}
