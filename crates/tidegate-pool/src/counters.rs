//! Counters of the pool.

use std::time::Duration;

/// The upper bounds of [`Counters::waits`], in milliseconds; the last bucket has none.
pub const WAIT_BOUNDS: [u64; 8] = [1, 5, 25, 100, 250, 500, 1_000, 2_500];

/// Events since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Idle connections that were checked out at once.
    pub reused: u64,
    /// Connections opened.
    pub opened: u64,
    /// Attempts to open a connection that failed.
    pub open_failures: u64,
    /// Connections closed for any reason, failed attempts included.
    pub closed: u64,
    /// Idle connections closed to make room for another role.
    pub evicted: u64,
    /// Resets started.
    pub resets: u64,
    /// Resets that failed and closed the connection.
    pub reset_failures: u64,
    /// Requests that waited for the longest allowed time.
    pub timeouts: u64,
    /// Requests refused because the queue was full.
    pub rejected: u64,
    /// Requests that waited and got a connection, by the length of the wait: within each of
    /// [`WAIT_BOUNDS`], and longer.
    pub waits: [u64; 9],
    /// Sum of those waits in microseconds.
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
