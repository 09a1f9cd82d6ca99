//! A small shell process that cleans up after this process. If this process ends before it has
//! stopped PostgreSQL and removed the temporary directory, the shell process does both.
//!
//! This is needed in two cases in which `Drop` does not run: this process is killed, or the cluster
//! is in a `static`.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

use crate::directory::Directory;
use crate::error::{IoContext, Result};

const SCRIPT: &str = include_str!("watcher.sh");

/// A running watcher process. Dropping the value ends the watcher without clean-up.
#[derive(Debug)]
pub(crate) struct Watcher {
    child: Child,
    stdin: ChildStdin,
}

impl Watcher {
    /// Starts a watcher of `directory`, as the current user, in a process group of its own.
    pub(crate) fn spawn(directory: &Directory) -> Result<Self> {
        let shell = Path::new("/bin/sh");
        let signal = if directory.is_temporary() {
            "QUIT"
        } else {
            "INT"
        };
        let mut command = Command::new(shell);
        command
            .args(["-c", SCRIPT, "tidegate-watcher"])
            .arg(directory.data())
            .arg(signal);
        command.arg(directory.to_remove().unwrap_or(Path::new("")));
        command
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .current_dir("/")
            .process_group(0);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut child = command.spawn().context("run", shell)?;
        let stdin = child
            .stdin
            .take()
            .expect("standard input was asked to be a pipe");
        Ok(Self { child, stdin })
    }

    /// Sends the id of the process that the watcher has to stop.
    pub(crate) fn watch(&mut self, pid: u32) -> Result<()> {
        writeln!(self.stdin, "pid {pid}").context("tell a process id to", Path::new("/bin/sh"))
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        // Errors are ignored, because a watcher that has ended needs no message.
        let _ = self.stdin.write_all(b"release\n");
        let _ = self.child.wait();
    }
}
