//! Moves the start of the retention window forward, and releases tables and databases that are no
//! longer used.

use std::collections::VecDeque;
use std::sync::Arc;

use tidegate_changelog::LogPosition;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tracing::{debug, warn};

use crate::database::captures::TableCapture;
use crate::database::database_feed::DatabaseFeed;

/// Moves the start of a database's retention window forward, and releases unused tables. Calls
/// `retire` when the database has had no subscription for [`crate::FeedSettings::idle_timeout`].
/// Ends if `retire` returns `true`; otherwise runs until it is aborted.
pub(crate) async fn watch(
    database: Arc<DatabaseFeed>,
    retire: impl Fn(&Arc<DatabaseFeed>) -> bool,
) {
    let mut tick = interval(database.settings.retention_interval);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // The positions that the stream had reached at past times, the oldest first.
    let mut samples: VecDeque<(Instant, LogPosition)> = VecDeque::new();
    loop {
        tick.tick().await;
        // `subscribers` also removes subscriptions that have ended, so that they do not keep the
        // database in use.
        if !database.hub.subscribers().is_empty() {
            *database.last_used.lock() = Instant::now();
        }
        let idle = database.last_used.lock().elapsed();
        if idle >= database.settings.idle_timeout && retire(&database) {
            return;
        }
        let stream = database.stream.state();
        if !stream.live {
            continue;
        }
        samples.push_back((Instant::now(), stream.reached));
        let mut keep = LogPosition::default();
        while let Some((when, position)) = samples.front()
            && when.elapsed() >= database.settings.retention_window
        {
            keep = *position;
            samples.pop_front();
        }
        match database.log.retain(&database.name, keep).await {
            Ok(end) => {
                let reached = database.stream.reached();
                database.metrics.record_log_end(end, reached);
            }
            Err(error) => {
                warn!(database = %database.name, %error, "could not move the retention window on");
            }
        }
        release_unused(&database).await;
    }
}

/// Ends the capture of tables to which there has been no subscription on this node for at least
/// [`crate::FeedSettings::idle_timeout`]; see [`tidegate_changelog::ChangeLog::release`].
async fn release_unused(database: &DatabaseFeed) {
    let idle_timeout = database.settings.idle_timeout;
    let is_used = |capture: &TableCapture| capture.last_used.elapsed() < idle_timeout;
    let all_used = || mark_used(database, |captures| captures.values().all(is_used));
    if all_used() {
        return;
    }
    let _exclusive = database.captures.lock.write().await;
    // After this removal, a new subscription to one of the tables waits for the lock, and then
    // captures the table again.
    let kept: Vec<u32> = mark_used(database, |captures| {
        captures.retain(|_, capture| is_used(capture));
        captures.keys().copied().collect()
    });
    if let Err(error) = database.log.release(&database.name, &kept).await {
        debug!(database = %database.name, %error, "could not release unused tables");
    }
}

/// Marks the tables with subscriptions as used, and runs a function on all captures under the same
/// lock.
fn mark_used<R>(
    database: &DatabaseFeed,
    f: impl FnOnce(&mut std::collections::HashMap<u32, TableCapture>) -> R,
) -> R {
    let subscribers = database.hub.subscribers();
    database.captures.with_all(|captures| {
        for subscriber in subscribers {
            if let Some(capture) = captures.get_mut(&subscriber.relation) {
                capture.last_used = Instant::now();
            }
        }
        f(captures)
    })
}
