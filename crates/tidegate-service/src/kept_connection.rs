//! A connection of the administrator that stays open between statements.

use std::fmt;
use std::sync::Arc;

use deadpool::Runtime;
use deadpool::managed::{Pool, PoolError};
use tidegate_sql::DatabaseName;
use tidegate_wire::{Config, ConnectError};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::connect::CONTROL;
use super::service_manager::ServiceManager;

/// A connection of the administrator to one database. The first statement opens the connection, and
/// later statements reuse it. So a statement that runs periodically does not need a login each
/// time. Statements run one after the other.
pub struct KeptConnection {
    pool: Pool<ServiceManager>,
}

/// Why a statement on a [`KeptConnection`] failed.
#[derive(Debug, thiserror::Error)]
pub enum KeptConnectionError {
    /// The connection could not be opened.
    #[error(transparent)]
    Connect(ConnectError),
    /// The statement failed.
    #[error(transparent)]
    Statement(tokio_postgres::Error),
}

impl KeptConnection {
    /// Creates a connection to `database`. It is opened by the first statement.
    ///
    /// # Panics
    ///
    /// Never. Building the pool fails only for a pool that has time limits and no runtime, and this
    /// pool has a runtime.
    pub fn new(config: &Arc<Config>, database: &DatabaseName) -> Self {
        let manager = ServiceManager::new(config, database, CONTROL);
        let pool = Pool::builder(manager)
            .max_size(1)
            .runtime(Runtime::Tokio1)
            .build()
            .expect("a pool with a runtime can be built");
        Self { pool }
    }

    /// Runs a query.
    ///
    /// # Errors
    ///
    /// If no connection can be opened, or the statement fails.
    pub async fn query(
        &self,
        query: &str,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, KeptConnectionError> {
        let client = self.pool.get().await.map_err(|error| match error {
            PoolError::Backend(error) => KeptConnectionError::Connect(error),
            other => KeptConnectionError::Connect(ConnectError::Unreachable(
                std::io::Error::other(other),
            )),
        })?;
        let rows = client.query(query, values).await;
        rows.map_err(KeptConnectionError::Statement)
    }
}

impl fmt::Debug for KeptConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeptConnection").finish_non_exhaustive()
    }
}
