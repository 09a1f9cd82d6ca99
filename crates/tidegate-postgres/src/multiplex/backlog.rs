//! How many pipelines wait on a multiplexed connection, and for how long.

use std::time::Duration;

/// The limit on the total time that the pipelines of a connection are expected to take. A longer
/// limit may be given for a pipeline. A pipeline that would exceed the limit runs on a connection
/// of its own, which another backend serves.
pub(super) const MAX_BACKLOG: Duration = Duration::from_millis(1);
/// The maximum number of pipelines on a connection that are queued, or sent and without a response.
const MAX_PIPELINES: usize = 64;

/// The pipelines of a connection that are queued or have no complete response yet.
#[derive(Default)]
pub(super) struct Backlog {
    pipelines: usize,
    /// The time that all these pipelines together are expected to take.
    expected: Duration,
}

impl Backlog {
    /// The time that the pipelines are expected to take; `None` if there are [`MAX_PIPELINES`].
    pub(super) fn expected(&self) -> Option<Duration> {
        (self.pipelines < MAX_PIPELINES).then_some(self.expected)
    }

    /// Whether another pipeline may be queued: the backlog is shorter than `limit` and has fewer
    /// than [`MAX_PIPELINES`] pipelines. For an empty backlog the result is always `true`.
    pub(super) fn has_room(&self, limit: Duration) -> bool {
        self.pipelines == 0 || self.expected().is_some_and(|expected| expected < limit)
    }

    /// Whether a pipeline that takes the time `expected` would get its response within
    /// [`MAX_BACKLOG`] or `limit`, whichever is longer. For an empty backlog the result is always
    /// `true`.
    pub(super) fn responds_in_time(&self, expected: Duration, limit: Duration) -> bool {
        self.pipelines == 0 || self.expected + expected <= limit.max(MAX_BACKLOG)
    }

    /// Adds a pipeline that is expected to take the time `expected`.
    pub(super) fn push(&mut self, expected: Duration) {
        self.pipelines += 1;
        self.expected += expected;
    }

    /// Removes a pipeline that was added with `expected`.
    pub(super) fn pop(&mut self, expected: Duration) {
        self.pipelines = self.pipelines.saturating_sub(1);
        self.expected = match self.pipelines {
            0 => Duration::ZERO,
            _ => self.expected.saturating_sub(expected),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_micros(200);

    fn of(pipelines: usize, each: Duration) -> Backlog {
        let mut backlog = Backlog::default();
        (0..pipelines).for_each(|_| backlog.push(each));
        backlog
    }

    #[test]
    fn an_idle_connection_accepts_a_pipeline_of_any_length() {
        let idle = Backlog::default();
        assert!(idle.has_room(Duration::ZERO));
        assert!(idle.responds_in_time(Duration::from_secs(1), SHORT));
    }

    #[test]
    fn pipelines_are_spread_before_they_are_queued_behind_others() {
        let busy = of(4, Duration::from_micros(60));
        assert!(!busy.has_room(SHORT));
        assert!(busy.has_room(MAX_BACKLOG));
        assert!(of(3, Duration::from_micros(60)).has_room(SHORT));
    }

    #[test]
    fn a_long_read_is_not_queued_behind_others() {
        let busy = of(4, Duration::from_micros(60));
        assert!(busy.responds_in_time(Duration::from_micros(760), MAX_BACKLOG));
        assert!(!busy.responds_in_time(Duration::from_micros(761), MAX_BACKLOG));
        assert!(!busy.responds_in_time(Duration::from_micros(761), SHORT));
        assert!(busy.responds_in_time(Duration::from_secs(1), Duration::MAX));
    }

    #[test]
    fn the_number_of_pipelines_is_limited() {
        let mut full = of(MAX_PIPELINES, Duration::from_nanos(1));
        assert!(!full.has_room(Duration::MAX));
        assert_eq!(full.expected(), None);
        full.pop(Duration::from_nanos(1));
        assert!(full.has_room(Duration::MAX));
    }

    #[test]
    fn the_backlog_is_empty_after_the_last_pipeline() {
        let mut backlog = of(2, SHORT);
        backlog.pop(SHORT);
        assert_eq!(backlog.expected(), Some(SHORT));
        backlog.pop(Duration::ZERO);
        assert_eq!(backlog.expected(), Some(Duration::ZERO));
    }
}
