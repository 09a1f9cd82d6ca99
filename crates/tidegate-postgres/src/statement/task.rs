//! A statement and the context in which it runs.

use tidegate_sql::statement::Kind;
use tidegate_sql::{BoundStatement, Error, Login, Mode, RoleName, TypeHint};
use tidegate_wire::rejection::ServerError;
use tokio::time::Instant;

use super::caller_switch::{CallerSwitch, is_refused_seal};
use super::prepared::PreparedStatement;
use super::side_effects::leaves_nothing;
use crate::metadata::MetadataCache;

/// The longest statement in bytes that is cached, hints included. The limit is needed because the
/// caches limit the number of their entries and not their size.
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
    /// Whether the statement may stay prepared. It must not stay prepared on connections that are
    /// reset fully, where other callers could find it. Long statements do not stay prepared either,
    /// because they are rarely reused.
    pub(crate) fn is_kept(&self) -> bool {
        !self.login.role_use.is_reset_fully() && self.is_short()
    }

    /// The role as which the statement runs.
    pub(crate) fn role(&self) -> &RoleName {
        match self.switch {
            Some(CallerSwitch::Role { role, .. }) => role,
            Some(CallerSwitch::Claims(_)) | None => &self.login.role,
        }
    }

    /// The mode of the transaction that the statement opens; `None` if it opens none.
    pub(crate) fn begins(&self) -> Option<Mode> {
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
            && self.metadata.purity.is_impure(statement, &prepared.purity)
    }

    /// Whether the error may mean that the name in a hint now refers to another type.
    pub(crate) fn has_stale_hint(&self, error: &ServerError) -> bool {
        error.is_missing_type() && self.bound.hints.iter().any(Option::is_some)
    }

    /// Whether the error says that the database refused the claims that were sealed before the
    /// statement, and the statement has certainly had no effect. The result is `false` for a
    /// procedure, which may have committed before the error.
    pub(crate) fn is_seal_refused(&self, error: &ServerError) -> bool {
        let is_atomic = matches!(self.bound.statement.kind(), Kind::Read | Kind::Write);
        is_atomic
            && matches!(self.switch, Some(CallerSwitch::Claims(_)))
            && is_refused_seal(&error.rejection)
    }

    /// Whether the statement is short enough to be cached.
    pub(crate) fn is_short(&self) -> bool {
        let hints = self.bound.hints.iter().flatten();
        let hints: usize = hints.map(|TypeHint(name)| name.len()).sum();
        self.bound.statement.text().len() + hints <= SHORT
    }
}

/// Why an attempt to run a statement failed.
#[derive(Debug)]
pub(crate) enum AttemptError {
    /// The cached description was stale; the statement has not run.
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
