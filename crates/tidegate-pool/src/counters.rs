//! Counts of what the pool did.

use std::time::Duration;

/// The upper bounds of [`Counters::waits`], in milliseconds; the last bucket has none.
pub const WAIT_BOUNDS: [u64; 8] = [1, 5, 25, 100, 250, 500, 1_000, 2_500];

/// Events since the start; they only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Idle connections lent at once.
    pub reused: u64,
    /// Connections opened.
    pub opened: u64,
    /// Attempts to open one that failed.
    pub open_failures: u64,
    /// Connections closed, for whatever reason, failed attempts included.
    pub closed: u64,
    /// Of those, idle ones that made room for another role.
    pub evicted: u64,
    /// Resets begun.
    pub resets: u64,
    /// Resets that failed, which closed the connection.
    pub reset_failures: u64,
    /// Requests that waited as long as they may.
    pub timeouts: u64,
    /// Requests refused because the queue was full.
    pub rejected: u64,
    /// Requests that waited and got a connection, by how long: within each of
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
