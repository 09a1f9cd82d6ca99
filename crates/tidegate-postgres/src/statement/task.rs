//! A statement with everything that decides how it runs.

use tidegate_sql::{BoundStatement, Error, Login, Mode, RoleName, RoleUse, TypeHint};
use tidegate_wire::rejection::ServerError;
use tokio::time::Instant;

use super::prepared::PreparedStatement;
use super::side_effects::leaves_nothing;
use crate::metadata::MetadataCache;

/// The longest statement that is cached, hints included. The caches limit the number of their
/// entries, not their size.
const SHORT: usize = 16 << 10;

/// The switch to a caller's role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RoleSwitch<'a> {
    /// The caller's role.
    pub(crate) role: &'a RoleName,
    /// A `SELECT` that switches to the role in its only parameter until the transaction ends. If it
    /// fails, nothing after it runs.
    pub(crate) text: &'static str,
}

/// A statement to run.
#[derive(Debug)]
pub(crate) struct StatementTask<'a> {
    pub(crate) bound: &'a BoundStatement,
    /// The login of the connection.
    pub(crate) login: &'a Login,
    /// The switch to the caller's role, if the connection logged in as another role.
    pub(crate) switch: Option<RoleSwitch<'a>>,
    pub(crate) metadata: &'a MetadataCache,
    pub(crate) deadline: Option<Instant>,
    pub(crate) position: TransactionPosition,
}

/// The position of a statement in its transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TransactionPosition {
    /// In a transaction of its own.
    Alone,
    /// At the beginning of a transaction.
    First(Mode),
    /// After other statements of the transaction.
    Within,
}

impl StatementTask<'_> {
    /// Whether the statement may stay prepared. On connections of anonymous callers other callers
    /// could find it, and long statements are rarely reused.
    pub(crate) fn is_kept(&self) -> bool {
        self.login.role_use != RoleUse::Anonymous && self.is_short()
    }

    /// The role as which the statement runs.
    pub(crate) fn role(&self) -> &RoleName {
        self.switch.map_or(&self.login.role, |switch| switch.role)
    }

    /// The mode of the transaction that the statement opens.
    pub(crate) fn begins(&self) -> Option<Mode> {
        match self.position {
            TransactionPosition::First(mode) => Some(mode),
            TransactionPosition::Alone | TransactionPosition::Within => None,
        }
    }

    /// Whether the statement may have side effects although its text has none, because it mentions
    /// an untrusted name.
    pub(crate) fn is_impure(&self, prepared: &PreparedStatement) -> bool {
        let statement = &self.bound.statement;
        leaves_nothing(self.bound, self.login.role_use)
            && self.metadata.purity.is_impure(statement, &prepared.purity)
    }

    /// Whether an error may only mean that a hint names another type now.
    pub(crate) fn has_stale_hint(&self, error: &ServerError) -> bool {
        error.is_missing_type() && self.bound.hints.iter().any(Option::is_some)
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
    /// PostgreSQL refused the switch to the caller's role; the statement has not run.
    RoleRefused(Error),
    /// Anything else.
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
