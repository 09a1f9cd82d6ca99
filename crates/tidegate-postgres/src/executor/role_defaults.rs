//! Checks after a statement whether role defaults have changed, so that the next request uses the
//! new settings. Role defaults are the settings with which sessions start (PostgreSQL, "ALTER
//! ROLE", `SET`).

use std::sync::Arc;
use std::time::Duration;

use tidegate_pool::Pool;
use tidegate_sql::{Executor, Login, RoleUse};

use crate::connector::RoleConnector;

/// How long the response to a statement waits for the check. If the check takes longer, the
/// periodic check finds the change.
const CHECK_TIMEOUT: Duration = Duration::from_secs(1);

/// Checks after a user's statement whether the settings of a role or a database have changed
/// (`ALTER ROLE … SET`, `ALTER DATABASE … SET`).
#[derive(Clone)]
pub(super) struct RoleDefaults {
    pub(super) pool: Pool<RoleConnector>,
    pub(super) service: Option<Arc<dyn Executor>>,
}

impl RoleDefaults {
    /// Closes the connections whose sessions would now start with other settings. Call it after a
    /// statement of `login`. Does nothing unless `login` is a user's own login.
    pub(super) async fn check(&self, login: &Login) {
        // Sessions of the default user and of groups do not use the settings of the role, so only
        // roles of single users are checked.
        let (Some(service), RoleUse::User(_)) = (&self.service, &login.role_use) else {
            return;
        };
        let database = &login.database;
        // The check compares the role defaults with recorded ones, so it misses a change that was
        // made before they were first recorded. Therefore the role's own connections are closed in
        // any case.
        self.pool.close_for_new_settings(database, &login.role);
        let checking = self.pool.connector().logins().check(&**service, &self.pool);
        let outcome = tokio::time::timeout(CHECK_TIMEOUT, checking).await;
        if !matches!(outcome, Ok(Ok(()))) {
            tracing::debug!(%database, ?outcome, "role defaults not checked; the next check does it");
        }
    }
}
