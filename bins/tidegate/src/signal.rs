//! How the process is told to stop.

use tokio::signal::unix::{SignalKind, signal};

use crate::failure::Result;

/// A future that ends when the process is told to stop (SIGINT, SIGTERM). From then on a second
/// signal ends the process at once.
///
/// The signals are caught from the moment of the call, not from the first poll.
pub(crate) fn stop() -> Result<impl Future<Output = ()> + Send + 'static> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        tokio::spawn(async move {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            // 128 + SIGINT, as shells say it.
            std::process::exit(130);
        });
    })
}
