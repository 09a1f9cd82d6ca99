//! Counters of the pool since the start, for the metrics.

use std::time::Duration;

/// The upper bounds of the buckets of [`Counters::waits`], in milliseconds. A further bucket
/// without a bound follows them.
pub const WAIT_BOUNDS: [u64; 8] = [1, 5, 25, 100, 250, 500, 1_000, 2_500];

/// Counts of events since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// How many times an idle connection was checked out without a wait.
    pub reused: u64,
    /// How many connections were opened.
    pub opened: u64,
    /// How many attempts to open a connection failed.
    pub open_failures: u64,
    /// How many connections were closed for any reason, including failed attempts to open one.
    pub closed: u64,
    /// How many idle connections were closed to make room for another role.
    pub evicted: u64,
    /// How many resets were started.
    pub resets: u64,
    /// How many resets failed. Each failure closed the connection.
    pub reset_failures: u64,
    /// How many requests got no connection within the maximum wait.
    pub timeouts: u64,
    /// How many requests were refused because the queue was full.
    pub rejected: u64,
    /// How many requests got a connection after a wait, by the length of the wait: one bucket for
    /// each of [`WAIT_BOUNDS`], and one bucket for longer waits.
    pub waits: [u64; 9],
    /// The sum of the waits that `waits` counts, in microseconds.
    pub waited_micros: u64,
}

impl Counters {
    pub(super) fn waited(&mut self, time: Duration) {
        let millis = time.as_millis();
        let bucket = WAIT_BOUNDS
            .iter()
            .position(|bound| millis < u128::from(*bound));
        self.waits[bucket.unwrap_or(WAIT_BOUNDS.len())] += 1;
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.waited_micros = self.waited_micros.saturating_add(micros);
    }
}
