//! Errors of GraphQL requests (GraphQL, section 7.1.2, "Errors").

mod json;
mod list;
mod sql;
mod summary;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use summary::ErrorSummary;

use serde::Serialize;
use tidegate_plan::PathSegment;
use tidegate_sql::DatabaseError;

pub(crate) use self::json::ResponsePath;
pub(crate) use self::list::Errors;

/// The errors of root fields that are null in the response, by the index of the root field.
pub(crate) type FieldErrors = BTreeMap<usize, Error>;

/// The kind of an error: the value of `extensions.code`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// The document cannot be parsed.
    ParseFailed,
    /// The document is not valid for the schema.
    ValidationFailed,
    /// A value of the request, or the request itself, is missing or invalid.
    BadUserInput,
    /// A token is required.
    Unauthenticated,
    /// The role lacks a privilege.
    Forbidden,
    /// The token's scopes do not allow the operation.
    InsufficientScope,
    /// The write violates a constraint of the database.
    ConstraintViolation,
    /// The deadline of the request passed.
    Timeout,
    /// The request conflicted with a concurrent transaction. A retry may succeed.
    Conflict,
    /// The request exceeds a limit.
    TooComplex,
    /// The service itself failed, or the database is unavailable.
    Internal,
}

impl Code {
    /// All codes, in the order of their definition.
    pub const ALL: [Self; 11] = [
        Self::ParseFailed,
        Self::ValidationFailed,
        Self::BadUserInput,
        Self::Unauthenticated,
        Self::Forbidden,
        Self::InsufficientScope,
        Self::ConstraintViolation,
        Self::Timeout,
        Self::Conflict,
        Self::TooComplex,
        Self::Internal,
    ];

    /// The value of `extensions.code`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ParseFailed => "GRAPHQL_PARSE_FAILED",
            Self::ValidationFailed => "GRAPHQL_VALIDATION_FAILED",
            Self::BadUserInput => "BAD_USER_INPUT",
            Self::Unauthenticated => "UNAUTHENTICATED",
            Self::Forbidden => "FORBIDDEN",
            Self::InsufficientScope => "INSUFFICIENT_SCOPE",
            Self::ConstraintViolation => "CONSTRAINT_VIOLATION",
            Self::Timeout => "TIMEOUT",
            Self::Conflict => "CONFLICT",
            Self::TooComplex => "TOO_COMPLEX",
            Self::Internal => "INTERNAL_SERVER_ERROR",
        }
    }
}

/// A location in a document. The numbers count from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Location {
    /// The number of the line.
    pub line: u32,
    /// The number of the character within the line.
    pub column: u32,
}

/// An error of a GraphQL request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// The message. It is meant for the developer of the client.
    pub message: String,
    /// The locations in the document.
    pub locations: Vec<Location>,
    /// The path in the response. It is empty if the error concerns the whole request.
    pub path: Vec<PathSegment>,
    /// The kind of the error.
    pub code: Code,
    /// PostgreSQL's error, if it is the cause.
    pub rejection: Option<Box<DatabaseError>>,
}

impl Error {
    /// An error that concerns the whole request.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            locations: Vec::new(),
            path: Vec::new(),
            code,
            rejection: None,
        }
    }

    /// The error for a missing or invalid value.
    pub fn input(message: impl Into<String>) -> Self {
        Self::new(Code::BadUserInput, message)
    }

    /// Replaces the locations by a location in the document.
    pub fn at(mut self, location: Location) -> Self {
        self.locations = vec![location];
        self
    }

    /// Prepends a response key to the path. Sets the location, unless the error has one already.
    pub fn within(mut self, key: &Arc<str>, location: Location) -> Self {
        self.path.insert(0, PathSegment::Key(Arc::clone(key)));
        if self.locations.is_empty() {
            self.locations.push(location);
        }
        self
    }
}
