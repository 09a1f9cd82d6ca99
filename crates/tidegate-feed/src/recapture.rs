//! Capturing tables that are captured already: for more, or anew because something was missed.

use std::sync::Arc;

use tidegate_sql::log::{Captured, Demand, LogError, LogPosition};
use tokio::time::Instant;

use crate::database::{Capture, Database};

/// Captures a known table as demanded, in its turn. What was missed of it before is noted, and told
/// by [`tell`]: whoever comes meanwhile finds it captured.
pub(crate) async fn renew(
    database: &Database,
    known: Capture,
    demand: Demand,
) -> Result<Captured, LogError> {
    let mut captured = database.log.capture(&database.name, &demand).await?;
    // It was let go of and captured again before anybody looked; more changes that are demanded
    // move the position without a gap.
    let moved = captured.since > known.captured.since;
    let missed = known.lost || moved && demand.changes == known.demand.changes;
    if known.lost && !moved {
        // Another node captured it anew, or somebody put it back before anybody saw.
        captured.since = database.log.retain(&database.name, LogPosition(0)).await?;
        captured.barrier = captured.since;
    }
    let mut all = database.captures.lock();
    let now = all.get(&demand.relation).copied().unwrap_or(known);
    captured.since = captured.since.max(now.captured.since);
    let renewed = Capture {
        demand,
        captured,
        used: known.used.max(now.used),
        // Who finds meanwhile that it is lost has not been heard here.
        lost: now.lost && !known.lost,
        ..now
    };
    all.insert(demand.relation, renewed);
    drop(all);
    if missed {
        database.miss(demand.relation, captured);
    }
    Ok(captured)
}

/// Tells of tables that were lost and have been captured anew: those who were there before, behind
/// whatever else they have to hear of the time before. Runs until it is aborted, in nobody's turn:
/// a stream that begins anew captures tables before it is there.
pub(crate) async fn tell(database: Arc<Database>) {
    loop {
        let untold = database.untold();
        let Some(next) = untold.iter().map(|(_, captured)| captured.barrier).min() else {
            database.gapped.notified().await;
            continue;
        };
        let deadline = Instant::now() + database.settings.patience;
        let reached = tokio::select! {
            reached = database.reach(next, deadline) => reached,
            // It may be an earlier one.
            () = database.gapped.notified() => continue,
        };
        if reached.is_ok() {
            for (relation, captured) in untold {
                if captured.barrier <= next {
                    database.tell_untold(relation, captured);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::{sleep, timeout};

    use super::*;
    use crate::admission::tests::database;

    fn gap(at: u64) -> Captured {
        Captured {
            since: LogPosition(at),
            barrier: LogPosition(at),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_gap_is_told_where_it_was_however_often_the_table_is_lost_again() {
        let database = Arc::new(database());
        let capture = Capture {
            demand: Demand {
                relation: 1,
                changes: true,
                old_rows: false,
                patience: database.settings.patience,
            },
            captured: gap(50),
            begun: LogPosition(50),
            used: Instant::now(),
            lost: false,
            untold: None,
            untold_since: None,
        };
        database.captures.lock().insert(1, capture);
        database.stream.send_modify(|stream| stream.live = true);
        let telling = tokio::spawn(tell(database.clone()));
        for at in [100, 200, 300] {
            database.miss(1, gap(at));
        }
        for (reached, untold) in [
            (99, vec![(1, gap(100))]),
            (150, vec![(1, gap(300))]),
            (300, vec![]),
        ] {
            database.advance(LogPosition(reached));
            let told = async {
                while database.untold() != untold {
                    sleep(Duration::from_millis(1)).await;
                }
            };
            let told = timeout(Duration::from_mins(1), told).await;
            told.expect("what the stream has come past is not told");
        }
        telling.abort();
    }
}
