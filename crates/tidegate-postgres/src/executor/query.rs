//! Statements in transactions of their own.

use tidegate_sql::statement::{BoundStatement, Kind};
use tidegate_sql::{Author, Completion, Login, Mode, QueryOptions, Result, RowSink};

use super::beginning::may_resettle;
use super::roles::{Roles, check, conclude, forget_if_malformed, redefinition, told};
use super::route::Route;
use crate::session::task::RunError;

impl Roles {
    /// Runs one statement in a transaction of its own; see [`tidegate_sql::Executor::query`].
    ///
    /// Dropping the future cancels the statement; the connection is looked after in the
    /// background and lent again only when PostgreSQL has said that it is idle.
    pub async fn query(
        &self,
        login: &Login,
        bound: &BoundStatement,
        options: &QueryOptions,
        sink: &mut dyn RowSink,
    ) -> Result<Completion> {
        check(login, bound)?;
        if bound.sets.len() > 1 && may_commit(bound) {
            return self.together(login, bound, options, sink).await;
        }
        let route = self.route(login, options.author, &[bound]).await;
        let switches = route.switch().is_some();
        let ran = self.query_on(route, bound, options, sink).await;
        let outcome = match ran {
            Err(RunError::RoleRefused(error)) if switches => {
                self.refused(login, &error);
                self.query_on(Route::own(login), bound, options, sink).await
            }
            outcome => outcome,
        };
        let outcome = outcome.map_err(RunError::into_error);
        if outcome.is_ok() && may_resettle(bound) {
            self.beginnings().look(login).await;
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
        let entry = self.enter(&route.login, &[bound], options);
        if let Some(entry) = &entry
            && let Some(answer) = self.multiplex(entry, &route, &[bound]).await
        {
            let outcome = answer.push(0, sink).await;
            forget_if_malformed(&self.dictionary(&route.login), &outcome);
            return Ok(outcome?);
        }
        let (mut lease, lent) = self.lend(route, options).await?;
        let task = lent.task(bound);
        let redefinition = redefinition(&lent.dictionary, bound);
        let ran = lease.run(&task, sink).await;
        let redefinition = redefinition.or(told(&mut lease, &lent.dictionary));
        if redefinition.is_some() {
            lent.dictionary.forget();
            self.distrust(&lent.route.login.database);
        }
        drop(redefinition);
        let outcome = match ran {
            Err(RunError::Failed(error)) => Err(error),
            Err(refused) => return Err(refused),
            Ok(completion) => Ok(completion),
        };
        forget_if_malformed(&lent.dictionary, &outcome);
        lent.dictionary.count(bound.statement.calls());
        Ok(conclude(lease, outcome).await?)
    }

    /// Runs all sets in a transaction that the statement itself cannot end.
    async fn together(
        &self,
        login: &Login,
        bound: &BoundStatement,
        options: &QueryOptions,
        sink: &mut dyn RowSink,
    ) -> Result<Completion> {
        let options = QueryOptions {
            author: Author::Caller,
            ..*options
        };
        let mut transaction = self.begin(login, Mode::ReadWrite, &options).await?;
        let completion = transaction.query(bound, sink).await?;
        transaction.commit().await?;
        Ok(completion)
    }
}

/// Whether a statement may end a transaction that is only implied by its pipeline (PostgreSQL,
/// "Extended Query", "Pipelining"): a procedure or block that commits, and what runs outside of any.
fn may_commit(bound: &BoundStatement) -> bool {
    matches!(bound.statement.kind(), Kind::Other | Kind::Procedural)
}
