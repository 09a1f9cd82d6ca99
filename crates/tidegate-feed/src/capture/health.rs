//! Checks whether captures are intact, and repairs them. A user may remove a table from the
//! publication, or disable the triggers of a table. A user may also drop the key that is the
//! replica identity of a table. PostgreSQL then rejects UPDATE and DELETE. The change log does not
//! report these changes.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use tidegate_changelog::{Demand, LogError, LogPosition};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};
use tracing::{debug, info, warn};

use crate::capture::recapture;
use crate::catalog_query::{TextRow, is_true, oid_array, text};
use crate::database::captures::TableCapture;
use crate::database::database_feed::DatabaseFeed;
use crate::event::item::Ended;
use crate::watch::catalog_poll;

/// The pause after a poll, as a multiple of the poll's duration. Each new definition requests a
/// poll, and without the pause a series of definitions would occupy the server with polls.
const PAUSE_FACTOR: u32 = 2;

/// Polls the catalog at intervals and on request, publishes the snapshots, and repairs captures.
/// Runs until it is aborted.
pub(crate) async fn watch(database: Arc<DatabaseFeed>) {
    let mut tick = interval(database.settings.poll_interval);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut watch = HealthWatch {
        database: database.clone(),
        last_health: HashMap::new(),
        repairing: HashSet::new(),
        repairs: JoinSet::new(),
    };
    loop {
        tokio::select! {
            _ = tick.tick() => {}
            () = database.poll_request.notified() => {}
            Some(repaired) = watch.repairs.join_next() => {
                match repaired {
                    Ok(table) => drop(watch.repairing.remove(&table)),
                    // It is unknown which repair has panicked, so repairs are allowed again for
                    // every table.
                    Err(_) => watch.repairing.clear(),
                }
                continue;
            }
        }
        let begin = Instant::now();
        if let Err(error) = watch.check_captures().await {
            debug!(database = %database.name, %error, "could not poll the catalog");
        }
        sleep(begin.elapsed() * PAUSE_FACTOR).await;
    }
}

struct HealthWatch {
    database: Arc<DatabaseFeed>,
    /// The health of each capture at the previous poll, by the OID of the table.
    last_health: HashMap<u32, LastHealth>,
    /// The tables that are being repaired.
    repairing: HashSet<u32>,
    /// The running repairs. Each returns the OID of its table.
    repairs: JoinSet<u32>,
}

/// The health of a capture at the previous poll.
struct LastHealth {
    /// Whether UPDATE and DELETE were captured. If this value or `since` differs from that of the
    /// current capture, the table was captured again since the poll.
    changes: bool,
    /// The position since which the table was captured.
    since: LogPosition,
    /// The marks of the capture; see [`CaptureHealth`].
    marks: Vec<Box<str>>,
}

/// The health of a table's capture, as read from a row of
/// [`tidegate_changelog::ChangeLog::health_query`].
struct CaptureHealth {
    table: u32,
    /// The marks of the capture of INSERTs. A mark identifies an object by which the table is
    /// captured, such as its entry in a publication. As long as one of the marks exists, no INSERT
    /// was missed.
    inserts: Vec<Box<str>>,
    /// The marks of the capture of UPDATEs and DELETEs.
    changes: Vec<Box<str>>,
    /// Whether PostgreSQL accepts UPDATE and DELETE. PostgreSQL rejects them if the replica
    /// identity is missing.
    accepts_writes: bool,
}

impl CaptureHealth {
    fn read(row: &TextRow) -> Option<Self> {
        let marks = |at| {
            let marks = text(row, at);
            let marks = marks.split(',').filter(|mark| !mark.is_empty());
            marks.map(Into::into).collect()
        };
        Some(Self {
            table: text(row, 0).parse().ok()?,
            inserts: marks(1),
            changes: marks(2),
            accepts_writes: is_true(row, 3),
        })
    }

    /// The marks for the kinds of changes that `demand` requires.
    fn marks(&self, demand: &Demand) -> &[Box<str>] {
        if demand.changes {
            &self.changes
        } else {
            &self.inserts
        }
    }
}

impl HealthWatch {
    async fn check_captures(&mut self) -> tidegate_sql::Result<()> {
        if !self.database.stream.is_live() {
            return Ok(());
        }
        let snapshot = Arc::new(catalog_poll::poll(&self.database).await?);
        self.database.snapshots.send_replace(snapshot.clone());
        let captures = &snapshot.captures;
        self.last_health
            .retain(|table, _| captures.contains_key(table));
        for health in snapshot
            .capture_health
            .iter()
            .filter_map(CaptureHealth::read)
        {
            let table = health.table;
            let fault = match captures.get(&table) {
                Some(capture) => self.compare_health(capture, &health),
                // No client of this node subscribes to the table, so missing changes do no harm
                // here. But PostgreSQL must not reject UPDATE and DELETE because of the capture.
                None => (!health.accepts_writes).then_some(CaptureFault::RejectsWrites),
            };
            if let Some(fault) = fault
                && self.repairing.insert(table)
            {
                let database = self.database.clone();
                self.repairs.spawn(async move {
                    repair(&database, table, fault).await;
                    table
                });
            }
        }
        Ok(())
    }

