//! One comparison of a database's schemas.

use std::sync::Arc;
use std::time::Duration;

use tidegate_catalog::{CatalogCache, WatchOutcome};
use tidegate_sql::{DatabaseName, QueryOptions};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::pool::UserPool;

/// The task sleeps this many times as long as a check took, so that a large catalog does not keep
/// PostgreSQL busy.
const PAUSE_FACTOR: u32 = 2;
/// The deadline of one check.
const CHECK_TIMEOUT: Duration = Duration::from_secs(30);

/// Why a database is checked.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reason {
    /// The database notified of a definition. Reported definitions are counted, so a request may
    /// have checked the database already.
    Reported,
    /// The database may have changed in a way that is not counted.
    Due,
    /// Roles have changed, and the database may have changed too.
    Roles,
}

/// A check that has ended.
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

/// Checks one database and reloads the schemas that have changed. Returns after a pause that grows
/// with the duration of the check.
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
        // The catalog logs a failure, and `/readyz` shows it.
        if let Ok(WatchOutcome::Changed) = watched {
            tracing::debug!(%database, took = ?began.elapsed(), "catalog reloaded after a change");
            // A reported definition has already invalidated the caches. Invalidating them again
            // would make the next request compare the database once more.
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
