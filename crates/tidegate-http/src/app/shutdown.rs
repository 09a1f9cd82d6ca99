//! The shutdown of a node, in two phases.
//!
//! A load balancer polls `/readyz`. It continues to send requests to a node until its next polls
//! have failed. So a node behind a load balancer first announces its shutdown: `/readyz` fails, and
//! the node continues to serve requests for some time. When half of this time has passed, load
//! balancers should have noticed the shutdown. During the second half, the node closes sockets and
//! event streams one after the other, so that their clients do not all reconnect to other nodes at
//! the same moment. Then the last phase begins: the node accepts no new connections, and ends when
//! the requests in progress have ended.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::App;

/// 2³² divided by the golden ratio. Its first n multiples, modulo 2³², are spread evenly for every
/// n, so any number of connections close at evenly spread times.
const GOLDEN: u32 = 0x9E37_79B9;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ShutdownPhase {
    /// The node serves, and has not announced that it will stop.
    Serving,
    /// The node still serves requests, but `/readyz` reports that it will stop. The node plans to
    /// stop when `delay` has passed after `since`.
    Announced { since: Instant, delay: Duration },
    /// The node accepts no new connections, and ends when the requests in progress have ended.
    Ending,
}

pub(super) struct Shutdown {
    phase: watch::Sender<ShutdownPhase>,
    /// The number of [`Departure`]s that were created.
    departures: AtomicU32,
}

impl Default for Shutdown {
    fn default() -> Self {
        Self {
            phase: watch::Sender::new(ShutdownPhase::Serving),
            departures: AtomicU32::new(0),
        }
    }
}

impl Shutdown {
    fn enter(&self, phase: ShutdownPhase) {
        self.phase.send_replace(phase);
    }

    fn watch(&self) -> ShutdownWatch {
        ShutdownWatch(self.phase.subscribe())
    }

    fn departure(&self) -> Departure {
        let number = self.departures.fetch_add(1, Ordering::Relaxed);
        let share = f64::from(number.wrapping_mul(GOLDEN)) / f64::from(u32::MAX);
        let watch = self.watch();
        Departure { watch, share }
    }
}

impl App {
    /// Announces that the node will stop after `delay`: `/readyz` responds 503 from now on, so that
    /// load balancers stop sending requests. Requests are served as before.
    pub fn announce_shutdown(&self, delay: Duration) {
        let since = Instant::now();
        self.0
            .shutdown
            .enter(ShutdownPhase::Announced { since, delay });
    }

    /// Begins the last phase: the node accepts no new connections, and ends when the requests in
    /// progress have ended.
    pub fn begin_end(&self) {
        self.0.shutdown.enter(ShutdownPhase::Ending);
    }

    /// Whether the node will stop.
    pub fn is_draining(&self) -> bool {
        *self.0.shutdown.phase.borrow() != ShutdownPhase::Serving
    }

    /// A value that waits for the phases of the shutdown.
    pub fn shutdown(&self) -> ShutdownWatch {
        self.0.shutdown.watch()
    }

    /// The time at which to close one connection that outlasts a request, such as a socket or an
    /// event stream. Each call returns a different time, so that not all connections close at once.
    pub fn departure(&self) -> Departure {
        self.0.shutdown.departure()
    }
}

/// Waits for the phases of the node's shutdown.
#[derive(Clone, Debug)]
pub struct ShutdownWatch(watch::Receiver<ShutdownPhase>);

impl ShutdownWatch {
    /// Waits until the node has announced that it will stop. Cancel safe.
    pub async fn announced(&mut self) {
        // An error means that the app, and with it the node, no longer exists, so there is nothing
        // to wait for.
        let _ = self
            .0
            .wait_for(|phase| *phase != ShutdownPhase::Serving)
            .await;
    }

    /// Waits until the last phase of the shutdown has begun. Cancel safe.
    pub async fn ending(&mut self) {
        let _ = self
            .0
            .wait_for(|phase| *phase == ShutdownPhase::Ending)
            .await;
    }
}

/// The time at which to close one connection that outlasts a request, such as a socket or an event
/// stream.
#[derive(Debug)]
pub struct Departure {
    watch: ShutdownWatch,
    /// When to close the connection, as a fraction of the second half of the announced delay: 0 is
    /// the beginning of the second half, 1 is its end.
    share: f64,
}

impl Departure {
    /// Waits until the connection should be closed: until its time in the second half of the
    /// announced delay, or until the last phase of the shutdown begins, if that is earlier. Cancel
    /// safe.
    pub async fn due(&mut self) {
        self.watch.announced().await;
        // The future is boxed, so that no connection needs memory for its timer before the
        // shutdown.
        Box::pin(self.turn()).await;
    }

    async fn turn(&mut self) {
        let phase = *self.watch.0.borrow();
        if let ShutdownPhase::Announced { since, delay } = phase {
            let due = since + delay.mul_f64(0.5 + self.share / 2.0);
            tokio::select! {
                () = sleep_until(due) => {}
                () = self.watch.ending() => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DELAY: Duration = Duration::from_secs(10);

    fn announced() -> ShutdownPhase {
        let since = Instant::now();
        ShutdownPhase::Announced {
            since,
            delay: DELAY,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn clients_leave_one_after_the_other_in_the_second_half() {
        let shutdown = Shutdown::default();
        let mut departures: Vec<_> = (0..1000).map(|_| shutdown.departure()).collect();
        shutdown.enter(announced());
        let since = Instant::now();
        departures.sort_by(|one, other| one.share.total_cmp(&other.share));
        let (mut last, mut longest) = (DELAY / 2, Duration::ZERO);
        for departure in &mut departures {
            departure.due().await;
            let now = since.elapsed();
            longest = longest.max(now.saturating_sub(last));
            last = now;
        }
        assert!(last >= DELAY.mul_f64(0.99) && last <= DELAY + Duration::from_millis(1));
        assert!(longest <= Duration::from_millis(20), "{longest:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_of_the_node_waits_for_no_departure() {
        let shutdown = Shutdown::default();
        let mut departure = shutdown.departure();
        let waits = tokio::time::timeout(DELAY * 10, departure.due()).await;
        assert!(waits.is_err(), "the node serves");
        shutdown.enter(announced());
        let since = Instant::now();
        shutdown.enter(ShutdownPhase::Ending);
        departure.due().await;
        assert_eq!(since.elapsed(), Duration::ZERO);
    }
}
