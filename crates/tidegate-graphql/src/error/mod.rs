//! Errors of GraphQL requests (GraphQL, section 7.1.2, "Errors").

mod list;
mod sql;
mod summary;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use summary::ErrorSummary;

use tidegate_plan::PathSegment;
use tidegate_sql::DatabaseError;

pub(crate) use self::list::Errors;

/// The errors of root fields of a query that are null, by the number of the field.
pub(crate) type FieldErrors = BTreeMap<usize, Error>;

/// The kind of an error: the value of `extensions.code`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// The document is malformed.
    ParseFailed,
    /// The document is not valid for the schema.
    ValidationFailed,
    /// A value, or the request itself, is missing or invalid.
    BadUserInput,
    /// A token is required.
    Unauthenticated,
    /// The role lacks a privilege.
    Forbidden,
    /// The write violates a constraint.
    ConstraintViolation,
    /// The deadline passed.
    Timeout,
    /// A concurrent transaction interfered; a retry may succeed.
    Conflict,
    /// The request exceeds a limit.
    TooComplex,
    /// An internal error, or the database is unavailable.
    Internal,
}

impl Code {
    /// All codes, in the order of their definition.
    pub const ALL: [Self; 10] = [
        Self::ParseFailed,
        Self::ValidationFailed,
        Self::BadUserInput,
        Self::Unauthenticated,
        Self::Forbidden,
        Self::ConstraintViolation,
        Self::Timeout,
        Self::Conflict,
        Self::TooComplex,
        Self::Internal,
    ];

    /// The code as clients see it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ParseFailed => "GRAPHQL_PARSE_FAILED",
            Self::ValidationFailed => "GRAPHQL_VALIDATION_FAILED",
            Self::BadUserInput => "BAD_USER_INPUT",
            Self::Unauthenticated => "UNAUTHENTICATED",
            Self::Forbidden => "FORBIDDEN",
            Self::ConstraintViolation => "CONSTRAINT_VIOLATION",
            Self::Timeout => "TIMEOUT",
            Self::Conflict => "CONFLICT",
            Self::TooComplex => "TOO_COMPLEX",
            Self::Internal => "INTERNAL_SERVER_ERROR",
        }
    }
}

/// A location in a document. Both numbers count from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Location {
    /// The line.
    pub line: u32,
    /// The character within the line.
    pub column: u32,
}

/// An error of a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// The message, for the developer of the client.
    pub message: String,
    /// The locations in the document.
    pub locations: Vec<Location>,
    /// The path in the response; empty if the error is about the whole request.
    pub path: Vec<PathSegment>,
    /// What kind of error it is.
    pub code: Code,
    /// PostgreSQL's error, if it is the cause.
    pub rejection: Option<Box<DatabaseError>>,
}

impl Error {
    /// An error about the whole request.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            locations: Vec::new(),
            path: Vec::new(),
            code,
            rejection: None,
        }
    }

    /// A missing or invalid value.
    pub fn input(message: impl Into<String>) -> Self {
        Self::new(Code::BadUserInput, message)
    }

    /// Adds a location.
    pub fn at(mut self, location: Location) -> Self {
        self.locations = vec![location];
        self
    }

    /// Adds a response key and its location, unless the error already has a path or a location.
    pub fn within(mut self, key: &Arc<str>, location: Location) -> Self {
        self.path.insert(0, PathSegment::Key(Arc::clone(key)));
        if self.locations.is_empty() {
            self.locations.push(location);
        }
        self
    }
}
