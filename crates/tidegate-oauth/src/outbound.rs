//! The ports to others: who carries letters.

use std::error::Error as StdError;
use std::future::Future;
use std::pin::Pin;

/// What the methods of these ports return.
pub type OutboundFuture<'a, T> =
    Pin<Box<dyn Future<Output = Result<T, OutboundError>> + Send + 'a>>;

/// Somebody outside did not do what was asked, or cannot be reached.
#[derive(Debug, thiserror::Error)]
#[error("another service failed")]
pub struct OutboundError(#[source] Box<dyn StdError + Send + Sync>);

impl OutboundError {
    /// The error with this cause.
    pub fn new(cause: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self(cause.into())
    }
}

/// A letter to one person, plain text.
#[derive(Clone, PartialEq, Eq)]
pub struct Letter {
    /// The address.
    pub to: String,
    /// What it is about, one line.
    pub subject: String,
    /// What it says.
    pub text: String,
}

impl std::fmt::Debug for Letter {
    /// Without the text, which holds a link that is as good as a password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Letter")
            .field("subject", &self.subject)
            .finish_non_exhaustive()
    }
}

/// Carries letters.
pub trait Mail: Send + Sync {
    /// Hands a letter over; when this returns, somebody else answers for it.
    fn send<'a>(&'a self, letter: &'a Letter) -> OutboundFuture<'a, ()>;
}
