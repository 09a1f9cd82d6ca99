//! Transactions of users.

use std::sync::Arc;

use tidegate_pool::Lease;
use tidegate_sql::{
    BoundStatement, BoxFuture, Completion, DatabaseError, DatabaseName, Description, Error, Login,
    Mode, QueryOptions, Result, RowSink, Transaction,
};
use tokio::time::Instant;

use super::RoleConnector;
use super::beginning::may_resettle;
use super::roles::{Lent, Roles, check, conclude, forget_if_malformed, redefinition, told};
use super::route::Route;
use crate::dictionary::Dictionary;
use crate::session::task::{Place, RunError, Task};
use crate::suspects::Redefinition;

/// An open transaction. Dropping it gives the connection back, which is then rolled back.
pub(super) struct RoleTransaction {
    roles: Roles,
    lease: Lease<RoleConnector>,
    /// The caller.
    login: Login,
    lent: Lent,
    mode: Mode,
    stage: Stage,
    /// There if a definition may have changed.
    redefinition: Option<Redefined>,
    /// Whether a statement calls what may be a function of the database's own.
    called: bool,
    /// Whether a statement may have changed with what settings sessions begin.
    resettles: bool,
}

/// How far a transaction has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// No statement has been sent.
    Fresh,
    Begun,
    /// Something has gone wrong, so that it can only be rolled back.
    Failed,
}

/// What a transaction may have defined. Types that were looked up in it are forgotten when it ends:
/// if it is rolled back, they have never been there.
struct Redefined {
    roles: Roles,
    database: DatabaseName,
    dictionary: Arc<Dictionary>,
    _redefinition: Redefinition,
}

impl Drop for Redefined {
    fn drop(&mut self) {
        self.dictionary.forget();
        self.roles.distrust(&self.database);
    }
}

impl RoleTransaction {
    pub(super) fn new(
        roles: Roles,
        login: Login,
        (lease, lent): (Lease<RoleConnector>, Lent),
        mode: Mode,
    ) -> Self {
        Self {
            roles,
            lease,
            login,
            lent,
            mode,
            stage: Stage::Fresh,
            redefinition: None,
            called: false,
            resettles: false,
        }
    }

    /// Refuses what follows an error, as PostgreSQL does (25P02).
    fn check(&self) -> Result<()> {
        if self.stage == Stage::Failed {
            return Err(Error::Rejected(Box::new(DatabaseError {
                sqlstate: "25P02".to_owned(),
                message: "the transaction has failed before".to_owned(),
                ..DatabaseError::default()
            })));
        }
        Ok(())
    }

    fn place(&mut self) -> Place {
        let place = if self.stage == Stage::Begun {
            Place::Within
        } else {
            Place::First(self.mode)
        };
        self.stage = Stage::Begun;
        place
    }

    /// Remembers an error: PostgreSQL does not know of all of them.
    fn remember<T>(&mut self, outcome: Result<T>) -> Result<T> {
        if outcome.is_err() {
            self.stage = Stage::Failed;
        }
        outcome
    }

    /// The next statement of the transaction, and the connection that it runs on.
    fn task<'a>(
        &'a mut self,
        bound: &'a BoundStatement,
    ) -> Result<(&'a mut Lease<RoleConnector>, Task<'a>)> {
        self.check()?;
        check(&self.login, bound)?;
        let place = self.place();
        Ok((&mut self.lease, self.lent.task_at(place, bound)))
    }

    async fn run(&mut self, bound: &BoundStatement, sink: &mut dyn RowSink) -> Result<Completion> {
        self.called |= bound.statement.calls();
        self.resettles |= may_resettle(bound);
        let redefinition = redefinition(&self.lent.dictionary, bound);
        let (lease, task) = self.task(bound)?;
        let mut outcome = lease.run(&task, sink).await;
        if let Err(RunError::RoleRefused(error)) = outcome {
            outcome = match self.start_over(&error).await {
                Ok(()) => {
                    let (lease, task) = self.task(bound)?;
                    lease.run(&task, sink).await
                }
                Err(error) => Err(error.into()),
            };
        }
        let outcome = outcome.map_err(RunError::into_error);
        let (lease, dictionary) = (&mut self.lease, &self.lent.dictionary);
        if let Some(redefinition) = redefinition.or(told(lease, dictionary)) {
            dictionary.forget();
            lease.session.statements.retire();
            self.redefine(redefinition);
        }
        forget_if_malformed(&self.lent.dictionary, &outcome);
        self.remember(outcome)
    }

    /// Begins again on a connection of the caller's own, because a shared one refused the caller's
    /// role in front of the first statement.
    async fn start_over(&mut self, error: &Error) -> Result<()> {
        self.roles.refused(&self.login, error);
        let options = QueryOptions {
            deadline: self.lent.deadline.map(Instant::into_std),
            ..QueryOptions::default()
        };
        let lent = self.roles.lend(Route::own(&self.login), &options).await;
        (self.lease, self.lent) = lent.map_err(RunError::into_error)?;
        self.stage = Stage::Fresh;
        Ok(())
    }

    fn redefine(&mut self, redefinition: Redefinition) {
        self.redefinition = Some(Redefined {
            roles: self.roles.clone(),
            database: self.login.database.clone(),
            dictionary: self.lent.dictionary.clone(),
            _redefinition: redefinition,
        });
    }

    async fn only_describe(&mut self, bound: &BoundStatement) -> Result<Description> {
        let (lease, task) = self.task(bound)?;
        let outcome = lease.describe_only(&task).await;
        self.remember(outcome.map_err(RunError::into_error))
    }

    async fn end(mut self) -> Result<()> {
        self.check()?;
        if self.stage == Stage::Fresh {
            return Ok(());
        }
        let outcome = self.lease.commit(self.lent.deadline).await;
        // What a deferred trigger defined is told by COMMIT.
        let late = told(&mut self.lease, &self.lent.dictionary);
        if let Some(late) = late {
            self.redefine(late);
        }
        self.redefinition = None;
        self.lent.dictionary.count(self.called);
        if outcome.is_ok() && self.resettles {
            self.roles.beginnings().look(&self.login).await;
        }
        conclude(self.lease, outcome).await
    }
}

impl Transaction for RoleTransaction {
    fn query<'a>(
        &'a mut self,
        statement: &'a BoundStatement,
        sink: &'a mut dyn RowSink,
    ) -> BoxFuture<'a, Result<Completion>> {
        Box::pin(self.run(statement, sink))
    }

    fn describe<'a>(
        &'a mut self,
        statement: &'a BoundStatement,
    ) -> BoxFuture<'a, Result<Description>> {
        Box::pin(self.only_describe(statement))
    }

    fn commit(self: Box<Self>) -> BoxFuture<'static, Result<()>> {
        Box::pin(self.end())
    }
}
