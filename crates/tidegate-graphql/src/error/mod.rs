//! What goes wrong with a GraphQL request, in the shape in which a client reads it (GraphQL,
//! section 7.1.2, "Errors").

mod list;
mod sql;
mod summary;

use std::sync::Arc;

pub use summary::ErrorSummary;

use tidegate_sql::Rejection;

pub(crate) use self::list::Errors;

/// What kind of error it is; the word in `extensions.code`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// The document is no GraphQL.
    ParseFailed,
    /// The document does not fit the schema.
    ValidationFailed,
    /// A value is missing or wrong, or the request itself.
    BadUserInput,
    /// A token is needed.
    Unauthenticated,
    /// The role may not do that.
    Forbidden,
    /// A constraint of the database speaks against it.
    ConstraintViolation,
    /// It took too long.
    Timeout,
    /// Another transaction was in the way; the same request may succeed now.
    Conflict,
    /// The request is larger than a role may ask for.
    TooComplex,
    /// Our fault, or the database is away.
    Internal,
}

impl Code {
    /// All of them, in the order of their definition.
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

    /// The word that clients see.
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

/// A place in a document, both numbers from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Location {
    /// The line.
    pub line: u32,
    /// The character in the line.
    pub column: u32,
}

/// A step of the path of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A response key.
    Key(Arc<str>),
    /// The number of an element.
    Index(usize),
}

/// An error of a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// What is wrong, for the developer of a client.
    pub message: String,
    /// Where in the document.
    pub locations: Vec<Location>,
    /// Where in the response; empty when it is about the whole.
    pub path: Vec<Step>,
    /// What kind of error it is.
    pub code: Code,
    /// What PostgreSQL said.
    pub rejection: Option<Box<Rejection>>,
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

    /// A value is missing or wrong.
    pub fn input(message: impl Into<String>) -> Self {
        Self::new(Code::BadUserInput, message)
    }

    /// The same error, at this place of the document.
    pub fn at(mut self, location: Location) -> Self {
        self.locations = vec![location];
        self
    }

    /// The same error, at this response key; what is known already stays.
    pub fn within(mut self, key: &Arc<str>, location: Location) -> Self {
        self.path.insert(0, Step::Key(Arc::clone(key)));
        if self.locations.is_empty() {
            self.locations.push(location);
        }
        self
    }
}
