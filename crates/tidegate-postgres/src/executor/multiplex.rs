//! Reads on multiplexed connections.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tidegate_sql::{BoundStatement, Login, QueryOptions};

use super::route::Route;
use super::user_executor::UserExecutor;
use crate::metadata::MetadataCache;
use crate::multiplex::{BufferedRows, Enqueued, InFlightGuard};
use crate::statement::{StatementTask, TransactionPosition, is_stateless};

/// Requests with less time than this until their deadline are not multiplexed, because a cancel
/// request on a multiplexed connection would also hit other requests.
const MIN_TIME_LEFT: Duration = Duration::from_millis(400);

impl UserExecutor {
    /// Counts a request in the group of its login, if it may be multiplexed.
    pub(super) fn enter(
        &self,
        login: &Login,
        statements: &[&BoundStatement],
        options: &QueryOptions,
    ) -> Option<InFlightGuard> {
        let is_urgent = |deadline| deadline < Instant::now() + MIN_TIME_LEFT;
        let may = |bound: &&BoundStatement| bound.sets.len() == 1 && is_stateless(bound);
        let may_multiplex = !login.role_use.is_reset_fully()
            && self.pool.settings().multiplex
            && self.service.is_some()
            && statements.iter().all(may)
            && !options.deadline.is_some_and(is_urgent);
        may_multiplex.then(|| self.multiplexer.enter(login))
    }

    /// Runs the statements on a multiplexed connection; also returns the metadata that it used.
    /// Returns `None` if no connection takes them or the response does not come.
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
        let answer = match in_flight.enqueue(&tasks) {
            Enqueued::Queued(answer) => answer,
            Enqueued::NotMultiplexed => return None,
            Enqueued::Full => {
                // The only connection of a role serves more requests when they take turns than when
                // those that wait already cannot have it.
                if !self.pool.can_use_one_alone(&route.login) {
                    return None;
                }
                let (users, login) = (self.clone(), route.login.clone());
                in_flight.open(&tasks, &metadata, || async move {
                    users.acquire(&login, users.wait_limit(None)).await
                });
                return None;
            }
        };
        drop(tasks);
        let answer = answer.await.ok()?;
        self.multiplexer.count();
        metadata.count(statements.iter().any(|bound| bound.statement.calls()));
        // Many requests run in the database, so that the service's connection to it stays open.
        if let (Some(service), Some(refresh)) = (&self.service, metadata.purity.count()) {
            let database = route.login.database.clone();
            tokio::spawn(refresh.run_on_service(service.clone(), database));
        }
        Some((answer, metadata))
    }
}
