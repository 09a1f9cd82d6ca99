//! The decisions about shared connections, for replicas.

use std::sync::Arc;

use tidegate_sql::{BoxFuture, DatabaseName, Result, RoleName};

use crate::executor::Authentication;

/// Lets a replica use the decisions that were made on the primary. A login or role switch that the
/// replica refuses does not change a decision, because the replica may not have replayed the role
/// yet.
#[expect(
    missing_debug_implementations,
    reason = "the decisions cannot be shown"
)]
pub struct PrimaryDecisions(pub Arc<dyn Authentication>);

impl Authentication for PrimaryDecisions {
    fn of<'a>(
        &'a self,
        database: &'a DatabaseName,
        role: &'a RoleName,
    ) -> BoxFuture<'a, Option<RoleName>> {
        self.0.of(database, role)
    }

    fn invalidate(&self, _: &DatabaseName) {}

    fn login_refused(&self, _: &DatabaseName, _: &RoleName) {}

    fn forget(&self, _: &DatabaseName) {}

    fn refresh(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn switch(&self) -> &'static str {
        self.0.switch()
    }
}
