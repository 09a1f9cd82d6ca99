//! What has to be so before a subscription is acknowledged.

use tidegate_sql::log::{Captured, Demand, LogPosition};
use tokio::time::{Instant, timeout_at};

use crate::cursor::Cursor;
use crate::database::{Capture, Database};
use crate::error::{Error, Result};
use crate::hub::From;
use crate::queue::Resync;
use crate::recapture;
use crate::standing;
use crate::subscriber::Subscriber;

/// Sees to it that a table is captured as demanded, and that the stream has come past the point
/// where that took effect.
pub(crate) async fn capture(
    database: &Database,
    demand: Demand,
    deadline: Instant,
) -> Result<LogPosition> {
    let settled = match captured(database, demand) {
        Some(settled) => settled,
        None => capture_now(database, demand, deadline).await?,
    };
    database.reach(settled.barrier, deadline).await?;
    Ok(settled.since)
}

/// A table that is captured as demanded needs nobody's turn: others may wait long for theirs.
fn captured(database: &Database, demand: Demand) -> Option<Captured> {
    let mut captures = database.captures.lock();
    let known = captures.get_mut(&demand.relation)?;
    if known.lost || known.demand != joined(known.demand, demand) {
        return None;
    }
    known.used = Instant::now();
    Some(known.captured)
}

async fn capture_now(database: &Database, demand: Demand, deadline: Instant) -> Result<Captured> {
    let (settled, lost) = capture_in_turn(database, demand, deadline).await?;
    if lost {
        // Nobody else waits for this: a stream that begins anew captures tables before it is there.
        recapture::tell(database, demand.relation, settled).await;
    }
    Ok(settled)
}

/// Says besides whether something was missed before, which is to be told.
async fn capture_in_turn(
    database: &Database,
    demand: Demand,
    deadline: Instant,
) -> Result<(Captured, bool)> {
    let turn = database.turn(demand.relation);
    let too_late = |_| Error::Timeout {
        what: "others who subscribe to the table".to_owned(),
        limit: demand.patience,
    };
    let _turn = timeout_at(deadline, turn.lock()).await.map_err(too_late)?;
    let _capturing = database.capturing.read().await;
    if let Some(settled) = captured(database, demand) {
        return Ok((settled, false));
    }
    let known = database.captures.lock().get(&demand.relation).copied();
    let Some(known) = known else {
        let settled = database.log.capture(&database.name, &demand).await?;
        let capture = Capture {
            demand,
            captured: settled,
            begun: settled.since,
            used: Instant::now(),
            lost: false,
        };
        database.captures.lock().insert(demand.relation, capture);
        return Ok((settled, false));
    };
    capture_more(database, known, joined(known.demand, demand)).await
}

/// Captures a table for more, or anew. Whether it was not captured any more nobody can see
/// afterwards.
async fn capture_more(
    database: &Database,
    mut known: Capture,
    demand: Demand,
) -> Result<(Captured, bool)> {
    if !known.lost && standing::is_missing(database, &known).await {
        database.lose(demand.relation, known.captured.since);
        known.lost = true;
    }
    known.used = Instant::now();
    let settled = recapture::renew(database, known, demand).await?;
    Ok((settled, known.lost))
}

/// What both demand, with the patience of the second.
fn joined(known: Demand, demand: Demand) -> Demand {
    Demand {
        changes: demand.changes || known.changes,
        old_rows: demand.old_rows || known.old_rows,
        ..demand
    }
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
