//! Waits for an event, with a deadline.

use std::time::{Duration, Instant};

/// How long a test waits for an event. It is long enough for a busy machine.
pub const DEADLINE: Duration = Duration::from_mins(1);

/// Waits for a future and returns its output.
///
/// # Panics
///
/// After the deadline.
pub async fn soon<F: Future>(future: F) -> F::Output {
    let output = tokio::time::timeout(DEADLINE, future).await;
    output.expect("the event did not happen before the deadline")
}

/// Waits until a condition holds. Checks it every five milliseconds.
///
/// # Panics
///
/// After the deadline, with `what` in the message.
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
