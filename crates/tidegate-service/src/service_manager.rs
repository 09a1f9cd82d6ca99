//! Opens the connections of the service's pools, and decides which of them may be reused.

use std::ops::Deref;
use std::sync::Arc;

use deadpool::managed::{Manager, Metrics, RecycleError, RecycleResult};
use deadpool_postgres::ClientWrapper;
use tidegate_sql::DatabaseName;
use tidegate_wire::{Config, ConnectError, Target};
use tracing::debug;

use super::connect::connect_to_host;

/// A connection of a pool.
pub(super) struct ServiceClient {
    client: ClientWrapper,
    host: Target,
    /// Whether the server was in recovery when the connection was opened.
    pub(super) in_recovery: bool,
}

impl Deref for ServiceClient {
    type Target = ClientWrapper;

    fn deref(&self) -> &ClientWrapper {
        &self.client
    }
}

/// Opens the connections of a pool.
pub(super) struct ServiceManager {
    config: Arc<Config>,
    database: DatabaseName,
    options: String,
}

impl ServiceManager {
    /// Creates a manager that opens connections to a database. `options` are the settings of their
    /// sessions.
    pub(super) fn new(config: &Arc<Config>, database: &DatabaseName, options: &str) -> Self {
        Self {
            config: config.clone(),
            database: database.clone(),
            options: options.to_owned(),
        }
    }
}

impl Manager for ServiceManager {
    type Type = ServiceClient;
    type Error = ConnectError;

    async fn create(&self) -> Result<ServiceClient, ConnectError> {
        // The future is boxed, because the future of a login is large.
        let opening = connect_to_host(&self.config, &self.database, &self.options);
        let server = Box::pin(opening).await?;
        let (client, connection) = server.connection;
        let task = tokio::spawn(async move {
            if let Err(error) = connection.await {
                debug!(%error, "a service connection has ended");
            }
        });
        Ok(ServiceClient {
            client: ClientWrapper::new(client, task),
            host: server.host.clone(),
            in_recovery: server.in_recovery,
        })
    }

    async fn recycle(
        &self,
        client: &mut ServiceClient,
        _: &Metrics,
    ) -> RecycleResult<ConnectError> {
        if client.is_closed() || client.in_recovery || !self.config.is_current(&client.host) {
            return Err(RecycleError::message("the connection cannot be used again"));
        }
        Ok(())
    }
}
