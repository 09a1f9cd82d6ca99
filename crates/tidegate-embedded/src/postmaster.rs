//! Starts the server's process, waits until it is ready, and shuts it down.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::{Error, IoContext, Result};
use crate::user::{ServerUser, Signal};

/// The pause between two checks of the process.
const POLL: Duration = Duration::from_millis(5);
/// The number of log lines that an error contains.
const LOG_LINES: usize = 20;

/// The mode of a shutdown (PostgreSQL, "Shutting Down the Server").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shutdown {
    /// Rolls back open transactions, ends sessions and writes all data to disk.
    Fast,
    /// Ends all processes immediately. The next start recovers from the WAL.
    Immediate,
    /// Kills the first process with SIGKILL, as the kernel does when memory runs out.
    Kill,
}

/// The server's first process, which is a child of this process. Dropping the value kills it.
#[derive(Debug)]
pub(crate) struct Postmaster {
    child: Child,
    log: PathBuf,
}

impl Postmaster {
    /// Starts `command`, whose output is written to the file `log`. An older log is renamed to
    /// `*.log.old`.
    pub(crate) fn spawn(mut command: Command, log: &Path) -> Result<Self> {
        // At the first start there is no log to rename.
        let _ = fs::rename(log, log.with_extension("log.old"));
        let output = File::create(log).context("create", log)?;
        let errors = output.try_clone().context("open", log)?;
        command.stdout(output).stderr(errors);
        let program = PathBuf::from(command.get_program());
        let child = command.spawn().context("run", &program)?;
        Ok(Self {
            child,
            log: log.to_owned(),
        })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until the server accepts connections. Kills the server if it is not ready after
    /// `limit`.
    pub(crate) fn wait_ready(&mut self, data: &Path, limit: Duration) -> Result<()> {
        let began = Instant::now();
        while began.elapsed() < limit {
            if let Some(status) = self.exited()? {
                return Err(Error::Start {
                    status: status.to_string(),
                    log: self.log_end(),
                });
            }
            if PidFile::read(data).is_some_and(|it| it.pid == self.pid() && it.ready) {
                return Ok(());
            }
            thread::sleep(POLL);
        }
        self.kill();
        Err(Error::NotReady {
            seconds: limit.as_secs(),
            log: self.log_end(),
        })
    }

    /// Stops the server. If it has not stopped within `timeout`, uses the next faster mode. If the
    /// last mode fails too, kills the process.
    pub(crate) fn shut_down(&mut self, user: &ServerUser, mode: Shutdown, timeout: Duration) {
        let ways: &[Signal] = match mode {
            Shutdown::Fast => &[Signal::Fast, Signal::Immediate],
            Shutdown::Immediate => &[Signal::Immediate],
            Shutdown::Kill => &[],
        };
        for way in ways {
            if !self.is_running() {
                return;
            }
            if user.signal(*way, self.pid()).is_ok() && self.wait_exit(timeout) {
                return;
            }
        }
        self.kill();
    }

    pub(crate) fn is_running(&mut self) -> bool {
        matches!(self.exited(), Ok(None))
    }

    fn wait_exit(&mut self, limit: Duration) -> bool {
        let began = Instant::now();
        while self.is_running() {
            if began.elapsed() > limit {
                return false;
            }
            thread::sleep(POLL);
        }
        true
    }

    fn kill(&mut self) {
        // An error means that the process has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    fn exited(&mut self) -> Result<Option<ExitStatus>> {
        self.child
            .try_wait()
            .context("watch the process that writes", &self.log)
    }

    fn log_end(&self) -> String {
        let log = fs::read(&self.log).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<_> = log.lines().collect();
        lines[lines.len().saturating_sub(LOG_LINES)..].join("\n")
    }
}

impl Drop for Postmaster {
    fn drop(&mut self) {
        if self.is_running() {
            self.kill();
        }
    }
}

/// The content of `postmaster.pid` (`miscadmin.h` in PostgreSQL's source code).
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PidFile {
    pub(crate) pid: u32,
    pub(crate) ready: bool,
}

impl PidFile {
    pub(crate) fn path(data: &Path) -> PathBuf {
        data.join("postmaster.pid")
    }

    pub(crate) fn read(data: &Path) -> Option<Self> {
        Self::parse(&fs::read_to_string(Self::path(data)).ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        let pid = text.lines().next()?.trim().parse().ok()?;
        let ready = text
            .lines()
            .nth(7)
            .is_some_and(|status| matches!(status.trim(), "ready" | "standby"));
        Some(Self { pid, ready })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_is_ready_when_its_eighth_line_says_so() {
        assert!(PidFile::parse("1\n2\n3\n4\n5\n6\n7\nstandby \n").is_some_and(|it| it.ready));
        let file = |status| {
            format!("4711\n/c/data\n1795\n15432\n/c/socket\n127.0.0.1\n 55 66\n{status}\n")
        };
        let parsed = |status| PidFile::parse(&file(status));
        assert_eq!(
            parsed("ready   "),
            Some(PidFile {
                pid: 4711,
                ready: true
            })
        );
        assert_eq!(
            parsed("starting"),
            Some(PidFile {
                pid: 4711,
                ready: false
            })
        );
        assert_eq!(
            PidFile::parse("4711\n"),
            Some(PidFile {
                pid: 4711,
                ready: false
            })
        );
        assert_eq!(PidFile::parse(""), None);
    }
}
