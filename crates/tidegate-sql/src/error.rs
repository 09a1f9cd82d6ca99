//! Errors of statements. They show whether the caller, PostgreSQL or the service is at fault.

use std::time::Duration;

use tidegate_values::{MalformedValue, ValueError};

/// A result with the error of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The reason why a statement was not run, or failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The request is invalid. The text names the invalid part and what was expected.
    #[error(transparent)]
    Input(#[from] InputError),
    /// PostgreSQL rejected the statement.
    #[error("PostgreSQL refused the statement")]
    Rejected(Box<DatabaseError>),
    /// The statement did not end before its deadline.
    #[error("the statement did not end before its deadline")]
    Deadline,
    /// No connection became free in time.
    #[error("no connection became free in time")]
    PoolTimeout {
        /// How long to wait before a retry.
        retry_after: Duration,
    },
    /// PostgreSQL is unreachable, starting, stopping or out of connections.
    #[error("PostgreSQL is unavailable")]
    Unavailable {
        /// How long to wait before a retry.
        retry_after: Duration,
        /// The cause, for the log. It is a [`DatabaseError`] if PostgreSQL reported it for a
        /// statement; [`DatabaseError::fatal`] then shows whether the session ended.
        #[source]
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
    /// The database does not exist, or the role may not connect to it.
    #[error("the database is not there, or may not be connected to")]
    NoDatabase,
    /// The sink accepts no more rows, because the client no longer reads the response.
    #[error("the reader of the rows has gone")]
    SinkClosed,
    /// A result that was collected in memory exceeds the limit, given in bytes.
    #[error("the result is larger than {0} bytes")]
    ResultTooLarge(u64),
    /// The service itself failed.
    #[error("internal error")]
    Internal(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// PostgreSQL refuses logins of the caller's role until the operator repairs the role. This error
/// is the source of an [`Error::Unavailable`].
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
    /// An internal error with its cause, for the log.
    pub fn internal(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Internal(source.into())
    }

    /// Whether the error reports a value that does not match the known type of its column. This
    /// happens, for example, if the attributes of a composite type have changed since the type was
    /// loaded.
    pub fn is_malformed_value(&self) -> bool {
        matches!(self, Self::Internal(source) if source.is::<MalformedValue>())
    }

    /// The SQLSTATE, if PostgreSQL rejected the statement; `None` for any other error.
    pub fn sqlstate(&self) -> Option<&str> {
        match self {
            Self::Rejected(rejection) => Some(&rejection.sqlstate),
            _ => None,
        }
    }
}

/// PostgreSQL's error for a statement (PostgreSQL, "Error and Notice Message Fields").
#[derive(Clone, Debug, Default, PartialEq, Eq, thiserror::Error)]
#[error("{message} ({sqlstate})")]
pub struct DatabaseError {
    /// The SQLSTATE, five characters.
    pub sqlstate: String,
    /// The primary message.
    pub message: String,
    /// The secondary message, if there is one.
    pub detail: Option<String>,
    /// The suggestion for repairing the problem, if there is one.
    pub hint: Option<String>,
    /// The position of the error in the text that the caller sent, in characters from 1.
    pub position: Option<u32>,
    /// The schema of the table that caused the error.
    pub schema: Option<String>,
    /// The table that caused the error.
    pub table: Option<String>,
    /// The column that caused the error.
    pub column: Option<String>,
    /// The constraint that was violated.
    pub constraint: Option<String>,
    /// The path of the value that could not be read as its parameter's type, such as `params.id` or
    /// `params[2].id`. `None` if the statement itself failed.
    pub place: Option<String>,
    /// Whether the error ended the session. An error that ends the session is not caused by the
    /// statement.
    pub fatal: bool,
}

impl DatabaseError {
    /// The message of an error with SQLSTATE 40001 that an executor itself reports. The error means
    /// that a definition has changed since a statement that uses it was prepared. The executor
    /// cannot prepare the statement again, because it cannot repeat the earlier statements of the
    /// transaction.
    pub const DEFINITION_CHANGED: &'static str =
        "a definition that the statement uses changed while the transaction ran";

    /// Whether the message is [`Self::DEFINITION_CHANGED`]. If so, the whole transaction can be
    /// retried immediately.
    pub fn is_definition_changed(&self) -> bool {
        self.sqlstate == "40001" && self.message == Self::DEFINITION_CHANGED
    }
}

/// The reason why a request is invalid. The service detects the problem before it sends the
/// statement to PostgreSQL, or while it encodes a value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InputError {
    /// `q` is empty or contains only comments.
    #[error("`q` holds no statement")]
    EmptyStatement,
    /// A second statement follows the first.
    #[error("`q` holds more than one statement: something follows the `;` at character {position}")]
    SeveralStatements {
        /// The position of the semicolon, in characters from 1.
        position: usize,
    },
    /// The text cannot be parsed: it has an unterminated string, comment or quoted identifier, a
    /// NUL, a numbered parameter such as `$1`, too many placeholders, or an invalid number or name.
    #[error("`q` cannot be read: {what} at character {position}")]
    UnreadableStatement {
        /// The part of the text that is wrong.
        what: &'static str,
        /// The position of the wrong part, in characters from 1.
        position: usize,
    },
    /// The statement is not allowed, because of its kind or because of a setting that it changes.
    #[error("{keyword} is not allowed here: {reason}")]
    StatementNotAllowed {
        /// The statement's keywords.
        keyword: &'static str,
        /// The reason, and what to do instead.
        reason: &'static str,
    },
    /// A placeholder has no value.
    #[error("`{place}` has no value for the placeholder `:{name}`")]
    MissingParameter {
        /// The parameter set without the value: `params`, or `params[2]`.
        place: String,
        /// The name of the placeholder.
        name: String,
    },
    /// There is a value whose name is not a placeholder of the statement.
    #[error("`{place}.{name}` names no placeholder of the statement")]
    ExtraParameter {
        /// The object that has the member: `params`, or `params[2]`.
        place: String,
        /// The name of the member.
        name: String,
    },
    /// A type hint does not name a type of the database.
    #[error("`type_hints.{name}` is `{hint}`, which is not a type of this database")]
    UnknownHint {
        /// The placeholder or column that has the hint.
        name: String,
        /// The hint as the caller wrote it.
        hint: String,
    },
    /// A value or a format does not fit its type.
    #[error(transparent)]
    Value(#[from] ValueError),
    /// A field of the request is invalid.
    #[error("`{field}`: {problem}")]
    InvalidField {
        /// The path of the field.
        field: String,
        /// The problem with the field.
        problem: String,
    },
}
