//! Reads on multiplexed connections.

use std::time::{Duration, Instant};

use tidegate_sql::{BoundStatement, Login, QueryOptions, RoleUse};

use super::roles::Roles;
use super::route::Route;
use crate::multiplex::{Answer, Asked, Entry};
use crate::session::reset::is_stateless;
use crate::session::task::{Place, Task};

/// A request with less time than this has a connection of its own, which cancels it in time.
const UNHURRIED: Duration = Duration::from_millis(400);

impl Roles {
    /// Counts a request among those that may be multiplexed with it, if it may be.
    pub(super) fn enter(
        &self,
        login: &Login,
        statements: &[&BoundStatement],
        options: &QueryOptions,
    ) -> Option<Entry> {
        let hurries = |deadline| deadline < Instant::now() + UNHURRIED;
        let may = |bound: &&BoundStatement| bound.sets.len() == 1 && is_stateless(bound);
        let enters = login.role_use != RoleUse::Anonymous
            && self.pool.settings().share
            && self.service.is_some()
            && statements.iter().all(may)
            && !options.deadline.is_some_and(hurries);
        enters.then(|| self.multiplexer.enter(login))
    }

    /// The answer of a multiplexed connection, if one gives it.
    pub(super) async fn multiplex(
        &self,
        entry: &Entry,
        route: &Route,
        statements: &[&BoundStatement],
    ) -> Option<Answer> {
        let dictionary = self.dictionary(&route.login);
        let task = |bound| Task {
            bound,
            login: &route.login,
            switch: route.switch(),
            dictionary: &dictionary,
            deadline: None,
            place: Place::Alone,
        };
        let tasks: Vec<_> = statements.iter().copied().map(task).collect();
        let answer = match entry.ask(&tasks) {
            Asked::Queued(answer) => answer,
            Asked::Unfit => return None,
            Asked::Full => {
                let (roles, login) = (self.clone(), route.login.clone());
                entry.open(&tasks, &dictionary, || async move {
                    roles.lease(&login, None).await
                });
                return None;
            }
        };
        drop(tasks);
        let answer = answer.await.ok()?;
        self.multiplexer.count();
        dictionary.count(statements.iter().any(|bound| bound.statement.calls()));
        Some(answer)
    }
}
