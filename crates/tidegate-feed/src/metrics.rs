//! The counters of a database's feed, and how far its stream is behind the end of the change log.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use parking_lot::Mutex;
use tidegate_changelog::LogPosition;
use tokio::time::Instant;

/// The maximum number of entries in `FeedMetrics::ends`.
const MAX_ENDS: usize = 256;

#[derive(Debug, Default)]
pub(crate) struct FeedMetrics {
    /// How many events were put into the queues of connections.
    pub(crate) events: AtomicU64,
    /// How many gaps were reported to subscriptions.
    pub(crate) resyncs: AtomicU64,
    /// How many connections were closed because their clients did not read.
    pub(crate) slow_consumers: AtomicU64,
    /// The observed ends of the change log that the stream has not reached yet, each with the time
    /// of the observation.
    ends: Mutex<VecDeque<(Instant, LogPosition)>>,
}

/// How far a stream is behind the end of the change log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StreamLag {
    /// The distance from the position of the stream to the most recently observed end of the log.
    pub(crate) bytes: u64,
    /// The time since the first observation of an end that the stream has not reached; zero if the
    /// stream has reached every observed end.
    pub(crate) time: Duration,
}

impl FeedMetrics {
    pub(crate) fn count(counter: &AtomicU64) {
        counter.fetch_add(1, Relaxed);
    }

    /// Records that the change log was observed to end at `end`, and that everything before
    /// `reached` has been dispatched.
    pub(crate) fn record_log_end(&self, end: LogPosition, reached: LogPosition) {
        let mut ends = self.ends.lock();
        ends.retain(|(_, end)| *end > reached);
        if ends.len() == MAX_ENDS {
            // `lag` uses only the oldest and the newest entry, so an entry between them can be
            // dropped.
            ends.remove(1);
        }
        if end > reached {
            ends.push_back((Instant::now(), end));
        }
    }

    /// How far a stream at the position `reached` is behind the most recently observed end of the
    /// change log.
    pub(crate) fn lag(&self, reached: LogPosition) -> StreamLag {
        let ends = self.ends.lock();
        let oldest = ends.iter().find(|(_, end)| *end > reached);
        let newest = ends.back().map_or(reached, |(_, end)| *end);
        StreamLag {
            bytes: newest.0.saturating_sub(reached.0),
            time: oldest.map_or(Duration::ZERO, |(observed, _)| observed.elapsed()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn lag_is_the_age_of_the_oldest_end_that_was_not_reached() {
        let metrics = FeedMetrics::default();
        let at = LogPosition;
        assert_eq!(metrics.lag(at(0)), StreamLag::default());
        metrics.record_log_end(at(100), at(100));
        assert_eq!(metrics.lag(at(100)), StreamLag::default());
        metrics.record_log_end(at(300), at(100));
        tokio::time::advance(Duration::from_secs(15)).await;
        metrics.record_log_end(at(500), at(100));
        tokio::time::advance(Duration::from_secs(5)).await;
        let lag = |bytes, seconds| StreamLag {
            bytes,
            time: Duration::from_secs(seconds),
        };
        assert_eq!(metrics.lag(at(100)), lag(400, 20));
        assert_eq!(metrics.lag(at(300)), lag(200, 5));
        assert_eq!(metrics.lag(at(500)), lag(0, 0));
        for end in 501..2000 {
            metrics.record_log_end(at(end), at(100));
        }
        assert_eq!(metrics.lag(at(100)), lag(1899, 20));
        assert_eq!(metrics.ends.lock().len(), MAX_ENDS);
    }
}
