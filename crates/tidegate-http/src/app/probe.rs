//! What `/readyz` asks before it says that the node is ready.

use tidegate_sql::BoxFuture;

/// A part of the service that may be away for a while.
pub trait Probe: Send + Sync {
    /// Its name in the answer.
    fn name(&self) -> &'static str;

    /// Whether the node should get no work while this part cannot do its own. A part that is not
    /// essential only says that it is degraded.
    fn is_essential(&self) -> bool {
        true
    }

    /// What it gets its work from, where that is a choice; the answer has it as `<name>_source`.
    fn source(&self) -> Option<&'static str> {
        None
    }

    /// Whether it can do its work now.
    fn is_ready(&self) -> BoxFuture<'_, bool>;
}
