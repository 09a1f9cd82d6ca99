//! What can go wrong with methods, and whose fault it is.

use std::fmt;

use tidegate_sql::InputError;
use tidegate_sql::request::RequestError;

use crate::name::MethodName;
use crate::store::StoreError;

/// The result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why methods were not defined, changed or found.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The body is no JSON text, no definition, or a member is wrong; the text names it.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// `q` is no statement that a method may hold.
    #[error("{}{source}", Place(*index))]
    Statement {
        /// Where the definition stands when the body is an array.
        index: Option<usize>,
        /// What is wrong.
        source: InputError,
    },
    /// Methods of these names exist already, or one body defines a name twice.
    #[error("a method of this name exists already: {}", Names(.0))]
    AlreadyExists(Vec<MethodName>),
    /// There are no methods of these names.
    #[error("there is no method of this name: {}", Names(.0))]
    NotFound(Vec<String>),
    /// These methods are another user's.
    #[error("only its creator and the owner may change or drop a method: {}", Names(.0))]
    NotAllowed(Vec<MethodName>),
    /// The store failed; not the caller's fault.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<InputError> for Error {
    fn from(error: InputError) -> Self {
        Self::Request(error.into())
    }
}

struct Place(Option<usize>);

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(index) => write!(f, "[{index}]: "),
            None => Ok(()),
        }
    }
}

struct Names<'a, T>(&'a [T]);

impl<T: fmt::Display> fmt::Display for Names<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, name) in self.0.iter().enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            write!(f, "{comma}`{name}`")?;
        }
        Ok(())
    }
}
