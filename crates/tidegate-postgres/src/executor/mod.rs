//! The executor runs the statements of each principal on connections for this principal. This
//! module contains [`UserExecutor::query`], which runs a user's statement outside of an explicit
//! transaction.

mod caller_limit;
mod capacity;
mod claims_key_cache;
mod member_route;
mod multiplex;
mod open_logins;
mod pipeline;
mod role_defaults;
mod route;
mod transaction;
mod user_executor;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tidegate_sql::statement::Kind;
use tidegate_sql::{
    Author, BoundStatement, BoxFuture, Completion, Description, Executor, Login, Mode, Pipeline,
    PipelineError, Principal, QueryOptions, Result, RowSink, Transaction,
};

use crate::multiplex::InFlightGuard;
use crate::session::take_reported_ddl;
use crate::statement::{RunError, is_stateless};
use member_route::claims_error;
use route::Route;
use user_executor::{check, ddl_guard, forget_if_malformed, return_connection};

pub use route::Authentication;
pub use user_executor::UserExecutor;

/// Requests with less time than this until their deadline are not multiplexed. They may have to be
/// cancelled, and a cancel request on a multiplexed connection would also hit other requests.
const MIN_TIME_LEFT: Duration = Duration::from_millis(400);

/// Runs statements of users on their connections, and statements of the service on service
/// connections.
#[derive(Clone)]
pub struct Postgres {
    users: UserExecutor,
    service: Arc<dyn Executor>,
}

impl Postgres {
    /// Creates an executor. `users` runs the statements of users. `service`, such as
    /// [`tidegate_service::ServiceConnections`], runs the statements of [`Principal::Control`] and
    /// [`Principal::Catalog`].
    pub fn new(users: UserExecutor, service: Arc<dyn Executor>) -> Self {
        let users = users.with_service(service.clone());
        Self { users, service }
    }

    /// The executor of users' statements.
    pub fn user_executor(&self) -> &UserExecutor {
        &self.users
    }
}

impl fmt::Debug for Postgres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Postgres")
            .field("users", &self.users)
            .finish_non_exhaustive()
    }
}

impl Executor for Postgres {
    fn query<'a>(
        &'a self,
        who: &'a Principal,
        statement: &'a BoundStatement,
        options: &'a QueryOptions,
        sink: &'a mut dyn RowSink,
    ) -> BoxFuture<'a, Result<Completion>> {
        match who {
            Principal::Role(login) => Box::pin(self.users.query(login, statement, options, sink)),
            Principal::Control | Principal::Catalog(_) => {
                self.service.query(who, statement, options, sink)
            }
        }
    }

    fn begin<'a>(
        &'a self,
        who: &'a Principal,
        mode: Mode,
        options: &'a QueryOptions,
    ) -> BoxFuture<'a, Result<Box<dyn Transaction>>> {
        match who {
            Principal::Role(login) => Box::pin(self.users.begin(login, mode, options)),
            Principal::Control | Principal::Catalog(_) => self.service.begin(who, mode, options),
        }
    }

    fn pipeline<'a>(
        &'a self,
        who: &'a Principal,
        pipeline: Pipeline<'a>,
        options: &'a QueryOptions,
    ) -> BoxFuture<'a, Result<Vec<Completion>, PipelineError>> {
        match who {
            Principal::Role(login) => Box::pin(self.users.pipeline(login, pipeline, options)),
            Principal::Control | Principal::Catalog(_) => {
                self.service.pipeline(who, pipeline, options)
            }
        }
    }

    fn describe<'a>(
        &'a self,
        who: &'a Principal,
        statement: &'a BoundStatement,
        options: &'a QueryOptions,
    ) -> BoxFuture<'a, Result<Description>> {
        match who {
            Principal::Role(login) => Box::pin(self.users.describe(login, statement, options)),
            Principal::Control | Principal::Catalog(_) => {
                self.service.describe(who, statement, options)
            }
        }
    }
}

