//! Capturing tables that are captured already: for more, or anew because something was missed.

use tidegate_sql::log::{Captured, Demand, LogError, LogPosition};
use tokio::time::Instant;

use crate::database::{Capture, Database};
use crate::queue::Resync;

/// Captures a known table as demanded, in its turn. What was missed of it before is not told yet.
pub(crate) async fn renew(
    database: &Database,
    known: Capture,
    demand: Demand,
) -> Result<Captured, LogError> {
    let mut captured = database.log.capture(&database.name, &demand).await?;
    if known.lost && captured.since <= known.captured.since {
        // Another node captured it anew, or somebody put it back before anybody saw.
        captured.since = database.log.retain(&database.name, LogPosition(0)).await?;
        captured.barrier = captured.since;
    }
    captured.since = captured.since.max(known.captured.since);
    let mut all = database.captures.lock();
    // Who finds meanwhile that it is lost has not been heard here.
    let lost = all.get(&demand.relation).map(|known| known.lost);
    let renewed = Capture {
        demand,
        captured,
        lost: known.lost || lost.unwrap_or(false),
        ..known
    };
    all.insert(demand.relation, renewed);
    Ok(captured)
}

/// Tells of a table that was lost and has been captured anew: those who were there before, behind
/// whatever else they have to hear of the time before.
pub(crate) async fn tell(database: &Database, relation: u32, captured: Captured) {
    let barrier = captured.since.max(captured.barrier);
    loop {
        let deadline = Instant::now() + database.settings.patience;
        let reached = database.reach(barrier, deadline).await;
        // A stream that is broken by now is opened again, and what is behind it told then.
        if reached.is_ok() || !database.stream.borrow().live {
            break;
        }
    }
    // Who began behind that has everything.
    database.tell_missed(relation, captured.since, Resync::Interrupted);
    if let Some(known) = database.captures.lock().get_mut(&relation) {
        known.lost &= known.captured.since != captured.since;
    }
}
