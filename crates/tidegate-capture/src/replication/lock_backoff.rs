//! Pauses between attempts to lock a table exclusively. While an attempt waits, all new readers and
//! writers of the table wait too. Therefore attempts take at most a tenth of the time, however many
//! subscriptions start.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use tidegate_sql::DatabaseName;
use tokio::time::{Instant, sleep_until};

/// The timeout of the first attempt to get the lock, and the longest timeout. The timeout doubles
/// with each attempt, because transactions may outlast a short timeout.
pub(super) const ATTEMPT: (Duration, Duration) =
    (Duration::from_millis(100), Duration::from_millis(800));
/// The pause after an attempt, as a multiple of its duration.
pub(super) const PAUSE_FACTOR: u32 = 9;

/// For each table, the time before which no further attempt to lock it may begin.
#[derive(Debug, Default)]
pub(super) struct LockBackoff(Mutex<HashMap<(DatabaseName, u32), Instant>>);

impl LockBackoff {
    /// Waits until an attempt to lock a table may begin. Returns `false` without waiting if that
    /// time is after the deadline `by`.
    pub(super) async fn wait_until(
        &self,
        database: &DatabaseName,
        table: u32,
        by: Instant,
    ) -> bool {
        let key = (database.clone(), table);
        let until = self.0.lock().get(&key).copied();
        match until {
            Some(until) if until > by => false,
            Some(until) => {
                sleep_until(until).await;
                true
            }
            None => true,
        }
    }

    /// Records an unsuccessful attempt, so that the next one must wait. `took` is the duration of
    /// the attempt.
    pub(super) fn record_failure(&self, database: &DatabaseName, table: u32, took: Duration) {
        let now = Instant::now();
        let mut lock_backoff = self.0.lock();
        lock_backoff.retain(|_, until| *until > now);
        let key = (database.clone(), table);
        lock_backoff.insert(key, now + took.max(ATTEMPT.0) * PAUSE_FACTOR);
    }
}