impl UserExecutor {
    /// Runs one statement in its own transaction; see [`tidegate_sql::Executor::query`].
    ///
    /// Dropping the future cancels the statement. The connection is then recovered in the
    /// background and not used before PostgreSQL has reported that it is idle.
    pub async fn query(
        &self,
        login: &Login,
        bound: &BoundStatement,
        options: &QueryOptions,
        sink: &mut dyn RowSink,
    ) -> Result<Completion> {
        check(login, bound)?;
        if bound.sets.len() > 1 && may_commit(bound) {
            return Box::pin(self.query_in_transaction(login, bound, options, sink)).await;
        }
        let route = self.route(login, options.author, &[bound]).await?;
        let (switches, sealed) = (route.switch().is_some(), route.sealed());
        let ran = self.query_on(route, bound, options, sink).await;
        let outcome = match ran {
            Err(RunError::RoleRefused(error)) if switches => {
                let route = self.route_again(login, sealed, &error).await?;
                Box::pin(self.query_on(route, bound, options, sink)).await
            }
            outcome => outcome,
        };
        let outcome = outcome.map_err(|error| claims_error(login, error.into_error()));
        if outcome.is_ok() && may_change_role_defaults(bound) {
            Box::pin(self.role_defaults().check(login)).await;
        }
        outcome
    }

    async fn query_on(
        &self,
        route: Route,
        bound: &BoundStatement,
        options: &QueryOptions,
        sink: &mut dyn RowSink,
    ) -> Result<Completion, RunError> {
        let in_flight = self.enter(&route.login, &[bound], options);
        if let Some(in_flight) = in_flight.as_ref().filter(|guard| !guard.is_alone())
            && let Some((rows, metadata)) = self.multiplex(in_flight, &route, &[bound]).await
        {
            let outcome = rows.push(0, sink).await;
            forget_if_malformed(&metadata, &outcome);
            return Ok(outcome?);
        }
        let (mut pooled, checked_out) = self.check_out(route, options).await?;
        let task = checked_out.task(bound);
        let ddl_guard = ddl_guard(&checked_out.metadata, bound);
        let ran = pooled.run(&task, sink).await;
        let ddl_guard = ddl_guard.or(take_reported_ddl(&mut pooled, &checked_out.metadata));
        if ddl_guard.is_some() {
            checked_out.metadata.forget();
            self.invalidate(&checked_out.route.login.database);
        }
        drop(ddl_guard);
        let outcome = match ran {
            Err(RunError::Failed(error)) => Err(error),
            Err(refused) => return Err(refused),
            Ok(completion) => Ok(completion),
        };
        forget_if_malformed(&checked_out.metadata, &outcome);
        checked_out.metadata.count(bound.statement.calls());
        if outcome.is_ok() {
            self.release(pooled, &checked_out);
            return Ok(outcome?);
        }
        Ok(return_connection(pooled, outcome).await?)
    }

    /// Counts a request among the running requests of its login until the guard is dropped. If the
    /// request must not be multiplexed, counts nothing and returns `None`.
    fn enter(
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

    /// Runs all parameter sets in one explicit transaction, because otherwise the statement could
    /// commit between two sets.
    async fn query_in_transaction(
        &self,
        login: &Login,
        bound: &BoundStatement,
        options: &QueryOptions,
        sink: &mut dyn RowSink,
    ) -> Result<Completion> {
        // This statement must not run on a shared connection (`may_share`). For the author
        // `Service`, `begin` would choose a shared connection.
        let author = match options.author {
            Author::Service => Author::Owner,
            author => author,
        };
        let options = QueryOptions { author, ..*options };
        let mut transaction = self.begin(login, Mode::ReadWrite, &options).await?;
        let completion = transaction.query(bound, sink).await?;
        transaction.commit().await?;
        Ok(completion)
    }
}

/// Whether a statement may end the implicit transaction of a pipeline (PostgreSQL, "Extended
/// Query", "Pipelining"): a procedure or block that commits, or a command that runs outside of
/// transactions.
fn may_commit(bound: &BoundStatement) -> bool {
    matches!(bound.statement.kind(), Kind::Other | Kind::Procedural)
}

/// Whether the statement may change role defaults, according to its text. If a statement changes
/// them although its text does not show it, the periodic check finds the change within a second.
fn may_change_role_defaults(bound: &BoundStatement) -> bool {
    let statement = &bound.statement;
    if !matches!(statement.kind(), Kind::Other | Kind::Procedural) {
        return false;
    }
    let text = statement.text().to_ascii_lowercase();
    let whose = ["role", "user", "database"];
    text.contains("alter") && whose.iter().any(|word| text.contains(word))
}
