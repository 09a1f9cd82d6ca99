//! Defines how a backend that does not react to a cancel request is terminated.

use tidegate_sql::{BoxFuture, RoleName};

/// Identifies a backend (PostgreSQL, `BackendKeyData`).
#[derive(Clone, PartialEq, Eq)]
pub struct Backend {
    /// The role that logged in. It is compared before the backend is terminated, because after a
    /// failover the process id may belong to a backend of another role.
    pub role: RoleName,
    /// The process id, for `pg_terminate_backend`.
    pub process_id: i32,
    /// The secret that authorises cancel requests.
    pub secret_key: i32,
}

impl std::fmt::Debug for Backend {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The key is left out, because it is a credential: its holder can cancel the backend's
        // statements.
        f.debug_struct("Backend")
            .field("role", &self.role)
            .field("process_id", &self.process_id)
            .finish_non_exhaustive()
    }
}

/// The result of a termination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TerminateOutcome {
    /// The backend does not exist, or no longer exists.
    Gone,
    /// PostgreSQL signalled the backend, which ends at its next check for interrupts.
    Requested,
    /// The outcome is unknown, because PostgreSQL could not be reached.
    Unknown,
}

/// Terminates backends. Uses a connection that no tenant can block.
pub trait BackendTerminator: Send + Sync {
    /// Calls `pg_terminate_backend` for the backend if it has this process id and role. Logs
    /// failures.
    fn terminate(&self, backend: Backend) -> BoxFuture<'_, TerminateOutcome>;

    /// Reports that a statement or a login found PostgreSQL's lock table full. Does not wait until
    /// the table has room.
    fn lock_table_is_full(&self) {}
}
