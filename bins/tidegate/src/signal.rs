//! Stop signals of the process.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::cli_error::Result;

/// A signal that stops the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StopSignal {
    /// SIGINT, which a terminal sends on Ctrl-C.
    Interrupt,
    /// SIGTERM, which service managers send.
    Terminate,
}

/// The stop signals that the process receives.
pub(crate) struct StopSignals {
    interrupt: Signal,
    terminate: Signal,
}

impl StopSignals {
    /// Installs the handlers. From now on a signal does not end the process by itself. The code
    /// that waits for the signal has to end the process.
    pub(crate) fn listen() -> Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Waits for the next signal. Cancel safe.
    pub(crate) async fn next(&mut self) -> StopSignal {
        tokio::select! {
            _ = self.interrupt.recv() => StopSignal::Interrupt,
            _ = self.terminate.recv() => StopSignal::Terminate,
        }
    }

    /// Lets the next signal end the process immediately, even if the process is still cleaning up.
    pub(crate) fn exit_on_next(mut self) {
        tokio::spawn(async move {
            self.next().await;
            // If a signal ended a process, shells report 128 plus the number of the signal as the
            // exit code. SIGINT has the number 2.
            std::process::exit(130);
        });
    }
}
