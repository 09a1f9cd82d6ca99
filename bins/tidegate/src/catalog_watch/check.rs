//! Checks a database: compares its definitions with the cached schemas.

use std::sync::Arc;
use std::time::Duration;

use tidegate_catalog::{CatalogCache, WatchOutcome};
use tidegate_sql::{DatabaseName, QueryOptions};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::pool::UserPool;

/// The pause after a check, as a multiple of the check's duration. The pause keeps checks of a
/// large catalog from occupying PostgreSQL.
const PAUSE_FACTOR: u32 = 2;
/// How long the queries of one check may take together.
const CHECK_TIMEOUT: Duration = Duration::from_secs(30);

/// The reason why a database is checked. If there are several reasons, the variant that comes last
/// in this list counts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reason {
    /// The database has sent a notification about a definition. The check compares the definitions
    /// only if no request has compared them since the notification.
    Reported,
    /// Definitions may have changed without a notification.
    Due,
    /// Roles may have changed, or the most recent comparison or load failed. The check compares
    /// roles and definitions.
    Roles,
}

/// A check that has ended: whether it succeeded, and how long it took without the pause.
pub(super) struct Checked {
    pub(super) database: DatabaseName,
    pub(super) took: Duration,
    pub(super) is_ok: bool,
}

pub(super) fn check_options() -> QueryOptions {
    QueryOptions {
        deadline: Some((Instant::now() + CHECK_TIMEOUT).into_std()),
        ..QueryOptions::default()
    }
}

/// Checks a database and reloads the schemas that have changed. Then waits for a multiple of the
/// check's duration before it returns.
pub(super) async fn check(
    catalogs: Arc<CatalogCache>,
    users: UserPool,
    permits: Arc<Semaphore>,
    (database, reason): (DatabaseName, Reason),
) -> Checked {
    let (took, is_ok) = {
        let _permit = permits.acquire().await;
        let (began, options) = (Instant::now(), check_options());
        let watched = match reason {
            Reason::Reported => catalogs.catch_up(&database, &options).await,
            Reason::Due => catalogs.watch_definitions(&database, &options).await,
            Reason::Roles => catalogs.watch(&database, &options).await,
        };
        // A failure needs no handling here: the catalog cache logs it, and `/readyz` shows it.
        if let Ok(WatchOutcome::Changed) = watched {
            tracing::debug!(%database, took = ?began.elapsed(), "catalog reloaded after a change");
            // A notification (`Reported`) has invalidated the caches before the check. If they were
            // invalidated again, the next request would compare the definitions once more.
            if reason != Reason::Reported {
                users.redefined(&database);
            }
        }
        (began.elapsed(), watched.is_ok())
    };
    tokio::time::sleep(took * PAUSE_FACTOR).await;
    Checked {
        database,
        took,
        is_ok,
    }
}
