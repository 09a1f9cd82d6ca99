//! When a node that serves stops.

use std::time::Duration;

use tidegate_server::App;

use crate::signal::{StopSignal, StopSignals};

/// Waits until the node is to stop. After SIGTERM the node announces this and serves on for
/// `delay`, until load balancers have noticed; another signal ends that time. SIGINT comes from a
/// person at a terminal, who waits, so it stops the node at once.
pub(super) async fn requested(mut signals: StopSignals, app: &App, delay: Option<Duration>) {
    let signal = signals.next().await;
    if let (StopSignal::Terminate, Some(delay)) = (signal, delay) {
        tracing::info!(shutdown_delay = ?delay, "shutdown announced; serving on");
        app.announce_shutdown(delay);
        tokio::select! {
            () = tokio::time::sleep(delay) => {}
            _ = signals.next() => {}
        }
    }
    signals.exit_on_next();
}
