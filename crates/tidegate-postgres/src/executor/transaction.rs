//! Transactions of users.

use std::sync::Arc;

use tidegate_sql::statement::{BoundStatement, Kind};
use tidegate_sql::{BoxFuture, Completion, Description, Login, Mode, Result, RowSink, Transaction};
use tokio::time::Instant;

use super::RoleConnector;
use super::roles::{conclude, note};
use crate::dictionary::Dictionary;
use crate::pool::Lease;
use crate::session::task::{Place, Task};

/// An open transaction. Dropping it gives the connection back, which is then rolled back.
pub(super) struct RoleTransaction {
    lease: Lease<RoleConnector>,
    login: Login,
    dictionary: Arc<Dictionary>,
    mode: Mode,
    deadline: Option<Instant>,
    /// Whether a statement has been sent.
    begun: bool,
    /// Whether a definition may have changed.
    redefined: bool,
}

impl RoleTransaction {
    pub(super) fn new(
        lease: Lease<RoleConnector>,
        login: Login,
        dictionary: Arc<Dictionary>,
        mode: Mode,
        deadline: Option<Instant>,
    ) -> Self {
        Self {
            lease,
            login,
            dictionary,
            mode,
            deadline,
            begun: false,
            redefined: false,
        }
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

    async fn run(&mut self, bound: &BoundStatement, sink: &mut dyn RowSink) -> Result<Completion> {
        let place = self.place();
        let Self {
            lease,
            login,
            dictionary,
            deadline,
            ..
        } = self;
        let task = Task {
            bound,
            login,
            dictionary,
            deadline: *deadline,
            place,
        };
        let outcome = lease.run(&task, sink).await;
        if matches!(bound.statement.kind(), Kind::Other | Kind::Procedural) {
            note(dictionary, bound);
            lease.statements.retire();
            self.redefined = true;
        }
        outcome
    }

    async fn only_describe(&mut self, bound: &BoundStatement) -> Result<Description> {
        let place = self.place();
        let Self {
            lease,
            login,
            dictionary,
            deadline,
            ..
        } = self;
        let task = Task {
            bound,
            login,
            dictionary,
            deadline: *deadline,
            place,
        };
        lease.describe_only(&task).await
    }

    async fn end(mut self) -> Result<()> {
        if !self.begun {
            return Ok(());
        }
        let outcome = self.lease.commit(self.deadline).await;
        if self.redefined {
            self.dictionary.forget();
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
