//! Looking after a peer that waits: whether it is still there.
//!
//! HTTP notices the end of a connection only where it has read all that came before it, and of what a
//! client sends behind its request nothing is read before the answer has gone.

use std::pin::{Pin, pin};
use std::task::Context;
use std::time::Duration;

use tokio::time::{Instant, Sleep};

use super::vitals::{InFlight, Vitals};

/// How often it is looked.
const ATTENTION: Duration = Duration::from_millis(400);

/// Waits for an answer, and has its connection looked after meanwhile.
pub(crate) async fn attended<T>(answer: impl Future<Output = T>, vitals: &Vitals) -> T {
    let mut answer = pin!(answer);
    loop {
        tokio::select! {
            biased;
            done = &mut answer => return done,
            () = tokio::time::sleep(ATTENTION) => vitals.attend(),
        }
    }
}

/// The same for an answer that has begun and waits for more rows.
#[derive(Default)]
pub(crate) struct Attention(Option<Pin<Box<Sleep>>>);

impl Attention {
    /// Called when there is nothing to send; wakes the connection when it is time to look.
    pub(crate) fn wait(&mut self, in_flight: &InFlight, cx: &mut Context<'_>) {
        let timer = self
            .0
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(ATTENTION)));
        if timer.as_mut().poll(cx).is_ready() {
            in_flight.attend();
            timer.as_mut().reset(Instant::now() + ATTENTION);
            // Registers the next time; it cannot have come already.
            let _ = timer.as_mut().poll(cx);
        }
    }
}
