//! What has to be so before a subscription is acknowledged.

use tidegate_sql::log::{Demand, LogPosition};
use tokio::time::Instant;

use crate::cursor::Cursor;
use crate::database::{Capture, Database};
use crate::error::Result;
use crate::hub::From;
use crate::queue::Resync;
use crate::subscriber::Subscriber;

/// Sees to it that a table is captured as demanded, and that the stream has come past the point
/// where that took effect.
pub(crate) async fn capture(
    database: &Database,
    demand: Demand,
    deadline: Instant,
) -> Result<LogPosition> {
    let mut captures = database.captures.lock().await;
    let known = captures.get(&demand.relation).copied();
    let demand = match known {
        Some(known) => Demand {
            changes: demand.changes || known.demand.changes,
            old_rows: demand.old_rows || known.demand.old_rows,
            ..demand
        },
        None => demand,
    };
    let used = Instant::now();
    let settled = match known {
        Some(known) if known.demand == demand => known.captured,
        _ => database.log.capture(&database.name, &demand).await?,
    };
    let capture = Capture {
        demand,
        captured: settled,
        used,
    };
    captures.insert(demand.relation, capture);
    drop(captures);
    database.reach(settled.barrier, deadline).await?;
    Ok(settled.since)
}

/// Where a definition has changed since the last change of a row, the log has yet to tell it:
/// once it has come past the definition, what was known is forgotten.
pub(crate) async fn refit(
    database: &Database,
    subscriber: &Subscriber,
    deadline: Instant,
) -> Result<()> {
    if !database.fits(subscriber) {
        let now = database
            .log
            .retain(&database.name, LogPosition::default())
            .await?;
        database.reach(now, deadline).await?;
        database.unshape_unless(subscriber);
    }
    Ok(())
}

/// Where a subscription begins.
pub(crate) async fn place(
    database: &Database,
    after: Option<Cursor>,
    since: LogPosition,
    deadline: Instant,
) -> From {
    let Some(cursor) = after else {
        return From::Now;
    };
    if !cursor.is_in(database.log_identity()) {
        return From::Gap(Resync::OtherLog);
    }
    // What happened to the table before it was captured is not in the log.
    if cursor.place.commit < since {
        return From::Gap(Resync::Expired);
    }
    // A node that has just started is still reading what was before; a place that never comes
    // belongs to a log that was cut off.
    let commit = cursor.place.commit.0;
    let there = LogPosition(if cursor.place.index == 0 {
        commit
    } else {
        commit.saturating_add(1)
    });
    match database.reach(there, deadline).await {
        Ok(()) => From::After(cursor.place),
        Err(_) => From::Gap(Resync::Expired),
    }
}
