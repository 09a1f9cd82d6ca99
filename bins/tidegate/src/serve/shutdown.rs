//! Decides when a serving node stops.

use std::time::Duration;

use tidegate_server::App;

use crate::signal::{StopSignal, StopSignals};

/// Waits until the node is to stop. After SIGTERM the node announces that it will stop. It then
/// continues to serve for `delay`, so that load balancers notice the announcement. Another signal
/// ends this delay early. SIGINT stops the node without this delay: it is sent by Ctrl-C in a
/// terminal, and the person there should not have to wait.
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
