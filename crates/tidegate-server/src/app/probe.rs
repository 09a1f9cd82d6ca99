//! What `/readyz` asks before it says that the node is ready.

use tidegate_sql::BoxFuture;

/// A part of the service that may be away for a while.
pub trait Probe: Send + Sync {
    /// Its name in the answer.
    fn name(&self) -> &'static str;

    /// Whether it can do its work now.
    fn is_ready(&self) -> BoxFuture<'_, bool>;
}
