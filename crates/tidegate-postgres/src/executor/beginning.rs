//! Statements that may change with what settings sessions begin (PostgreSQL, "ALTER ROLE", `SET`):
//! they count for the next request.

use std::sync::Arc;
use std::time::Duration;

use tidegate_pool::Pool;
use tidegate_sql::statement::{BoundStatement, Kind};
use tidegate_sql::{Executor, Login, RoleUse};

use super::RoleConnector;

/// How long the answer to a statement waits for that; others look as well, in the background.
const PATIENCE: Duration = Duration::from_secs(1);

/// Looks behind statements of users for settings that have changed.
#[derive(Clone)]
pub(super) struct Beginnings {
    pub(super) pool: Pool<RoleConnector>,
    pub(super) service: Option<Arc<dyn Executor>>,
}

impl Beginnings {
    /// Closes the connections whose sessions would begin with other settings now, behind a statement
    /// of the login's.
    pub(super) async fn look(&self, login: &Login) {
        // What a stranger sets for the shared role does not count.
        let (Some(service), RoleUse::User(_)) = (&self.service, login.role_use) else {
            return;
        };
        let database = &login.database;
        // What was set before anybody knew what had been set before.
        self.pool.renew_role(database, &login.role);
        let checking = self.pool.connector().logins().check(&**service, &self.pool);
        match tokio::time::timeout(PATIENCE, checking).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(%database, %error, "settings are looked at later"),
            Err(_) => tracing::debug!(%database, "settings are looked at later"),
        }
    }
}

/// Whether a statement may, by its text, change with what settings sessions begin; others are
/// looked behind within a second.
pub(super) fn may_resettle(bound: &BoundStatement) -> bool {
    let statement = &bound.statement;
    if !matches!(statement.kind(), Kind::Other | Kind::Procedural) {
        return false;
    }
    let text = statement.text().to_ascii_lowercase();
    let whose = ["role", "user", "database"];
    text.contains("alter") && whose.iter().any(|word| text.contains(word))
}
