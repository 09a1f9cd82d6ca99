//! Reads on multiplexed connections.

use std::sync::Arc;

use tidegate_sql::BoundStatement;

use super::route::Route;
use super::user_executor::UserExecutor;
use crate::metadata::MetadataCache;
use crate::multiplex::{BufferedRows, Enqueued, InFlightGuard};
use crate::statement::{StatementTask, TransactionPosition};

impl UserExecutor {
    /// Runs the statements on a multiplexed connection. Returns their rows and the metadata cache
    /// of the database. Returns `None` if no connection accepts the statements, or if they failed;
    /// the request then runs them on a connection of its own.
    pub(super) async fn multiplex(
        &self,
        in_flight: &InFlightGuard,
        route: &Route,
        statements: &[&BoundStatement],
    ) -> Option<(BufferedRows, Arc<MetadataCache>)> {
        let metadata = self.metadata(&route.login);
        let task = |bound| StatementTask {
            bound,
            login: &route.login,
            switch: route.switch(),
            metadata: &metadata,
            deadline: None,
            position: TransactionPosition::Alone,
        };
        let tasks: Vec<_> = statements.iter().copied().map(task).collect();
        let response = match in_flight.enqueue(&tasks) {
            Enqueued::Queued(response) => response,
            Enqueued::NotMultiplexed => return None,
            Enqueued::Full => {
                // The only open connection of a role is not multiplexed if the role may open more.
                // If it were multiplexed, requests that need a connection of their own could not
                // get it. Fewer requests would then be served than if all requests took turns on
                // this connection.
                if self.pool.can_use_one_alone(&route.login) {
                    let (users, login) = (self.clone(), route.login.clone());
                    in_flight.open(&tasks, &metadata, || async move {
                        users.acquire(&login, users.wait_limit(None)).await
                    });
                }
                match in_flight.enqueue_behind(&tasks) {
                    Enqueued::Queued(response) => response,
                    Enqueued::NotMultiplexed | Enqueued::Full => return None,
                }
            }
        };
        drop(tasks);
        let response = response.await.ok()?;
        self.multiplexer.count_delivered();
        metadata.count(statements.iter().any(|bound| bound.statement.calls()));
        // The refresh of the purity cache runs on a service connection to the database. Such a
        // connection is probably open, because many requests run in this database.
        if let (Some(service), Some(refresh)) = (&self.service, metadata.purity.count()) {
            let database = route.login.database.clone();
            tokio::spawn(refresh.run_on_service(service.clone(), database));
        }
        Some((response, metadata))
    }
}
