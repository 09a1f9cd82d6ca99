//! Errors of the storage port.

use std::error::Error as StdError;

/// Why a store operation failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The store cannot be reached now; a retry may succeed.
    #[error("the store cannot be reached")]
    Unavailable(#[source] Box<dyn StdError + Send + Sync>),
    /// The store returned something unexpected: the store or this crate has a bug.
    #[error("the store failed")]
    Failed(#[source] Box<dyn StdError + Send + Sync>),
}
