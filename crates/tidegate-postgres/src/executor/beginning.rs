//! With what settings the sessions of a role begin (PostgreSQL, "ALTER ROLE", `SET`).
//!
//! PostgreSQL reads them when somebody logs in. What is open when they change would go on with the
//! old ones, beside what is opened later: it is closed, so that a role's requests begin alike.

use std::sync::Arc;
use std::time::Duration;

use tidegate_sql::statement::{BoundStatement, Kind};
use tidegate_sql::{DatabaseName, Executor, Login, Sharing};

use super::RoleConnector;
use crate::dictionary::Dictionary;
use crate::pool::Pool;
use crate::suspects::Resettled;

/// How long the answer to a statement waits for that; others look as well, in the background.
const PATIENCE: Duration = Duration::from_secs(1);

/// Looks behind statements of users for settings that have changed.
#[derive(Clone)]
pub(super) struct Beginnings {
    pub(super) pool: Pool<RoleConnector>,
    pub(super) service: Option<Arc<dyn Executor>>,
}

impl Beginnings {
    /// Has the database's connections renewed whose sessions would begin with other settings now,
    /// behind a statement of the login's.
    pub(super) async fn look(&self, login: &Login, dictionary: &Dictionary) {
        // What a stranger sets for the shared role does not count.
        let (Some(service), Sharing::One(_)) = (&self.service, login.sharing) else {
            return;
        };
        let database = &login.database;
        // What was set before anybody knew what had been set before.
        self.pool.renew_role(database, &login.role);
        let tell = |resettled| self.renew(database, resettled);
        let looking = dictionary
            .belief
            .look_at_settings(&**service, database, tell);
        match tokio::time::timeout(PATIENCE, looking).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(%database, %error, "settings are looked at later"),
            Err(_) => tracing::debug!(%database, "settings are looked at later"),
        }
    }

    /// Closes the connections of those concerned.
    pub(super) fn renew(&self, database: &DatabaseName, resettled: Resettled) {
        match resettled {
            Resettled::Everybody => {
                self.pool.close(database);
            }
            Resettled::Roles(roles) => {
                for role in roles {
                    self.pool.renew_role(database, &role);
                }
            }
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