    /// Compares the health of a capture with its health at the previous poll. Returns the fault to
    /// repair; `None` if there is none. If changes may be missing, marks the capture as stale and
    /// removes the stored health. Otherwise stores the new health.
    fn compare_health(
        &mut self,
        capture: &TableCapture,
        health: &CaptureHealth,
    ) -> Option<CaptureFault> {
        let demand = &capture.demand;
        let marks = health.marks(demand);
        let (changes, since) = (demand.changes, capture.captured.since);
        let last = self.last_health.get(&health.table);
        let last = last.filter(|last| (last.changes, last.since) == (changes, since));
        let stays = last.is_none_or(|last| last.marks.iter().any(|mark| marks.contains(mark)));
        if capture.stale || marks.is_empty() || !stays {
            self.database.captures.mark_stale(health.table, since);
            self.last_health.remove(&health.table);
            return Some(CaptureFault::Missing);
        }
        let marks = marks.to_vec();
        let last = LastHealth {
            changes,
            since,
            marks,
        };
        self.last_health.insert(health.table, last);
        (!health.accepts_writes).then_some(CaptureFault::RejectsWrites)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CaptureFault {
    /// Changes may be missing from the change log.
    Missing,
    /// The table has no replica identity. PostgreSQL therefore rejects UPDATE and DELETE.
    RejectsWrites,
}

/// Returns `true` if the capture of a table has no marks left. The table is then no longer
/// captured. Also returns `true` if the query for the marks fails. Returns `false` if the table
/// does not exist. The query then has no row for it.
pub(crate) async fn is_capture_gone(database: &DatabaseFeed, capture: &TableCapture) -> bool {
    let table = capture.demand.relation;
    let (query, tables) = (database.log.health_query(), oid_array(&[table]));
    let Ok(rows) = database.catalog.query_once(query, &[&tables]).await else {
        return true;
    };
    let mut healths = rows.iter().filter_map(CaptureHealth::read);
    let health = healths.find(|health| health.table == table);
    health.is_some_and(|health| health.marks(&capture.demand).is_empty())
}

/// Captures a table again. If that fails, the next poll tries again.
async fn repair(database: &DatabaseFeed, table: u32, fault: CaptureFault) {
    info!(database = %database.name, relation = table, ?fault, "capturing a table again");
    match recapture(database, table, fault).await {
        Ok(()) => {}
        // An object that all captures need, such as the publication, no longer exists. The stream
        // must be opened again.
        Err(LogError::Gone) => database.stream.reopen_request.notify_one(),
        Err(error @ (LogError::Unsupported(_) | LogError::NotAllowed { .. })) => {
            stop_capture(database, table, &error);
        }
        Err(error) => {
            debug!(database = %database.name, relation = table, %error,
                   "could not capture a table again");
        }
    }
}

async fn recapture(
    database: &DatabaseFeed,
    table: u32,
    fault: CaptureFault,
) -> Result<(), LogError> {
    let table_lock = database.captures.table_lock(table);
    let _table_lock = table_lock.lock().await;
    let _shared = database.captures.lock.read().await;
    let Some(known) = database.captures.get(table) else {
        return unblock_writes(database, table, fault).await;
    };
    if fault == CaptureFault::Missing && !known.stale {
        // A subscription has captured the table again in the meantime.
        return Ok(());
    }
    recapture::recapture_table(database, known, known.demand)
        .await
        .map(drop)
}

/// Makes PostgreSQL accept UPDATE and DELETE on a table again. Only clients of other nodes
/// subscribe to this table. The capture sets the table's replica identity to FULL. If that fails,
/// it removes the table from the publication. Errors are ignored, except [`LogError::Gone`].
async fn unblock_writes(
    database: &DatabaseFeed,
    table: u32,
    fault: CaptureFault,
) -> Result<(), LogError> {
    if fault != CaptureFault::RejectsWrites {
        return Ok(());
    }
    let demand = Demand {
        relation: table,
        changes: true,
        old_rows: false,
        timeout: Duration::ZERO,
    };
    match database.log.capture(&database.name, &demand).await {
        Err(LogError::Gone) => Err(LogError::Gone),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Handles a table that can no longer be captured as demanded. If UPDATE and DELETE were demanded,
/// ends only the subscriptions to these operations. Subscriptions to INSERT alone continue, and the
/// next poll tries to capture only INSERTs. If UPDATE and DELETE were not demanded, ends all
/// subscriptions to the table.
pub(crate) fn stop_capture(database: &DatabaseFeed, table: u32, error: &LogError) {
    let problem = error.to_string();
    let ends_all = database.captures.with_all(|captures| {
        let demand = captures.get_mut(&table).map(|capture| &mut capture.demand);
        let demand = demand.filter(|demand| demand.changes);
        let ends_all = demand.is_none();
        if let Some(demand) = demand {
            (demand.changes, demand.old_rows) = (false, false);
        } else {
            captures.remove(&table);
        }
        ends_all
    });
    let mut subscribers = database.hub.subscribers();
    subscribers.retain(|subscriber| subscriber.relation == table);
    let first = subscribers.first().map(|one| &one.name);
    let name = first.map(|(schema, name)| format!("{schema}.{name}"));
    warn!(
        database = %database.name, relation = table, table = name, %error,
        "stopped capturing a table"
    );
    for subscriber in subscribers {
        if ends_all || subscriber.operations.need_changes() {
            subscriber.end(Ended::Changed {
                problem: problem.clone(),
            });
            database.hub.detach(&subscriber);
        }
    }
}
