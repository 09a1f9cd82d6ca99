//! Transactions of users.

use std::sync::Arc;

use tidegate_sql::{
    BoundStatement, BoxFuture, Completion, Description, Error, Login, Mode, Rejection, Result,
    RowSink, Transaction,
};
use tokio::time::Instant;

use super::RoleConnector;
use super::beginning::{Beginnings, may_resettle};
use super::roles::{Lent, check, conclude, forget_if_malformed, redefinition, told};
use crate::dictionary::Dictionary;
use crate::pool::Lease;
use crate::session::task::{Place, Task};
use crate::suspects::Redefinition;

/// An open transaction. Dropping it gives the connection back, which is then rolled back.
pub(super) struct RoleTransaction {
    lease: Lease<RoleConnector>,
    login: Login,
    dictionary: Arc<Dictionary>,
    mode: Mode,
    deadline: Option<Instant>,
    /// Whether a statement has been sent.
    begun: bool,
    /// There if a definition may have changed.
    redefinition: Option<Redefined>,
    /// Whether a statement calls what may be a function of the database's own.
    called: bool,
    beginnings: Beginnings,
    /// There if a statement may have changed with what settings sessions begin.
    resettles: Option<Beginnings>,
    /// Whether something has gone wrong, so that the transaction can only be rolled back.
    failed: bool,
}

/// What a transaction may have defined. Types that were looked up in it are forgotten when it ends:
/// if it is rolled back, they have never been there.
struct Redefined {
    dictionary: Arc<Dictionary>,
    _redefinition: Redefinition,
}

impl Drop for Redefined {
    fn drop(&mut self) {
        self.dictionary.forget();
    }
}

impl RoleTransaction {
    pub(super) fn new(
        lease: Lease<RoleConnector>,
        login: Login,
        lent: Lent,
        mode: Mode,
        beginnings: Beginnings,
    ) -> Self {
        Self {
            lease,
            login,
            dictionary: lent.dictionary,
            mode,
            deadline: lent.deadline,
            begun: false,
            redefinition: None,
            called: false,
            beginnings,
            resettles: None,
            failed: false,
        }
    }

    /// Refuses what follows an error, as PostgreSQL does (25P02).
    fn check(&self) -> Result<()> {
        if self.failed {
            return Err(Error::Rejected(Box::new(Rejection {
                sqlstate: "25P02".to_owned(),
                message: "the transaction has failed before".to_owned(),
                ..Rejection::default()
            })));
        }
        Ok(())
    }

    fn place(&mut self) -> Place {
        let place = if self.begun {
            Place::Within
        } else {
            Place::First(self.mode)
        };
        self.begun = true;
        place
    }

    /// Remembers an error: PostgreSQL does not know of all of them.
    fn remember<T>(&mut self, outcome: Result<T>) -> Result<T> {
        self.failed |= outcome.is_err();
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
        let task = Task {
            bound,
            login: &self.login,
            dictionary: &self.dictionary,
            deadline: self.deadline,
            place,
        };
        Ok((&mut self.lease, task))
    }

    async fn run(&mut self, bound: &BoundStatement, sink: &mut dyn RowSink) -> Result<Completion> {
        self.called |= bound.statement.calls();
        if may_resettle(bound) {
            self.resettles = Some(self.beginnings.clone());
        }
        let redefinition = redefinition(&self.dictionary, bound);
        let (lease, task) = self.task(bound)?;
        let outcome = lease.run(&task, sink).await;
        if let Some(redefinition) = redefinition.or(told(lease, task.dictionary)) {
            task.dictionary.forget();
            lease.statements.retire();
            self.redefine(redefinition);
        }
        forget_if_malformed(&self.dictionary, &outcome);
        self.remember(outcome)
    }

    fn redefine(&mut self, redefinition: Redefinition) {
        self.redefinition = Some(Redefined {
            dictionary: self.dictionary.clone(),
            _redefinition: redefinition,
        });
    }

    async fn only_describe(&mut self, bound: &BoundStatement) -> Result<Description> {
        let (lease, task) = self.task(bound)?;
        let outcome = lease.describe_only(&task).await;
        self.remember(outcome)
    }

    async fn end(mut self) -> Result<()> {
        self.check()?;
        if !self.begun {
            return Ok(());
        }
        let outcome = self.lease.commit(self.deadline).await;
        // What a deferred trigger defined is told by COMMIT.
        let late = told(&mut self.lease, &self.dictionary);
        if let Some(late) = late {
            self.redefine(late);
        }
        self.redefinition = None;
        self.dictionary.count(self.called);
        if let (Ok(()), Some(beginnings)) = (&outcome, &self.resettles) {
            beginnings.look(&self.login).await;
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
