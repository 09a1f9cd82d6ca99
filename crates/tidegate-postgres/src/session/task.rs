//! A statement with everything that decides how it is run.

use tidegate_sql::{
    BoundStatement, DatabaseError, Error, Login, Mode, RoleName, RoleUse, TypeHint,
};
use tidegate_wire::rejection::ServerError;
use tidegate_wire::{is_outage_of_statement, outage};
use tokio::time::Instant;

use super::cache::{Prepared, is_same};
use super::prefix::Switch;
use super::reset::is_harmless;
use crate::connection::Connection;
use crate::dictionary::Dictionary;

/// The longest statement, hints included, that is remembered: caches are bounded by the number
/// of their entries.
const SHORT: usize = 16 << 10;

/// A statement to run.
#[derive(Debug)]
pub(crate) struct Task<'a> {
    pub(crate) bound: &'a BoundStatement,
    /// As what the connection logged in.
    pub(crate) login: &'a Login,
    /// The switch to the caller's role, where the connection logged in as another.
    pub(crate) switch: Option<Switch<'a>>,
    pub(crate) dictionary: &'a Dictionary,
    pub(crate) deadline: Option<Instant>,
    pub(crate) place: Place,
}

/// Where a statement stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// In a transaction of its own.
    Alone,
    /// At the beginning of a transaction.
    First(Mode),
    /// Further on in a transaction.
    Within,
}

impl Task<'_> {
    /// Whether the statement may stay prepared: a stranger must not find it, and a long one is
    /// hardly used again.
    pub(crate) fn is_kept(&self) -> bool {
        self.login.role_use != RoleUse::Anonymous && self.is_short()
    }

    /// Whether another task has the same text and hints, and so the same prepared statement.
    pub(crate) fn is_same_statement(&self, other: &Self) -> bool {
        is_same(&self.bound.statement, &self.bound.hints, other.bound)
    }

    /// The role as which the statement runs.
    pub(crate) fn role(&self) -> &RoleName {
        self.switch.map_or(&self.login.role, |switch| switch.role)
    }

    /// The transaction that the statement opens.
    pub(crate) fn begins(&self) -> Option<Mode> {
        match self.place {
            Place::First(mode) => Some(mode),
            Place::Alone | Place::Within => None,
        }
    }

    /// Whether the statement is harmless by its text but may mention what is not, and so leave
    /// something in the session.
    pub(crate) fn is_suspect(&self, prepared: &Prepared) -> bool {
        let statement = &self.bound.statement;
        is_harmless(self.bound, self.login.role_use)
            && self
                .dictionary
                .belief
                .suspects(statement, &prepared.verdict)
    }

    /// Whether an error may only say that a hint names another type now.
    pub(crate) fn has_lost_hint(&self, error: &ServerError) -> bool {
        error.is_missing_type() && self.bound.hints.iter().any(Option::is_some)
    }

    /// Whether the statement is worth its place in a cache.
    pub(crate) fn is_short(&self) -> bool {
        let hints = self.bound.hints.iter().flatten();
        let hints: usize = hints.map(|TypeHint(name)| name.len()).sum();
        self.bound.statement.text().len() + hints <= SHORT
    }
}

/// Why an attempt to run a statement failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// What was known of the statement is out of date, and nothing of it has run.
    Stale(Box<ServerError>),
    /// For good.
    Final(Error),
}

/// Why a statement did not run to its end.
#[derive(Debug)]
pub(crate) enum RunError {
    /// PostgreSQL refused the switch to the caller's role; nothing of the statement has run.
    RoleRefused(Error),
    /// Anything else.
    Failed(Error),
}

impl RunError {
    /// The error that a caller gets.
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

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Final(error)
    }
}

impl Connection {
    /// The error that a caller gets for what PostgreSQL said of its statement.
    pub(crate) fn rejected(&mut self, error: ServerError, bound: &BoundStatement) -> Error {
        let mut rejection = error.rejection;
        if rejection.sqlstate.starts_with("57P0") {
            self.give_up();
        }
        if is_outage_of_statement(&rejection.sqlstate) {
            return outage(rejection);
        }
        explain(&mut rejection);
        rejection.position = rejection
            .position
            .map(|position| bound.statement.caller_position(position));
        // What is wrong with a parameter or where one stands, which PostgreSQL calls by number.
        if matches!(&*rejection.sqlstate, "42601" | "42P08" | "42P18") {
            rejection.message = bound.statement.caller_message(&rejection.message);
        }
        Error::Rejected(Box::new(rejection))
    }
}

/// Says what PostgreSQL leaves out. Messages in English tell it: the first is never translated, the
/// last is matched where it is not.
fn explain(rejection: &mut DatabaseError) {
    match &*rejection.sqlstate {
        // Two statements have changed a row of a catalog at once, such as that of a role.
        // PostgreSQL has no code for it.
        "XX000" if rejection.message.starts_with("tuple concurrently ") => {
            "40001".clone_into(&mut rejection.sqlstate);
        }
        // The input functions of PostGIS and hstore have no code for a text that they cannot read.
        "XX000" if rejection.place.is_some() => "22P02".clone_into(&mut rejection.sqlstate),
        "57014" if rejection.message.ends_with("statement timeout") => {
            let whose = "the limit is `statement_timeout` of the role, the database or the server";
            rejection.hint.get_or_insert_with(|| whose.to_owned());
        }
        _ => {}
    }
}
