//! Reads on multiplexed connections.

use std::time::{Duration, Instant};

use tidegate_sql::{BoundStatement, Login, QueryOptions, RoleUse};

use super::route::Route;
use super::user_executor::UserExecutor;
use crate::multiplex::{BufferedRows, Enqueued, InFlightGuard};
use crate::statement::{StatementTask, TransactionPosition, is_stateless};

/// Requests with less time than this run on a connection of their own, where a cancel request
/// affects nothing else.
const UNHURRIED: Duration = Duration::from_millis(400);

impl UserExecutor {
    /// Counts a request in its group, if it may be multiplexed.
    pub(super) fn enter(
        &self,
        login: &Login,
        statements: &[&BoundStatement],
        options: &QueryOptions,
    ) -> Option<InFlightGuard> {
        let hurries = |deadline| deadline < Instant::now() + UNHURRIED;
        let may = |bound: &&BoundStatement| bound.sets.len() == 1 && is_stateless(bound);
        let enters = login.role_use != RoleUse::Anonymous
            && self.pool.settings().share
            && self.service.is_some()
            && statements.iter().all(may)
            && !options.deadline.is_some_and(hurries);
        enters.then(|| self.multiplexer.enter(login))
    }

    /// The rows from a multiplexed connection, if one takes the request and answers.
    pub(super) async fn multiplex(
        &self,
        entry: &InFlightGuard,
        route: &Route,
        statements: &[&BoundStatement],
    ) -> Option<BufferedRows> {
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
        let answer = match entry.ask(&tasks) {
            Enqueued::Queued(answer) => answer,
            Enqueued::NotMultiplexed => return None,
            Enqueued::Full => {
                let (users, login) = (self.clone(), route.login.clone());
                entry.open(&tasks, &metadata, || async move {
                    users.acquire(&login, None).await
                });
                return None;
            }
        };
        drop(tasks);
        let answer = answer.await.ok()?;
        self.multiplexer.count();
        metadata.count(statements.iter().any(|bound| bound.statement.calls()));
        Some(answer)
    }
}
