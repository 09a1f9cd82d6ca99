//! Detects statements that may change role defaults, the settings with which sessions start
//! (PostgreSQL, "ALTER ROLE", `SET`), so that the next request uses the new settings.

use std::sync::Arc;
use std::time::Duration;

use tidegate_pool::Pool;
use tidegate_sql::statement::{BoundStatement, Kind};
use tidegate_sql::{Executor, Login, RoleUse};

use crate::connector::RoleConnector;

/// How long the response to a statement waits for the check. After this time only the periodic
/// check finds the change.
const CHECK_TIMEOUT: Duration = Duration::from_secs(1);

/// Checks after a user's statement whether the settings of a role or a database have changed
/// (`ALTER ROLE … SET`, `ALTER DATABASE … SET`).
#[derive(Clone)]
pub(super) struct RoleDefaults {
    pub(super) pool: Pool<RoleConnector>,
    pub(super) service: Option<Arc<dyn Executor>>,
}

impl RoleDefaults {
    /// Closes the connections whose sessions would start with other settings after a statement of
    /// `login`.
    pub(super) async fn check(&self, login: &Login) {
        // The default user's sessions ignore settings that an anonymous caller makes for the role.
        let (Some(service), RoleUse::User(_)) = (&self.service, &login.role_use) else {
            return;
        };
        let database = &login.database;
        // The checks compare with a snapshot of role defaults. A change before the first snapshot
        // is only covered by closing the connections.
        self.pool.close_unshared(database, &login.role);
        let checking = self.pool.connector().logins().check(&**service, &self.pool);
        let outcome = tokio::time::timeout(CHECK_TIMEOUT, checking).await;
        if !matches!(outcome, Ok(Ok(()))) {
            tracing::debug!(%database, ?outcome, "role defaults not checked; the next check does it");
        }
    }
}

/// Whether the statement's text may change role defaults. The periodic check finds all other
/// changes within a second.
pub(super) fn may_change_role_defaults(bound: &BoundStatement) -> bool {
    let statement = &bound.statement;
    if !matches!(statement.kind(), Kind::Other | Kind::Procedural) {
        return false;
    }
    let text = statement.text().to_ascii_lowercase();
    let whose = ["role", "user", "database"];
    text.contains("alter") && whose.iter().any(|word| text.contains(word))
}
