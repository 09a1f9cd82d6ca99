//! Terminates backends of a standby.

use std::sync::Arc;
use std::time::Duration;

use tidegate_sql::BoxFuture;
use tidegate_wire::{Backend, BackendTerminator, Config, TerminateOutcome};
use tokio::time::timeout;

use super::kept_connection::KeptConnection;
use super::session::TERMINATE;

/// The time limit for terminating a backend.
const LIMIT: Duration = Duration::from_secs(5);

/// Terminates backends of one standby, on a connection that is opened when it is needed.
#[derive(Debug)]
pub struct StandbyTerminator(KeptConnection);

impl StandbyTerminator {
    /// A terminator for the server of `config`.
    pub fn new(config: &Arc<Config>) -> Self {
        Self(KeptConnection::new(config, &config.admin_database))
    }
}

impl BackendTerminator for StandbyTerminator {
    fn terminate(&self, backend: Backend) -> BoxFuture<'_, TerminateOutcome> {
        Box::pin(async move {
            let role = backend.role.as_str();
            let values: [&(dyn tokio_postgres::types::ToSql + Sync); 2] =
                [&backend.process_id, &role];
            match timeout(LIMIT, self.0.query(TERMINATE, &values)).await {
                Ok(Ok(ended)) if ended.is_empty() => TerminateOutcome::Gone,
                Ok(Ok(_)) => TerminateOutcome::Requested,
                Ok(Err(_)) | Err(_) => TerminateOutcome::Unknown,
            }
        })
    }
}
