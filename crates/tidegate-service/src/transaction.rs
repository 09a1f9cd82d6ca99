//! Transactions of the service.

use tidegate_sql::{
    BoundStatement, BoxFuture, Completion, Description, Error, Result, RowSink, Transaction,
};
use tokio::time::Instant;

use super::deadline::within;
use super::session::ServiceSession;

/// An open transaction. Dropping it closes its connection, which rolls the transaction back.
pub(super) struct ServiceTransaction {
    session: ServiceSession,
    deadline: Option<Instant>,
    failed: bool,
}

impl ServiceTransaction {
    pub(super) fn new(session: ServiceSession, deadline: Option<Instant>) -> Self {
        Self {
            session,
            deadline,
            failed: false,
        }
    }

    fn check(&self) -> Result<()> {
        if self.failed {
            return Err(Error::internal("the transaction has failed already"));
        }
        Ok(())
    }
}

impl Transaction for ServiceTransaction {
    fn query<'a>(
        &'a mut self,
        statement: &'a BoundStatement,
        sink: &'a mut dyn RowSink,
    ) -> BoxFuture<'a, Result<Completion>> {
        Box::pin(async move {
            self.check()?;
            // The transaction counts as failed until the statement has succeeded. If the future is
            // dropped before that, the transaction can no longer be used.
            self.failed = true;
            let outcome = within(self.deadline, self.session.run(statement, sink)).await;
            self.failed = outcome.is_err();
            outcome
        })
    }

    fn describe<'a>(
        &'a mut self,
        statement: &'a BoundStatement,
    ) -> BoxFuture<'a, Result<Description>> {
        Box::pin(async move {
            self.check()?;
            self.failed = true;
            let outcome = within(self.deadline, self.session.describe(statement)).await;
            self.failed = outcome.is_err();
            outcome
        })
    }

    fn commit(self: Box<Self>) -> BoxFuture<'static, Result<()>> {
        Box::pin(async move {
            self.check()?;
            within(self.deadline, self.session.command("COMMIT")).await?;
            self.session.release();
            Ok(())
        })
    }
}
