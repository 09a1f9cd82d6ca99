//! What can go wrong with a statement, and whose fault it is.

use std::time::Duration;

use tidegate_values::{MalformedValue, ValueError};

/// The result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a statement was not run, or failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The caller's request is wrong; the text says where and what was expected.
    #[error(transparent)]
    Input(#[from] InputError),
    /// PostgreSQL refused the caller's statement.
    #[error("PostgreSQL refused the statement")]
    Rejected(Box<Rejection>),
    /// The deadline passed.
    #[error("the statement did not end before its deadline")]
    Deadline,
    /// No connection became free in time.
    #[error("no connection became free in time")]
    PoolTimeout {
        /// When to try again.
        retry_after: Duration,
    },
    /// PostgreSQL cannot be reached, or is starting, stopping or full.
    #[error("PostgreSQL is unavailable")]
    Unavailable {
        /// When to try again.
        retry_after: Duration,
        /// What failed, for the log; a [`Rejection`] where PostgreSQL said so of a statement, which
        /// is [fatal](Rejection::fatal) where the session is gone.
        #[source]
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
    /// The database does not exist (any more), or the role may not connect to it.
    #[error("the database is not there, or may not be connected to")]
    NoDatabase,
    /// Whoever reads the rows has gone.
    #[error("the reader of the rows has gone")]
    SinkClosed,
    /// A buffered result grew beyond its limit of so many bytes.
    #[error("the result is larger than {0} bytes")]
    ResultTooLarge(u64),
    /// Our fault.
    #[error("internal error")]
    Internal(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// PostgreSQL refuses the login of the caller's role until an operator repairs it; the source of an
/// [`Error::Unavailable`].
#[derive(Debug, thiserror::Error)]
#[error("PostgreSQL refuses the login of the user's role")]
pub struct LoginRefused(#[source] pub Box<dyn std::error::Error + Send + Sync>);

impl From<MalformedValue> for Error {
    fn from(error: MalformedValue) -> Self {
        Self::internal(error)
    }
}

impl From<ValueError> for Error {
    fn from(error: ValueError) -> Self {
        Self::Input(error.into())
    }
}

impl Error {
    /// An error that is ours, with its cause for the log.
    pub fn internal(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Internal(source.into())
    }

    /// Whether a value was not of the type that was known for its column. A composite type may have
    /// got other attributes since it was looked up.
    pub fn is_malformed_value(&self) -> bool {
        matches!(self, Self::Internal(source) if source.is::<MalformedValue>())
    }

    /// The SQLSTATE that PostgreSQL gave, where it gave one.
    pub fn sqlstate(&self) -> Option<&str> {
        match self {
            Self::Rejected(rejection) => Some(&rejection.sqlstate),
            _ => None,
        }
    }
}

/// What PostgreSQL said when it refused a statement (PostgreSQL, "Error and Notice Message
/// Fields").
#[derive(Clone, Debug, Default, PartialEq, Eq, thiserror::Error)]
#[error("{message} ({sqlstate})")]
pub struct Rejection {
    /// Five characters.
    pub sqlstate: String,
    /// The primary message.
    pub message: String,
    /// The optional second message.
    pub detail: Option<String>,
    /// The optional advice.
    pub hint: Option<String>,
    /// Character position (from 1) in the text that the caller wrote.
    pub position: Option<u32>,
    /// The schema of the table that the error is about.
    pub schema: Option<String>,
    /// The table that the error is about.
    pub table: Option<String>,
    /// The column that the error is about.
    pub column: Option<String>,
    /// The constraint that the error is about.
    pub constraint: Option<String>,
    /// How the request names the value that could not be read as its parameter's type, such as
    /// `params.id` or `params[2].id`; `None` when the statement itself failed.
    pub place: Option<String>,
    /// Whether the session ended with it: PostgreSQL is then the trouble, not the statement.
    pub fatal: bool,
}

impl Rejection {
    /// The message of an executor when a definition that a statement uses changed since the
    /// statement was prepared, and the transaction has statements behind it that cannot be
    /// repeated one by one; its SQLSTATE is 40001.
    pub const REDEFINED: &'static str =
        "a definition that the statement uses changed while the transaction ran";

    /// Whether the whole transaction may be tried again at once for [`Self::REDEFINED`].
    pub fn is_redefinition(&self) -> bool {
        self.sqlstate == "40001" && self.message == Self::REDEFINED
    }
}

/// What is wrong with a request, before PostgreSQL saw it or while a value was converted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InputError {
    /// `q` is empty or holds only comments.
    #[error("`q` holds no statement")]
    EmptyStatement,
    /// A second statement follows the first.
    #[error("`q` holds more than one statement: something follows the `;` at character {position}")]
    SeveralStatements {
        /// Character position (from 1) of the semicolon.
        position: usize,
    },
    /// The statement's text cannot be read: an unterminated string, comment or quote, NUL.
    #[error("`q` cannot be read: {what} at character {position}")]
    UnreadableStatement {
        /// What was found.
        what: &'static str,
        /// Character position (from 1).
        position: usize,
    },
    /// A kind of statement that a request may not hold.
    #[error("{keyword} is not allowed here: {reason}")]
    StatementNotAllowed {
        /// The statement's keywords.
        keyword: &'static str,
        /// Why, and what to do instead.
        reason: &'static str,
    },
    /// A placeholder has no value.
    #[error("`{place}` has no value for the placeholder `:{name}`")]
    MissingParameter {
        /// Where it was looked for: `params`, or `params[2]`.
        place: String,
        /// The placeholder.
        name: String,
    },
    /// A value or hint or format names no placeholder of the statement.
    #[error("`{place}.{name}` names no placeholder of the statement")]
    ExtraParameter {
        /// Where it stands: `params`, `params[2]`.
        place: String,
        /// The member.
        name: String,
    },
    /// A type hint that PostgreSQL does not know.
    #[error("`type_hints.{name}` is `{hint}`, which is no type of this database")]
    UnknownHint {
        /// The placeholder or column.
        name: String,
        /// The hint as given.
        hint: String,
    },
    /// A value or a format does not fit its type.
    #[error(transparent)]
    Value(#[from] ValueError),
    /// A member of the request is wrong.
    #[error("`{member}`: {problem}")]
    InvalidMember {
        /// The member's path.
        member: String,
        /// What is wrong and what was expected.
        problem: String,
    },
}
