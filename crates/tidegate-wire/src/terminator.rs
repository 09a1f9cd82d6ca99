//! The last resort against a backend that does not stop.

use tidegate_sql::{BoxFuture, RoleName};

/// Identifies a server process (PostgreSQL, `BackendKeyData`).
#[derive(Clone, PartialEq, Eq)]
pub struct Backend {
    /// The role that logged in. After a failover the process id may belong to another backend.
    pub role: RoleName,
    /// Its process id, as `pg_terminate_backend` takes it.
    pub process_id: i32,
    /// What proves that a cancel request comes from its client.
    pub secret_key: i32,
}

impl std::fmt::Debug for Backend {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The key is a credential: who has it can cancel the backend's statements.
        f.debug_struct("Backend")
            .field("role", &self.role)
            .field("process_id", &self.process_id)
            .finish_non_exhaustive()
    }
}

/// What is known of a backend that was to be terminated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TerminateOutcome {
    /// PostgreSQL has no such process, or not any more.
    Gone,
    /// PostgreSQL signalled the backend, which ends when it next checks for interrupts.
    Requested,
    /// PostgreSQL could not be asked.
    Unknown,
}

/// Ends server processes from a connection that no tenant can block.
pub trait Terminator: Send + Sync {
    /// Calls `pg_terminate_backend` for a process of that role. A failure is logged where it
    /// happens.
    fn terminate(&self, backend: Backend) -> BoxFuture<'_, TerminateOutcome>;

    /// Hears that a statement or a login found PostgreSQL's lock table full. Waits for nothing.
    fn lock_table_is_full(&self) {}
}
