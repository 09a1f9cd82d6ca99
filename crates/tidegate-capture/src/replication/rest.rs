//! Rests between attempts to lock a table alone. While one waits, whoever reads or writes the
//! table waits behind it: together they take a tenth of the time at most, however many subscribe.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use tidegate_sql::DatabaseName;
use tokio::time::{Instant, sleep_until};

/// How long the first attempt may wait for its lock, and the longest: each one waits twice as
/// long as the one before it, for those whom nobody outwaits in less.
pub(super) const ATTEMPT: (Duration, Duration) =
    (Duration::from_millis(100), Duration::from_millis(800));
/// An attempt is followed by so many times as much rest.
pub(super) const REST: u32 = 9;

/// Until when tables are left alone.
#[derive(Debug, Default)]
pub(super) struct Rests(Mutex<HashMap<(DatabaseName, u32), Instant>>);

impl Rests {
    /// Waits until a table may be locked; says whether that is before a deadline.
    pub(super) async fn is_over(&self, database: &DatabaseName, table: u32, by: Instant) -> bool {
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

    /// An attempt was in vain.
    pub(super) fn begin(&self, database: &DatabaseName, table: u32, took: Duration) {
        let now = Instant::now();
        let mut rests = self.0.lock();
        rests.retain(|_, until| *until > now);
        let key = (database.clone(), table);
        rests.insert(key, now + took.max(ATTEMPT.0) * REST);
    }
}
