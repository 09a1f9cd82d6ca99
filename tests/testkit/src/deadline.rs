//! Waiting for an event, with a deadline.

use std::time::{Duration, Instant};

/// How long a test waits for an event. It is long enough for a busy machine.
pub const DEADLINE: Duration = Duration::from_mins(1);

/// The output of a future.
///
/// # Panics
/// After the deadline.
pub async fn soon<F: Future>(future: F) -> F::Output {
    let output = tokio::time::timeout(DEADLINE, future).await;
    output.expect("the event did not happen before the deadline")
}

/// Waits until a condition holds; polls it every few milliseconds.
///
/// # Panics
/// After the deadline, with `what`.
pub async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let start = Instant::now();
    while !holds().await {
        assert!(
            start.elapsed() < DEADLINE,
            "not before the deadline: {what}"
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
