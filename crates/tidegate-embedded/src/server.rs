//! Creates and starts a cluster.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::binaries::Binaries;
use crate::configuration::{Configuration, HBA};
use crate::directory::Directory;
use crate::error::{Error, IoContext, Result};
use crate::postmaster::Postmaster;
use crate::user::ServerUser;
use crate::{port, random};

/// The superuser that `initdb` creates.
pub(crate) const ADMIN_USER: &str = "postgres";
/// The timeout for a start, including recovery after a crash.
const START_LIMIT: Duration = Duration::from_mins(1);
/// How long a start is retried while processes of a killed server still hold the server's shared
/// memory.
const RELEASE_LIMIT: Duration = Duration::from_secs(10);
/// The maximum number of further ports that are tried. A further port is needed if another process
/// takes the chosen port before PostgreSQL binds it.
const PORT_ATTEMPTS: usize = 8;

/// The binaries, the user, the directory and the settings with which PostgreSQL is started.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) binaries: Binaries,
    pub(crate) user: ServerUser,
    pub(crate) directory: Directory,
    pub(crate) extra: Vec<(String, String)>,
}

impl Server {
    /// A command that runs a program of PostgreSQL as the server's user, in the cluster's
    /// directory.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = self.user.command(&self.binaries.program(program));
        command.current_dir(self.directory.root());
        command
    }

    /// Creates the cluster if it is missing. Returns the administrator's password.
    pub(crate) fn initialise(&self) -> Result<String> {
        let data = self.directory.data();
        if data.exists() {
            return self.directory.read_password();
        }
        let password = random::hex::<24>()?;
        self.directory.write_password(&password, &self.user)?;
        let fresh = self.directory.fresh_data(&self.user)?;
        self.initdb(&fresh)?;
        // Only a complete data directory gets the name `data`, so an `initdb` that was killed
        // leaves no cluster.
        fs::rename(&fresh, &data).context("rename", &fresh)?;
        Ok(password)
    }

    fn initdb(&self, data: &Path) -> Result<()> {
        let temporary = self.directory.is_temporary();
        let mut command = self.command("initdb");
        command.args(["--encoding=UTF8", "--locale=C", "--auth=scram-sha-256"]);
        command
            .args(["--username", ADMIN_USER, "--pwfile"])
            .arg(self.directory.password_file());
        command.args(self.binaries.version.initdb_options(temporary));
        if temporary {
            command.arg("--no-sync");
        }
        command.arg("--pgdata").arg(data);
        let output = command
            .output()
            .context("run", &self.binaries.program("initdb"))?;
        if output.status.success() {
            return Ok(());
        }
        let printed = [output.stdout, output.stderr].concat();
        Err(Error::Init {
            output: String::from_utf8_lossy(&printed).trim().to_owned(),
        })
    }

    /// Starts PostgreSQL on `port`, or on a free port, and waits until it accepts connections.
    pub(crate) fn launch(&self, port: Option<u16>) -> Result<(Postmaster, u16)> {
        let mut ports_left = PORT_ATTEMPTS;
        let began = Instant::now();
        loop {
            let chosen = port.map_or_else(port::free, Ok)?;
            let problem = match self.launch_once(chosen) {
                Ok(postmaster) => return Ok((postmaster, chosen)),
                Err(problem) => problem,
            };
            match conflict(&problem) {
                Some(StartConflict::Port) if port.is_some() => {
                    return Err(Error::PortTaken { port: chosen });
                }
                Some(StartConflict::Port) if ports_left > 0 => ports_left -= 1,
                Some(StartConflict::SharedMemory) if began.elapsed() < RELEASE_LIMIT => {
                    std::thread::sleep(Duration::from_millis(50));
                }
                _ => return Err(problem),
            }
        }
    }

    fn launch_once(&self, port: u16) -> Result<Postmaster> {
        let data = self.directory.data();
        let hba = self.directory.write_readable("pg_hba.conf", HBA)?;
        let text = Configuration {
            data: &data,
            hba: &hba,
            socket_dir: self.directory.socket_dir(),
            port,
            temporary: self.directory.is_temporary(),
            extra: &self.extra,
        }
        .to_text()?;
        let config = self.directory.write_readable("postgresql.conf", &text)?;
        let mut command = self.command("postgres");
        command
            .arg("-D")
            .arg(&data)
            .arg("-c")
            .arg(assignment("config_file", &config));
        let log = self.directory.root().join("server.log");
        let mut postmaster = Postmaster::spawn(command, &log)?;
        postmaster.wait_ready(&data, START_LIMIT)?;
        Ok(postmaster)
    }
}

/// A reason for a failed start after which a retry may succeed.
enum StartConflict {
    /// Another process uses the port.
    Port,
    /// Processes of a killed server still hold its shared memory.
    SharedMemory,
}

fn conflict(problem: &Error) -> Option<StartConflict> {
    let Error::Start { log, .. } = problem else {
        return None;
    };
    if log.contains("could not bind") {
        Some(StartConflict::Port)
    } else if log.contains("pre-existing shared memory block") {
        Some(StartConflict::SharedMemory)
    } else {
        None
    }
}

fn assignment(name: &str, path: &Path) -> std::ffi::OsString {
    let mut text = std::ffi::OsString::from(name);
    text.push("=");
    text.push(path);
    text
}
