//! Errors of methods. They show whether the caller, the method's author or the service is at fault.

use std::error::Error as StdError;
use std::fmt;

use tidegate_sql::InputError;
use tidegate_sql::request::RequestError;

use crate::name::MethodName;

/// A result with the error of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The reason why an operation of the store failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The store is unreachable; a retry may succeed.
    #[error("the store of the methods cannot be reached")]
    Unavailable(#[source] Box<dyn StdError + Send + Sync>),
    /// The store returned something unexpected: the store or this service has a bug.
    #[error("the store of the methods failed")]
    Failed(#[source] Box<dyn StdError + Send + Sync>),
}

/// The reason why methods were not defined, changed or found.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The body is not JSON, is not a definition, or has an invalid member. The text names the
    /// member.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The text `q` is not a statement that a method may have.
    #[error("{}{source}", DefinitionPosition(*index))]
    Statement {
        /// The index of the definition in the body; `None` if the body is a single definition.
        index: Option<usize>,
        /// The reason why the statement is rejected.
        source: InputError,
    },
    /// Methods with these names exist, or the body defines a name twice.
    #[error("a method of this name exists already: {}", NameList(.0))]
    AlreadyExists(Vec<MethodName>),
    /// Methods with these names do not exist.
    #[error("method not found: {}", NameList(.0))]
    NotFound(Vec<String>),
    /// The user may not change these methods, because another user created them.
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
