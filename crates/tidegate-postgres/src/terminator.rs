//! The last resort against a backend that does not stop.

use tidegate_sql::BoxFuture;

/// Identifies a server process (PostgreSQL, `BackendKeyData`).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Backend {
    /// Its process id, as `pg_terminate_backend` takes it.
    pub process_id: i32,
    /// What proves that a cancel request comes from its client.
    pub secret_key: i32,
}

impl std::fmt::Debug for Backend {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The key is a credential: who has it can cancel the backend's statements.
        f.debug_struct("Backend")
            .field("process_id", &self.process_id)
            .finish_non_exhaustive()
    }
}

/// Ends server processes from a connection that no tenant can block.
pub trait Terminator: Send + Sync {
    /// Calls `pg_terminate_backend`. A failure is logged where it happens: nobody could do more.
    fn terminate(&self, backend: Backend) -> BoxFuture<'_, ()>;
}
