//! A statement to run: the context in which it runs, the switch to its caller, and its prepared
//! form.

use std::fmt;
use std::sync::Arc;

use tidegate_sql::statement::Kind;
use tidegate_sql::{BoundStatement, DatabaseError, Error, Login, Member, Mode, RoleName, TypeHint};
use tidegate_wire::server_error::ServerError;
use tokio::time::Instant;

use super::side_effects::leaves_nothing;
use crate::claims_key::{CLAIMS_REFUSED, ClaimsKey, SET_CLAIMS, claims_head};
use crate::metadata::{MetadataCache, StatementDescription};
use crate::purity::MentionCache;

/// The maximum length in bytes of a statement that is cached, hints included. The limit is needed
/// because the caches limit the number of their entries and not their size.
const SHORT: usize = 16 << 10;

/// A statement to run.
#[derive(Debug)]
pub(crate) struct StatementTask<'a> {
    pub(crate) bound: &'a BoundStatement,
    /// The login of the connection.
    pub(crate) login: &'a Login,
    /// The command that makes the connection act for the caller; `None` if the connection logged in
    /// as the caller's role.
    pub(crate) switch: Option<CallerSwitch<'a>>,
    pub(crate) metadata: &'a MetadataCache,
    pub(crate) deadline: Option<Instant>,
    pub(crate) position: TransactionPosition,
}

/// The position of a statement in its transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TransactionPosition {
    /// The only statement of its transaction, without `BEGIN`.
    Alone,
    /// The first statement of an explicit transaction. The statement is preceded by `BEGIN`.
    First(Mode),
    /// A later statement of an explicit transaction.
    Within,
}

impl StatementTask<'_> {
    /// Whether the statement may stay prepared. On a connection that is reset fully no statement
    /// stays prepared: such a connection serves several anonymous callers or members one after the
    /// other, and none of them may see a statement of another. Long statements do not stay prepared
    /// either, because they are rarely reused.
    pub(crate) fn is_kept(&self) -> bool {
        !self.login.role_use.is_reset_fully() && self.is_short()
    }

    /// The role that runs the statement.
    pub(crate) fn role(&self) -> &RoleName {
        match self.switch {
            Some(CallerSwitch::Role { role, .. }) => role,
            Some(CallerSwitch::Claims(_)) | None => &self.login.role,
        }
    }

    /// The mode of the transaction that the statement opens; `None` if it opens none.
    pub(crate) fn begin_mode(&self) -> Option<Mode> {
        match self.position {
            TransactionPosition::First(mode) => Some(mode),
            TransactionPosition::Alone | TransactionPosition::Within => None,
        }
    }

    /// Whether the statement may have side effects that its text does not show, because it mentions
    /// an untrusted name.
    pub(crate) fn is_impure(&self, prepared: &PreparedStatement) -> bool {
        let statement = &self.bound.statement;
        leaves_nothing(self.bound, &self.login.role_use)
            && self
                .metadata
                .purity
                .is_impure(statement, &prepared.untrusted)
    }

    /// Whether the error may mean that the name in a hint now refers to another type.
    pub(crate) fn has_stale_hint(&self, error: &ServerError) -> bool {
        error.is_missing_type() && self.bound.hints.iter().any(Option::is_some)
    }

    /// Whether the database refused the sealed claims, and the statement has certainly had no
    /// effect. The result is `false` for a procedure, because it may have committed before the
    /// error.
    pub(crate) fn is_seal_refused(&self, error: &ServerError) -> bool {
        let is_atomic = matches!(self.bound.statement.kind(), Kind::Read | Kind::Write);
        is_atomic
            && matches!(self.switch, Some(CallerSwitch::Claims(_)))
            && is_refused_seal(&error.rejection)
    }

    /// Whether the statement and its hints have at most [`SHORT`] bytes, so that it may be cached.
    pub(crate) fn is_short(&self) -> bool {
        let hints = self.bound.hints.iter().flatten();
        let hints: usize = hints.map(|TypeHint(name)| name.len()).sum();
        self.bound.statement.text().len() + hints <= SHORT
    }
}

