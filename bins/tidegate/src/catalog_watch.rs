//! Keeps the schemas that requests work with fresh.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use tidegate_catalog::{Catalogs, Watched};
use tidegate_server::Probe;
use tidegate_sql::{BoxFuture, DatabaseName, Terms};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval};

/// How often the databases in use are compared: a change is there within a second.
const TICK: Duration = Duration::from_millis(400);
/// So many databases are compared at a time.
const AT_ONCE: usize = 4;
/// Work on a large catalog is followed by so many times as much rest.
const REST: u32 = 2;
/// A comparison, and loading what has changed, ends within this time or fails.
const PATIENCE: Duration = Duration::from_secs(30);

/// Watches for as long as it is polled.
pub(crate) async fn watch(catalogs: Arc<Catalogs>) {
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let turns = Arc::new(Semaphore::new(AT_ONCE));
    let mut watching = JoinSet::new();
    let mut busy = HashSet::new();
    loop {
        tokio::select! {
            _ = ticks.tick() => {
                catalogs.tick();
                for database in catalogs.watched() {
                    if busy.insert(database.clone()) {
                        watching.spawn(look(catalogs.clone(), turns.clone(), database));
                    }
                }
            }
            Some(done) = watching.join_next() => match done {
                Ok(database) => {
                    busy.remove(&database);
                }
                Err(error) => {
                    tracing::error!(%error, "watching a catalog went wrong");
                    busy.clear();
                }
            },
        }
    }
}

/// Compares one database, loads again what has changed, and rests.
async fn look(
    catalogs: Arc<Catalogs>,
    turns: Arc<Semaphore>,
    database: DatabaseName,
) -> DatabaseName {
    let began = {
        let _turn = turns.acquire().await;
        let began = Instant::now();
        let terms = Terms {
            deadline: Some((began + PATIENCE).into_std()),
        };
        // What fails is logged and told by `/readyz`.
        if let Ok(Watched::Changed) = catalogs.watch(&database, &terms).await {
            tracing::debug!(%database, took = ?began.elapsed(), "the catalog has changed");
        }
        began
    };
    tokio::time::sleep(began.elapsed() * REST).await;
    database
}

/// Whether every schema in use is the newest. The node serves on with what it has.
pub(crate) struct CatalogProbe(pub(crate) Arc<Catalogs>);

impl Probe for CatalogProbe {
    fn name(&self) -> &'static str {
        "catalog"
    }

    fn is_essential(&self) -> bool {
        false
    }

    fn is_ready(&self) -> BoxFuture<'_, bool> {
        Box::pin(std::future::ready(self.0.failing().is_empty()))
    }
}
