//! Stop signals of the process.

use tokio::signal::unix::{SignalKind, signal};

use crate::failure::Result;

/// Returns a future that completes when the process receives SIGINT or SIGTERM. After that, a
/// second signal ends the process at once.
///
/// The handlers are installed by this call, not by the first poll of the future.
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
            // Shells report the exit code of a process that a signal ended as 128 plus the signal's
            // number. SIGINT has the number 2.
            std::process::exit(130);
        });
    })
}
