//! The back-off of a node that cannot become the reader.

use std::time::Duration;

use tokio::time::sleep;

/// The delay after the first unsuccessful attempt, and the longest delay.
const DELAY: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(5));

/// The delays between unsuccessful attempts to become the reader.
#[derive(Debug)]
pub(crate) struct ElectionBackoff {
    /// The delay after the next unsuccessful attempt.
    next: Duration,
}

impl ElectionBackoff {
    pub(crate) const fn new() -> Self {
        Self { next: DELAY.0 }
    }

    /// Makes the next delay short again. Called when this node or another one has read the log: the
    /// reason for the failed attempts has then ended.
    pub(crate) fn reset(&mut self) {
        *self = Self::new();
    }

    /// Waits after an unsuccessful attempt, and makes the next delay longer. The future `read`
    /// completes when another node reads the log. If `read` completes during the wait, the wait
    /// ends early and the next delay is short again.
    pub(crate) async fn wait(&mut self, read: impl Future<Output = ()>) {
        let delay = self.next;
        self.next = (delay * 2).min(DELAY.1);
        tokio::select! {
            () = sleep(delay) => {}
            () = read => self.reset(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use tokio::time::Instant;

    use super::*;

    /// The length of a wait during which no other node reads.
    async fn failed(backoff: &mut ElectionBackoff) -> Duration {
        let began = Instant::now();
        backoff.wait(pending()).await;
        began.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn delays_double_up_to_a_limit_and_are_short_after_a_success() {
        let mut backoff = ElectionBackoff::new();
        for milliseconds in [500, 1000, 2000, 4000, 5000, 5000] {
            let delay = failed(&mut backoff).await;
            assert_eq!(delay, Duration::from_millis(milliseconds));
        }
        backoff.reset();
        assert_eq!(failed(&mut backoff).await, DELAY.0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_ends_when_another_node_reads() {
        let mut backoff = ElectionBackoff::new();
        for _ in 0..5 {
            failed(&mut backoff).await;
        }
        let began = Instant::now();
        backoff.wait(ready(())).await;
        assert_eq!(began.elapsed(), Duration::ZERO);
        assert_eq!(failed(&mut backoff).await, DELAY.0);
    }
}
