//! What the feed of a database counts, and how far it is behind the log.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use parking_lot::Mutex;
use tidegate_sql::log::LogPosition;
use tokio::time::Instant;

/// How many ends of the log are remembered.
const ENDS: usize = 256;

/// The counters of a database's feed.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    /// Events that were queued for a connection.
    pub(crate) events: AtomicU64,
    /// Gaps that a subscription was told of.
    pub(crate) resyncs: AtomicU64,
    /// Connections that were cut because they did not read.
    pub(crate) cut: AtomicU64,
    /// Where the log ended, and when that was seen; those that have not been reached.
    ends: Mutex<VecDeque<(Instant, LogPosition)>>,
}

/// How far a stream is behind the end of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lag {
    pub(crate) bytes: u64,
    pub(crate) time: Duration,
}

impl Meter {
    /// Counts one more.
    pub(crate) fn count(counter: &AtomicU64) {
        counter.fetch_add(1, Relaxed);
    }

    /// The log was seen to end here, when everything before `reached` had been handed out.
    pub(crate) fn see_end(&self, end: LogPosition, reached: LogPosition) {
        let mut ends = self.ends.lock();
        ends.retain(|(_, end)| *end > reached);
        if ends.len() == ENDS {
            // The oldest tells how long, the newest how much.
            ends.remove(1);
        }
        if end > reached {
            ends.push_back((Instant::now(), end));
        }
    }

    /// How far a stream that has come to `reached` is behind, as far as ends were seen.
    pub(crate) fn lag(&self, reached: LogPosition) -> Lag {
        let ends = self.ends.lock();
        let oldest = ends.iter().find(|(_, end)| *end > reached);
        let newest = ends.back().map_or(reached, |(_, end)| *end);
        Lag {
            bytes: newest.0.saturating_sub(reached.0),
            time: oldest.map_or(Duration::ZERO, |(seen, _)| seen.elapsed()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn lag_is_counted_from_the_oldest_end_that_was_not_reached() {
        let meter = Meter::default();
        let at = LogPosition;
        assert_eq!(meter.lag(at(0)), Lag::default());
        meter.see_end(at(100), at(100));
        assert_eq!(meter.lag(at(100)), Lag::default());
        meter.see_end(at(300), at(100));
        tokio::time::advance(Duration::from_secs(15)).await;
        meter.see_end(at(500), at(100));
        tokio::time::advance(Duration::from_secs(5)).await;
        let lag = |bytes, seconds| Lag {
            bytes,
            time: Duration::from_secs(seconds),
        };
        assert_eq!(meter.lag(at(100)), lag(400, 20));
        assert_eq!(meter.lag(at(300)), lag(200, 5));
        assert_eq!(meter.lag(at(500)), lag(0, 0));
        for end in 501..2000 {
            meter.see_end(at(end), at(100));
        }
        assert_eq!(meter.lag(at(100)), lag(1899, 20));
        assert_eq!(meter.ends.lock().len(), ENDS);
    }
}
