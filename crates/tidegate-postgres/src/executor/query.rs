//! Runs statements outside of explicit transactions.

use tidegate_sql::statement::{BoundStatement, Kind};
use tidegate_sql::{Author, Completion, Login, Mode, QueryOptions, Result, RowSink};

use super::member_route::claims_error;
use super::role_defaults::may_change_role_defaults;
use super::route::Route;
use super::user_executor::{
    UserExecutor, check, ddl_guard, forget_if_malformed, return_connection,
};
use crate::session::take_reported_ddl;
use crate::statement::RunError;

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
        if let Some(in_flight) = &in_flight
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

    /// Runs all parameter sets in one explicit transaction. Outside of one, the statement may
    /// commit between two sets.
    async fn query_in_transaction(
        &self,
        login: &Login,
        bound: &BoundStatement,
        options: &QueryOptions,
        sink: &mut dyn RowSink,
    ) -> Result<Completion> {
        // `begin` does not know the statements, so it must not choose a shared connection.
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
