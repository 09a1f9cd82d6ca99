//! Standby servers by streaming replication (PostgreSQL, "High Availability, Load Balancing, and
//! Replication").

use std::process::Command;

use crate::cluster::{Cluster, blocking};
use crate::error::{Error, IoContext, Result};
use crate::server::{ADMIN_USER, Server};
use crate::settings::Settings;

impl Cluster {
    /// Starts a standby of this cluster from a base backup (PostgreSQL, "`pg_basebackup`"). Returns
    /// when the standby accepts connections. The standby has the password of this cluster. It has
    /// the `extra` settings of this cluster and those of `settings`.
    ///
    /// # Errors
    ///
    /// The errors of [`Cluster::start`], and [`Error::Program`] if the backup fails.
    pub async fn start_standby(&self, settings: Settings) -> Result<Self> {
        let primary = self.handle();
        blocking(move || {
            let mut settings = settings;
            let own = primary.server().extra.iter().cloned();
            settings.extra = own.chain(settings.extra).collect();
            Self::start_from(&settings, |standby| standby.copy(&primary))
        })
        .await
    }

    /// Makes a standby the primary. Returns when it accepts writes.
    ///
    /// # Errors
    ///
    /// If the cluster is not a standby, or does not become the primary in time.
    pub async fn promote(&self) -> Result<()> {
        let standby = self.handle();
        blocking(move || {
            let server = standby.server();
            let mut command = server.command("pg_ctl");
            command.args(["promote", "--wait", "--pgdata"]);
            command.arg(server.directory.data());
            run(command)
        })
        .await
    }
}

impl Server {
    /// Creates the data directory as a copy of the primary's data directory. Returns the
    /// administrator's password.
    fn copy(&self, primary: &Cluster) -> Result<String> {
        let password = primary.admin_password().to_owned();
        self.directory.write_password(&password, &self.user)?;
        let fresh = self.directory.fresh_data(&self.user)?;
        let mut command = self.command("pg_basebackup");
        command
            .env("PGPASSWORD", &password)
            .args(["--host=127.0.0.1", "--username", ADMIN_USER])
            .arg(format!("--port={}", primary.port()))
            .args(["--wal-method=stream", "--checkpoint=fast", "--no-sync"])
            .args(["--write-recovery-conf", "--pgdata"])
            .arg(&fresh);
        run(command)?;
        let data = self.directory.data();
        std::fs::rename(&fresh, &data).context("rename", &fresh)?;
        Ok(password)
    }
}

/// Runs a program of PostgreSQL and waits until it has ended.
fn run(mut command: Command) -> Result<()> {
    let program = std::path::PathBuf::from(command.get_program());
    let output = command.output().context("run", &program)?;
    if output.status.success() {
        return Ok(());
    }
    let printed = [output.stdout, output.stderr].concat();
    Err(Error::Program {
        program,
        output: String::from_utf8_lossy(&printed).trim().to_owned(),
    })
}
