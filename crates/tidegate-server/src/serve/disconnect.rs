//! Detects clients that disconnect while they wait for a response.
//!
//! hyper notices the end of a connection only after it has read all bytes before it. It does not
//! read the bytes that follow a request until the response has been sent.

use std::pin::{Pin, pin};
use std::task::Context;
use std::time::Duration;

use tidegate_http::body::{Body, Watcher};
use tokio::time::{Instant, Sleep};

use super::activity::{ConnectionActivity, InFlight};
use super::stall::StallGuard;

/// The interval in which the connection is checked.
const CHECK_INTERVAL: Duration = Duration::from_millis(400);

/// Waits for a response. Until it is ready, requests periodic checks of the connection to the
/// client.
pub(crate) async fn watch_client<T>(
    answer: impl Future<Output = T>,
    activity: &ConnectionActivity,
) -> T {
    let mut answer = pin!(answer);
    loop {
        tokio::select! {
            biased;
            done = &mut answer => return done,
            () = tokio::time::sleep(CHECK_INTERVAL) => activity.request_check(),
        }
    }
}

/// Keeps the request marked as in progress until its response has been sent.
pub(crate) fn keep(body: &mut Body, in_flight: InFlight) {
    // A connection with one response at a time needs no guard, because the monitor notices a stall
    // by the counters of the connection.
    if in_flight.is_multiplexed() && body.exact_size() != Some(0) {
        let content = body.content_mut();
        *content = StallGuard::guard(content.take(), in_flight);
        return;
    }
    let timer = body.content().is_statement().then(|| Timer(None));
    body.watch(Box::new(ResponseInProgress { in_flight, timer }));
}

/// A response that is being sent.
struct ResponseInProgress {
    in_flight: InFlight,
    /// The timer for a response whose statement may produce no rows for some time.
    timer: Option<Timer>,
}

impl Watcher for ResponseInProgress {
    fn pending(&mut self, cx: &mut Context<'_>) {
        if let Some(timer) = &mut self.timer {
            timer.wait(&self.in_flight, cx);
        }
    }

    fn complete(&mut self) {
        self.in_flight.finish();
    }
}

/// Checks the connection while the response waits for rows.
struct Timer(Option<Pin<Box<Sleep>>>);

impl Timer {
    /// Called when there are no bytes to send. Requests a check if a check is due, and registers
    /// the task of the connection to be woken for the next check.
    fn wait(&mut self, in_flight: &InFlight, cx: &mut Context<'_>) {
        let timer = self
            .0
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(CHECK_INTERVAL)));
        if timer.as_mut().poll(cx).is_ready() {
            in_flight.request_check();
            timer.as_mut().reset(Instant::now() + CHECK_INTERVAL);
            // This poll registers the waker for the next check, whose time cannot have come yet.
            let _ = timer.as_mut().poll(cx);
        }
    }
}
