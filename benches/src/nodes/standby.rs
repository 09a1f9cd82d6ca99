//! Standbys of the demo's PostgreSQL.

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::Result;
use crate::node::{eventually, last_lines};
use crate::service::Service;

const TIMEOUT: Duration = Duration::from_mins(1);
const PORT: &str = "5432";

/// A standby. It ends when this value is dropped.
#[derive(Debug)]
pub(super) struct Standby {
    pub(super) url: String,
    child: Child,
}

impl Standby {
    /// Copies the demo's PostgreSQL. Waits until the copy accepts connections.
    pub(super) async fn start(demo: &Service, name: &str) -> Result<Self> {
        let folder = demo.path.join(name);
        fs::create_dir(&folder)?;
        // PostgreSQL refuses to run as root, so the copy runs as the user of the demo's PostgreSQL.
        let owner = fs::metadata(format!("/proc/{}", demo.postmaster))?;
        chown(&folder, Some(owner.uid()), Some(owner.gid()))?;
        let programs = Programs {
            folder: demo.pgbench.with_file_name(""),
            owner: (owner.uid(), owner.gid()),
        };
        let data = folder.join("data");
        programs.copy(demo, &data)?;
        let log = demo.path.join(format!("{name}.log"));
        let child = programs.serve(&data, &log)?;
        let (credentials, _) = demo.floor_url.split_once("@/").ok_or("no Unix socket")?;
        let host = folder.display();
        let url = format!("{credentials}@/postgres?host={host}&port={PORT}");
        let standby = Self { url, child };
        let accepts = async || Ok(standby.accepts().await.then_some(()));
        let accepts = eventually(name, TIMEOUT, accepts).await;
        accepts.map_err(|error| format!("{error}: {}", last_lines(&log)))?;
        Ok(standby)
    }

    async fn accepts(&self) -> bool {
        let connected = tokio_postgres::connect(&self.url, tokio_postgres::NoTls).await;
        connected.is_ok()
    }

    pub(super) fn postmaster(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Standby {
    fn drop(&mut self) {
        let id = self.child.id().to_string();
        if Command::new("kill").args(["-INT", &id]).status().is_ok() {
            // The exit status of a terminated process is irrelevant.
            let _ = self.child.wait();
        }
    }
}

/// The programs of the demo's PostgreSQL, and the user that runs them.
struct Programs {
    folder: PathBuf,
    owner: (u32, u32),
}

impl Programs {
    fn command(&self, name: &str) -> Command {
        let mut command = Command::new(self.folder.join(name));
        command.current_dir("/").uid(self.owner.0).gid(self.owner.1);
        command
    }

    fn copy(&self, demo: &Service, data: &Path) -> Result<()> {
        let output = self
            .command("pg_basebackup")
            .args(["--wal-method=stream", "--checkpoint=fast", "--no-sync"])
            .args(["--write-recovery-conf", "--dbname", &demo.tcp_url])
            .arg("--pgdata")
            .arg(data)
            .output()?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into());
        }
        Ok(fs::write(
            data.join("pg_hba.conf"),
            "local all all scram-sha-256\n",
        )?)
    }

    fn serve(&self, data: &Path, log: &Path) -> Result<Child> {
        let folder = data.parent().ok_or("no folder")?.display();
        let child = self
            .command("postgres")
            .arg("-D")
            .arg(data)
            .args(["-c", "listen_addresses=", "-c", &format!("port={PORT}")])
            .args(["-c", &format!("unix_socket_directories={folder}")])
            .stdout(Stdio::null())
            .stderr(File::create(log)?)
            .spawn()?;
        Ok(child)
    }
}
