//! What a statement needs besides its connection.

use std::sync::Arc;

use tidegate_sql::statement::BoundStatement;
use tokio::time::Instant;

use super::caller_limit::CallerPermit;
use super::route::Route;
use crate::metadata::MetadataCache;
use crate::statement::{StatementTask, TransactionPosition};

/// What a statement needs besides the connection that is checked out.
pub(super) struct CheckedOut {
    pub(super) route: Route,
    pub(super) metadata: Arc<MetadataCache>,
    pub(super) deadline: Option<Instant>,
    /// The caller's permit to hold a connection; `None` if its role's connections serve no other
    /// callers.
    #[expect(dead_code, reason = "held until it is dropped")]
    pub(super) permit: Option<CallerPermit>,
}

impl CheckedOut {
    /// A statement outside of a transaction.
    pub(super) fn task<'a>(&'a self, bound: &'a BoundStatement) -> StatementTask<'a> {
        self.task_at(TransactionPosition::Alone, bound)
    }

    /// A statement at a position in a transaction.
    pub(super) fn task_at<'a>(
        &'a self,
        position: TransactionPosition,
        bound: &'a BoundStatement,
    ) -> StatementTask<'a> {
        StatementTask {
            bound,
            login: &self.route.login,
            switch: self.route.switch(),
            metadata: &self.metadata,
            deadline: self.deadline,
            position,
        }
    }
}
