//! Counts the databases whose catalogs are read regularly.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use tidegate_sql::DatabaseName;
use tokio::time::Instant;

/// The longest pause between two reads that are part of the same series. The catalog of a database
/// with subscribers is read about once a second.
const PAUSE: Duration = Duration::from_secs(3);
/// How long a series must last before its database counts. Shorter series come from single requests.
const LEAST: Duration = Duration::from_secs(5);

/// For each database, the first and the last read of its current series.
#[derive(Default)]
pub(super) struct CatalogReads(Mutex<HashMap<DatabaseName, (Instant, Instant)>>);

impl CatalogReads {
    /// Records a read at the time `now`.
    pub(super) fn record(&self, database: &DatabaseName, now: Instant) {
        let mut series = self.0.lock();
        series.retain(|_, (_, last)| continues(*last, now));
        series.entry(database.clone()).or_insert((now, now)).1 = now;
    }

    /// How many databases are read regularly at the time `now`.
    pub(super) fn polled(&self, now: Instant) -> usize {
        let series = self.0.lock();
        let lasting = |(first, last): &&(Instant, Instant)| {
            continues(*last, now) && last.duration_since(*first) >= LEAST
        };
        series.values().filter(lasting).count()
    }
}

fn continues(last: Instant, now: Instant) -> bool {
    now.saturating_duration_since(last) <= PAUSE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_databases_that_are_read_without_a_pause_count() {
        let (reads, start) = (CatalogReads::default(), Instant::now());
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        let [often, once] = ["often", "once"].map(DatabaseName::new);
        reads.record(&once, at(0));
        for second in 0..=5 {
            assert_eq!(reads.polled(at(second)), 0, "second {second}");
            reads.record(&often, at(second));
        }
        assert_eq!(reads.polled(at(8)), 1);
        assert_eq!(reads.polled(at(9)), 0, "the series has ended");
        reads.record(&often, at(9));
        assert_eq!(reads.polled(at(9)), 0, "a new series has begun");
    }
}
