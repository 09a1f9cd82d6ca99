//! Captures tables again, for more kinds of changes or because changes may be missing.

use std::sync::Arc;

use tidegate_changelog::{Captured, Demand, LogError, LogPosition};
use tokio::time::Instant;

use crate::database::captures::TableCapture;
use crate::database::database_feed::DatabaseFeed;

/// Captures a table again as `demand` requires, and stores the capture. The calling function must
/// hold the table's lock (`Captures::table_lock`), or hold `Captures::lock` exclusively. If changes
/// may be missing, records a gap, which [`report_gaps`] reports.
///
/// # Errors
///
/// If the table cannot be captured.
pub(crate) async fn recapture_table(
    database: &DatabaseFeed,
    known: TableCapture,
    demand: Demand,
) -> Result<Captured, LogError> {
    let mut captured = database.log.capture(&database.name, &demand).await?;
    // If `captured.since` is later than `known.captured.since`, changes may be missing. For
    // example, the table was released, its partitions changed, or another change log was opened
    // ([`Captures::reset_positions`]). The only exception is that more kinds of changes are
    // captured now: this also moves `since` forward, but causes no gap.
    let has_moved = captured.since > known.captured.since;
    let has_gap = known.stale || has_moved && demand.changes == known.demand.changes;
    if known.stale && !has_moved {
        // Another node has captured the table again, or an operator has restored the capture. In
        // both cases the gap has ended before now, so the current end of the log is used as the end
        // of the gap.
        captured.since = database.log.retain(&database.name, LogPosition(0)).await?;
        captured.barrier = captured.since;
    }
    database.captures.with_all(|tables| {
        let current = tables.get(&demand.relation).copied().unwrap_or(known);
        captured.since = captured.since.max(current.captured.since);
        let recaptured = TableCapture {
            demand,
            captured,
            last_used: known.last_used.max(current.last_used),
            // Another task may have marked the table as stale during the capture. Such a mark is
            // kept, because this capture may not have repaired the cause.
            stale: current.stale && !known.stale,
            ..current
        };
        tables.insert(demand.relation, recaptured);
    });
    if has_gap {
        database.captures.record_gap(demand.relation, captured);
    }
    Ok(captured)
}

/// Reports the gaps of tables that were captured again. Each gap is reported when the stream has
/// reached it, to the subscriptions that began before the end of the gap. Runs until it is aborted.
/// This function must not wait for the locks of captures: a new stream holds them while it captures
/// tables, and reaches its first position only afterwards.
pub(crate) async fn report_gaps(database: Arc<DatabaseFeed>) {
    loop {
        let gaps = database.captures.pending_gaps();
        let Some(next) = gaps.iter().map(|(_, gap)| gap.barrier).min() else {
            database.captures.gap_recorded.notified().await;
            continue;
        };
        let deadline = Instant::now() + database.settings.subscribe_timeout;
        let reached = tokio::select! {
            reached = database.stream.wait_until_reached(next, deadline) => reached,
            // A gap that was just recorded may come before the other gaps.
            () = database.captures.gap_recorded.notified() => continue,
        };
        if reached.is_ok() {
            for (relation, gap) in gaps {
                if gap.barrier <= next {
                    database.report_gap(relation, gap);
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
    use crate::database::fixture::database_feed;

    fn gap(at: u64) -> Captured {
        Captured {
            since: LogPosition(at),
            barrier: LogPosition(at),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_gap_keeps_its_position_however_often_the_table_becomes_stale_again() {
        let database = Arc::new(database_feed());
        database.captures.insert(TableCapture {
            demand: Demand {
                relation: 1,
                changes: true,
                old_rows: false,
                timeout: database.settings.subscribe_timeout,
            },
            captured: gap(50),
            first_captured: LogPosition(50),
            last_used: Instant::now(),
            stale: false,
            pending_gap: None,
            next_gap: None,
        });
        database.stream.update(|stream| stream.live = true);
        let task = tokio::spawn(report_gaps(database.clone()));
        for at in [100, 200, 300] {
            database.captures.record_gap(1, gap(at));
        }
        for (reached, pending) in [
            (99, vec![(1, gap(100))]),
            (150, vec![(1, gap(300))]),
            (300, vec![]),
        ] {
            database.advance(LogPosition(reached));
            let reported = async {
                while database.captures.pending_gaps() != pending {
                    sleep(Duration::from_millis(1)).await;
                }
            };
            let reported = timeout(Duration::from_mins(1), reported).await;
            reported.expect("a gap that the stream has passed is not reported");
        }
        task.abort();
    }
}
