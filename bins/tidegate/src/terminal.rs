//! Reads from the terminal without echo.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Write as _};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use tidegate_identity::Secret;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::AbortHandle;

/// The terminal of the process with echo turned off. Echo is turned on again when the value is
/// dropped, or when a signal ends the process.
pub(crate) struct NoEcho {
    terminal: BufReader<File>,
    before: Termios,
    interruptible: ExitOnSignal,
}

/// While this value exists, a signal ends the process. After it is dropped, signals have no effect
/// until other code handles them.
#[derive(Default)]
pub(crate) struct ExitOnSignal(Vec<AbortHandle>);

impl Drop for ExitOnSignal {
    fn drop(&mut self) {
        for task in &self.0 {
            task.abort();
        }
    }
}

impl NoEcho {
    /// Opens the terminal and turns echo off. Installs handlers for signals. A handler turns echo
    /// on again before the process ends, because other programs use the terminal afterwards.
    pub(crate) fn open() -> io::Result<Self> {
        let terminal = File::options().read(true).write(true).open("/dev/tty")?;
        let before = tcgetattr(&terminal)?;
        let interruptible = restore_echo_on_signal(&terminal, &before)?;
        let mut hidden = before.clone();
        hidden.local_modes.remove(LocalModes::ECHO);
        // The line break after the password is still echoed, so that output continues on a new
        // line.
        hidden.local_modes.insert(LocalModes::ECHONL);
        tcsetattr(&terminal, OptionalActions::Now, &hidden)?;
        Ok(Self {
            terminal: BufReader::new(terminal),
            before,
            interruptible,
        })
    }

    /// Asks a question and reads a line.
    pub(crate) fn ask(&mut self, question: &str) -> io::Result<Secret> {
        self.terminal.get_mut().write_all(question.as_bytes())?;
        let mut line = String::new();
        if self.terminal.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(Secret::new(line.trim_end_matches(['\r', '\n'])))
    }
}

impl NoEcho {
    /// Turns echo on again. While the returned value exists, a signal ends the process.
    pub(crate) fn close(mut self) -> ExitOnSignal {
        std::mem::take(&mut self.interruptible)
    }
}

impl Drop for NoEcho {
    fn drop(&mut self) {
        // The signal handlers are removed here, unless `close` has moved them out of `self`.
        self.interruptible.0.clear();
        let _ = tcsetattr(self.terminal.get_ref(), OptionalActions::Now, &self.before);
    }
}

/// Installs signal handlers. A handler restores the terminal and ends the process with the exit
/// code that shells report for the signal.
fn restore_echo_on_signal(terminal: &File, before: &Termios) -> io::Result<ExitOnSignal> {
    let mut interruptible = ExitOnSignal::default();
    for kind in [
        SignalKind::interrupt(),
        SignalKind::terminate(),
        SignalKind::hangup(),
        SignalKind::quit(),
    ] {
        let mut signals = signal(kind)?;
        let (mut terminal, before) = (terminal.try_clone()?, before.clone());
        let task = tokio::spawn(async move {
            signals.recv().await;
            let _ = tcsetattr(&terminal, OptionalActions::Now, &before);
            let _ = terminal.write_all(b"\n");
            std::process::exit(128 + kind.as_raw_value());
        });
        interruptible.0.push(task.abort_handle());
    }
    Ok(interruptible)
}
