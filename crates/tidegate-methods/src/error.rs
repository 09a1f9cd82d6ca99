//! Errors of methods, and who is at fault.

use std::error::Error as StdError;
use std::fmt;

use tidegate_sql::InputError;
use tidegate_sql::request::RequestError;

use crate::name::MethodName;

/// The result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an operation of the store failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The store is unreachable; a retry may succeed.
    #[error("the store of the methods cannot be reached")]
    Unavailable(#[source] Box<dyn StdError + Send + Sync>),
    /// The store returned something unexpected: a defect of the store or of this service.
    #[error("the store of the methods failed")]
    Failed(#[source] Box<dyn StdError + Send + Sync>),
}

/// Why methods were not defined, changed or found.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The body is not JSON, not a definition, or has an invalid member, which the text names.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// `q` is not a statement that a method may have.
    #[error("{}{source}", DefinitionPosition(*index))]
    Statement {
        /// The index of the definition, if the body is an array.
        index: Option<usize>,
        /// The problem.
        source: InputError,
    },
    /// Methods with these names exist, or the body defines a name twice.
    #[error("a method of this name exists already: {}", NameList(.0))]
    AlreadyExists(Vec<MethodName>),
    /// Methods with these names do not exist.
    #[error("method not found: {}", NameList(.0))]
    NotFound(Vec<String>),
    /// These methods belong to another user.
    #[error("only its creator and the owner may change or drop a method: {}", NameList(.0))]
    NotAllowed(Vec<MethodName>),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<InputError> for Error {
    fn from(error: InputError) -> Self {
        Self::Request(error.into())
    }
}

struct DefinitionPosition(Option<usize>);

impl fmt::Display for DefinitionPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(index) => write!(f, "[{index}]: "),
            None => Ok(()),
        }
    }
}

struct NameList<'a, T>(&'a [T]);

impl<T: fmt::Display> fmt::Display for NameList<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, name) in self.0.iter().enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            write!(f, "{comma}`{name}`")?;
        }
        Ok(())
    }
}
