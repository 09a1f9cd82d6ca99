//! Transactions on the primary. Each records the WAL position after its commit.

use std::sync::Arc;

use tidegate_sql::{
    BoundStatement, BoxFuture, Completion, Description, Error, Login, Result, RowSink, Transaction,
};

use super::Replicas;

/// A transaction on the primary. After the commit, later reads of its session see the writes.
pub(super) struct WritingTransaction {
    pub(super) transaction: Box<dyn Transaction>,
    pub(super) replicas: Arc<Replicas>,
    pub(super) login: Login,
}

impl Transaction for WritingTransaction {
    fn query<'a>(
        &'a mut self,
        statement: &'a BoundStatement,
        sink: &'a mut dyn RowSink,
    ) -> BoxFuture<'a, Result<Completion>> {
        self.transaction.query(statement, sink)
    }

    fn describe<'a>(
        &'a mut self,
        statement: &'a BoundStatement,
    ) -> BoxFuture<'a, Result<Description>> {
        self.transaction.describe(statement)
    }

    fn commit(self: Box<Self>) -> BoxFuture<'static, Result<()>> {
        Box::pin(async move {
            let committed = self.transaction.commit().await;
            let error = committed.as_ref().err();
            if error.is_none_or(may_have_written) {
                self.replicas.wrote(&self.login, error).await;
            }
            committed
        })
    }
}

/// Whether changes may have been committed in spite of the error. A procedure may commit before it
/// fails.
pub(super) fn may_have_written(error: &Error) -> bool {
    !matches!(error, Error::Input(_) | Error::PoolTimeout { .. })
}
