//! Stops a PostgreSQL that outlived the process that started it.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::directory::Directory;
use crate::error::{Error, IoContext, Result};
use crate::postmaster::PidFile;
use crate::user::{ServerUser, Signal};

const STOP_TIMEOUT: Duration = Duration::from_secs(20);

/// Stops a PostgreSQL that still runs in this directory because the process that started it was
/// killed. This process must have locked the directory.
///
/// The running PostgreSQL is not reused, because its port and settings may be different, and
/// because it is not a child of this process.
pub(crate) fn stop(directory: &Directory, user: &ServerUser) -> Result<()> {
    let data = directory.data();
    let Some(PidFile { pid, .. }) = PidFile::read(&data) else {
        return Ok(());
    };
    match command_line(pid) {
        // The process does not exist. When PostgreSQL starts, it removes the pid file itself.
        None => return Ok(()),
        // The process id now belongs to a process that is not this PostgreSQL, or to a zombie.
        // PostgreSQL would take that process for a server of this directory and refuse to start, so
        // the pid file is removed.
        Some(line) if !line.contains(&*data.to_string_lossy()) => {
            let file = PidFile::path(&data);
            return fs::remove_file(&file).context("remove", &file);
        }
        Some(_) => tracing::info!(pid, "stopping an orphaned PostgreSQL"),
    }
    for signal in [Signal::Fast, Signal::Immediate, Signal::Kill] {
        user.signal(signal, pid)?;
        if has_ended(&data, pid) {
            return Ok(());
        }
    }
    let dir = directory.root().to_owned();
    Err(Error::Orphan { dir, pid })
}

fn has_ended(data: &Path, pid: u32) -> bool {
    let began = Instant::now();
    while began.elapsed() < STOP_TIMEOUT {
        let holds = PidFile::read(data).is_some_and(|file| file.pid == pid);
        if !holds || command_line(pid).is_none_or(|line| line.is_empty()) {
            return true;
        }
        thread::sleep(Duration::from_millis(10));
    }
    false
}

/// The command line of a process. It is empty for a zombie; `None` if the process does not exist.
fn command_line(pid: u32) -> Option<String> {
    if Path::new("/proc/self").exists() {
        let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        return Some(String::from_utf8_lossy(&line).into_owned());
    }
    let mut ps = Command::new("/bin/ps");
    ps.args(["-ww", "-o", "command=", "-p", &pid.to_string()])
        .stderr(Stdio::null());
    let output = ps.output().ok()?;
    output
        .status
        .success()
        .then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}