/// Why an attempt to run a statement failed.
#[derive(Debug)]
pub(crate) enum AttemptError {
    /// The cached description was stale. The statement has failed, or is a read whose rows have not
    /// reached the sink.
    Stale(Box<ServerError>),
    /// Any other error.
    Final(Error),
}

/// Why a statement failed.
#[derive(Debug)]
pub(crate) enum RunError {
    /// PostgreSQL refused the switch to the caller, or the sealed claims; the statement has had no
    /// effect.
    RoleRefused(Error),
    /// Any other error.
    Failed(Error),
}

impl RunError {
    /// The error for the caller.
    pub(crate) fn into_error(self) -> Error {
        match self {
            Self::RoleRefused(error) | Self::Failed(error) => error,
        }
    }
}

impl From<Error> for RunError {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl From<Error> for AttemptError {
    fn from(error: Error) -> Self {
        Self::Final(error)
    }
}

/// The command before a caller's statements that makes a shared connection act for the caller.
///
/// The effect of the command ends with the transaction, so no connection keeps the identity of its
/// previous caller. For a user the command switches to the user's role. For a member of a group the
/// command seals the member's claims (`docs/adr/0012-claims.md`): it sets the claims with a seal
/// that only this service can compute, and that is valid for one transaction of one backend.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CallerSwitch<'a> {
    Role {
        role: &'a RoleName,
        /// A `SELECT` that switches to the role in its only parameter until the transaction ends.
        /// If the `SELECT` fails, no statement after it runs.
        text: &'static str,
    },
    Claims(Seal<'a>),
}

/// The claims of a member, and the key that seals them.
#[derive(Clone, Copy)]
pub(crate) struct Seal<'a> {
    pub(crate) member: &'a Member,
    pub(crate) key: &'a ClaimsKey,
}

impl CallerSwitch<'_> {
    pub(crate) fn text(&self) -> &'static str {
        match self {
            Self::Role { text, .. } => text,
            Self::Claims(_) => SET_CLAIMS,
        }
    }

    /// Passes the command's parameters, in binary format, to `take`, and returns the result of
    /// `take`. `backend` is the process id of the backend that will run the command.
    pub(crate) fn with_parameters<R>(&self, backend: i32, take: impl FnOnce(&[&[u8]]) -> R) -> R {
        match self {
            Self::Role { role, .. } => take(&[role.as_str().as_bytes()]),
            Self::Claims(Seal { member, key }) => {
                let head = claims_head(member.id(), member.claims());
                let token = key.token(backend, &head);
                take(&[&token, head.as_bytes(), member.claims().as_bytes()])
            }
        }
    }
}

impl fmt::Debug for Seal<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.member, f)
    }
}

/// Whether an error says that the seal is missing or wrong. The message is never translated.
pub(crate) fn is_refused_seal(error: &DatabaseError) -> bool {
    error.sqlstate == "42501" && error.message == CLAIMS_REFUSED
}

/// A statement that PostgreSQL has parsed and described.
#[derive(Debug)]
pub(crate) struct PreparedStatement {
    /// The name of the statement in the session; empty for a statement that is used once.
    pub(crate) name: String,
    pub(crate) description: Arc<StatementDescription>,
    /// Caches whether the statement mentions an untrusted name.
    pub(crate) untrusted: Arc<MentionCache>,
    /// Caches whether the statement mentions a relation under row level security.
    pub(super) restricted: Arc<MentionCache>,
    /// The only role that uses the statement, if the statement belongs to
    /// [`RolePlans`](super::role_plans::RolePlans); `None` if all roles use it.
    pub(crate) role: Option<RoleName>,
}

impl PreparedStatement {
    /// A prepared statement that all roles of the connection use.
    pub(crate) fn new(name: String, description: Arc<StatementDescription>) -> Self {
        Self {
            name,
            description,
            untrusted: Arc::default(),
            restricted: Arc::default(),
            role: None,
        }
    }

    /// The same statement with another name and description, for one role.
    pub(super) fn with(
        &self,
        name: String,
        description: &Arc<StatementDescription>,
        role: &RoleName,
    ) -> Self {
        Self {
            name,
            description: description.clone(),
            untrusted: self.untrusted.clone(),
            restricted: self.restricted.clone(),
            role: Some(role.clone()),
        }
    }
}
