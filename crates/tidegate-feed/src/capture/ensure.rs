//! Ensures that a table is captured before a subscription to it is acknowledged.

use tidegate_changelog::{Captured, Demand, LogPosition};
use tokio::time::{Instant, timeout_at};

use crate::capture::{health, recapture};
use crate::database::captures::TableCapture;
use crate::database::database_feed::DatabaseFeed;
use crate::error::{Error, Result};

/// Captures a table as `demand` requires, unless it is already captured in that way. Then waits
/// until the stream has reached the position from which the capture is effective. Returns the
/// position since which the table has been captured without a gap.
///
/// # Errors
///
/// If the table cannot be captured, or if the capture takes longer than the deadline.
pub(crate) async fn ensure_captured(
    database: &DatabaseFeed,
    demand: Demand,
    deadline: Instant,
) -> Result<LogPosition> {
    let captured = match current_capture(database, demand) {
        Some(captured) => captured,
        None => capture_exclusively(database, demand, deadline).await?,
    };
    let stream = &database.stream;
    stream
        .wait_until_reached(captured.barrier, deadline)
        .await?;
    Ok(captured.since)
}

/// The capture of a table, if it meets the demand and is not stale; otherwise `None`. Marks the
/// capture as used. Does not wait for the lock that serialises captures of the table, because
/// another task may hold it for a long time. Does not check [`TableCapture::pending_gap`]: changes
/// may be missing there, but the new subscription begins after them.
fn current_capture(database: &DatabaseFeed, demand: Demand) -> Option<Captured> {
    let sufficient = |capture: &mut TableCapture| {
        let is_sufficient = !capture.stale && capture.demand == union(capture.demand, demand);
        is_sufficient.then(|| {
            capture.last_used = Instant::now();
            capture.captured
        })
    };
    database.captures.update(demand.relation, sufficient)?
}

async fn capture_exclusively(
    database: &DatabaseFeed,
    demand: Demand,
    deadline: Instant,
) -> Result<Captured> {
    let timeout = |what: &str| Error::Timeout {
        what: what.to_owned(),
        limit: demand.timeout,
    };
    let table_lock = database.captures.table_lock(demand.relation);
    let _table_lock = timeout_at(deadline, table_lock.lock())
        .await
        .map_err(|_| timeout("another subscription to the table"))?;
    // When a new stream opens, it holds this lock exclusively while it captures all tables again.
    let _shared = timeout_at(deadline, database.captures.lock.read())
        .await
        .map_err(|_| timeout("the stream of changes"))?;
    // Another subscription may have captured the table while this one waited for the locks.
    if let Some(captured) = current_capture(database, demand) {
        return Ok(captured);
    }
    if let Some(known) = database.captures.get(demand.relation) {
        return extend(database, known, union(known.demand, demand)).await;
    }
    let captured = database.log.capture(&database.name, &demand).await?;
    database.captures.insert(TableCapture {
        demand,
        captured,
        first_captured: captured.since,
        last_used: Instant::now(),
        stale: false,
        pending_gap: None,
        next_gap: None,
    });
    Ok(captured)
}

/// Captures an already captured table again, for more kinds of changes or because changes may be
/// missing.
async fn extend(
    database: &DatabaseFeed,
    mut known: TableCapture,
    demand: Demand,
) -> Result<Captured> {
    // A missing capture must be detected before the table is captured again, because afterwards the
    // capture would look intact.
    if !known.stale && health::is_capture_gone(database, &known).await {
        database
            .captures
            .mark_stale(demand.relation, known.captured.since);
        known.stale = true;
    }
    known.last_used = Instant::now();
    Ok(recapture::recapture_table(database, known, demand).await?)
}

/// The union of two demands for the same table, with the timeout of the second demand.
fn union(known: Demand, demand: Demand) -> Demand {
    Demand {
        changes: demand.changes || known.changes,
        old_rows: demand.old_rows || known.old_rows,
        ..demand
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;
    use crate::database::fixture::database_feed;

    #[tokio::test(start_paused = true)]
    async fn a_subscription_waits_for_a_new_stream_until_the_deadline_only() {
        let database = database_feed();
        let limit = database.settings.subscribe_timeout;
        let demand = Demand {
            relation: 1,
            changes: true,
            old_rows: false,
            timeout: limit,
        };
        // A new stream holds the lock exclusively while it captures tables that have open writers.
        let _exclusive = database.captures.lock.write().await;
        let refused = ensure_captured(&database, demand, Instant::now() + limit);
        let refused = timeout(limit + Duration::from_secs(1), refused).await;
        let refused = refused.expect("the subscription waits forever");
        assert!(matches!(refused, Err(Error::Timeout { .. })), "{refused:?}");
    }
}
