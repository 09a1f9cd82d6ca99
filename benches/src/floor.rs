//! The floor: pgbench with the same SQL on the same PostgreSQL.

use std::process::Command;
use std::time::Duration;

use crate::service::Service;
use crate::{Result, process};

/// What pgbench reached.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// Transactions a second.
    pub(crate) rate: f64,
    /// Microseconds of PostgreSQL's CPU a transaction.
    pub(crate) database: f64,
}

/// How pgbench is run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    /// Its connections.
    pub(crate) clients: usize,
    /// How long.
    pub(crate) time: Duration,
    /// Transactions a second; as many as it can with `None`.
    pub(crate) rate: Option<f64>,
    /// Over TCP rather than the Unix socket.
    pub(crate) tcp: bool,
}

/// Runs a script.
pub(crate) fn run(service: &Service, script: &str, load: Load) -> Result<Outcome> {
    let file = service.folder.path().join("floor.sql");
    std::fs::write(&file, script)?;
    let before = process::family_cpu(service.postmaster)?;
    let output = Command::new(&service.pgbench)
        .args([
            "-n",
            "-M",
            "prepared",
            "-c",
            &load.clients.to_string(),
            "-j",
            "1",
        ])
        .args(["-T", &load.time.as_secs().max(1).to_string(), "-f"])
        .arg(&file)
        .args(load.rate.map(|rate| format!("--rate={rate:.0}")))
        .arg(if load.tcp {
            &service.floor_tcp_url
        } else {
            &service.floor_url
        })
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        return Err(format!("pgbench: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    let used = process::family_cpu(service.postmaster)? - before;
    let rate = number(&text, "tps = ")?;
    let transactions = number(&text, "number of transactions actually processed: ")?;
    Ok(Outcome {
        rate,
        database: used * 1e6 / transactions,
    })
}

/// The number behind a label in what pgbench prints.
pub(crate) fn number(text: &str, label: &str) -> Result<f64> {
    let rest = text
        .split(label)
        .nth(1)
        .ok_or_else(|| format!("pgbench said: {text}"))?;
    let digits = rest.split(|c: char| !c.is_ascii_digit() && c != '.').next();
    Ok(digits.unwrap_or_default().parse()?)
}
