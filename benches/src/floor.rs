//! The floor: pgbench with the same SQL on the same PostgreSQL.

use std::process::Command;
use std::time::Duration;

use crate::Result;
use crate::service::Service;

/// The parameters of a run of pgbench.
#[derive(Debug, Clone)]
pub(crate) struct Floor {
    /// The script of pgbench.
    pub(crate) script: String,
    /// The role that runs the script: the role of the measured callers, or the owner if the callers
    /// are members. `None` if the script sets the role itself.
    pub(crate) role: Option<String>,
    /// The number of requests that one run of the script sends.
    pub(crate) requests: u32,
    /// The number of connections.
    pub(crate) clients: usize,
    /// How long to run. If this is less than a second, pgbench runs only a few transactions.
    pub(crate) time: Duration,
}

impl Floor {
    /// Runs pgbench; returns its requests per second.
    pub(crate) async fn run(&self, service: &Service) -> Result<f64> {
        let text = self.output(service).await?;
        Ok(number(&text, "tps = ")? * f64::from(self.requests))
    }

    /// Runs pgbench; returns what it prints.
    pub(crate) async fn output(&self, service: &Service) -> Result<String> {
        let file = service.path.join("floor.sql");
        std::fs::write(&file, &self.script)?;
        let mut command = Command::new(&service.pgbench);
        command.args(["-n", "-M", "prepared", "-D", "switched=0", "-j", "1", "-c"]);
        command.arg(self.clients.to_string());
        match self.time.as_secs() {
            0 => command.args(["-t", "2"]),
            seconds => command.args(["-T", &seconds.to_string()]),
        };
        command.arg("-f").arg(&file).arg(&service.floor_url);
        if let Some(role) = &self.role {
            command.env("PGOPTIONS", format!("-c role={role}"));
        }
        let output = tokio::task::spawn_blocking(move || command.output()).await??;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if !output.status.success() {
            return Err(format!("pgbench: {}", String::from_utf8_lossy(&output.stderr)).into());
        }
        Ok(text)
    }
}

/// The first number after `label` in pgbench's output.
pub(crate) fn number(text: &str, label: &str) -> Result<f64> {
    let rest = text
        .split(label)
        .nth(1)
        .ok_or_else(|| format!("pgbench said: {text}"))?;
    let digits = rest.split(|c: char| !c.is_ascii_digit() && c != '.').next();
    Ok(digits.unwrap_or_default().parse()?)
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn a_number_is_found_behind_its_label() -> crate::Result<()> {
        let text = "latency average = 0.5 ms\ntps = 1234.5 (without initial connection time)\n";
        assert!((number(text, "tps = ")? - 1234.5).abs() < 1e-9);
        let missing = number(text, "retries = ").unwrap_err().to_string();
        assert!(missing.starts_with("pgbench said: "), "{missing}");
        Ok(())
    }
}
