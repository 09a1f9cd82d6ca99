//! Nodes of `tidegate serve` on the PostgreSQL of a demo.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::service::{Service, send};
use crate::{Result, process};

const TIMEOUT: Duration = Duration::from_mins(1);

/// A node. It ends when this value is dropped.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) address: SocketAddr,
    child: Child,
}

impl Node {
    /// Starts a node with these settings as environment variables. Waits until the node and all its
    /// parts are ready.
    pub(crate) async fn start(
        demo: &Service,
        name: &str,
        settings: &[(&str, String)],
    ) -> Result<Self> {
        let (server, _) = demo
            .floor_url
            .split_once("/demo")
            .ok_or("no name of a database")?;
        let options = demo
            .floor_url
            .split_once('?')
            .map_or("", |(_, options)| options);
        let log = demo.path.join(format!("{name}.log"));
        let child = Command::new(&demo.binary)
            .args(["serve", "--listen", "127.0.0.1:0"])
            .env("TIDEGATE_ADMIN_URL", format!("{server}/postgres?{options}"))
            .env(
                "TIDEGATE_MASTER_KEY_FILE",
                demo.path.join("demo/master.key"),
            )
            // The nodes have the demo's address, so that they accept the demo's tokens.
            .env("TIDEGATE_PUBLIC_URL", format!("http://{}", demo.address))
            .envs(settings.iter().map(|(name, value)| (name, value)))
            .stdout(Stdio::null())
            .stderr(fs::File::create(&log)?)
            .spawn()?;
        let mut node = Self {
            address: ([127, 0, 0, 1], 0).into(),
            child,
        };
        let listens = async || Ok(line_with(&log, "listening").and_then(|line| port(&line)));
        let port = eventually(name, TIMEOUT, listens).await;
        let port = port.map_err(|error| format!("{error}: {}", last_lines(&log)))?;
        node.address.set_port(port);
        let ready = eventually(name, TIMEOUT, async || node.is_ready().await).await;
        ready.map_err(|error| format!("{error}: {}", last_lines(&log)))?;
        Ok(node)
    }

    async fn is_ready(&self) -> Result<Option<()>> {
        let Ok(response) = send(self.address, "GET /readyz", "", "").await else {
            return Ok(None);
        };
        let checks = response["checks"].as_object();
        let works = checks.is_some_and(|checks| checks.values().all(|check| check == "ok"));
        Ok((response["status"] == "ready" && works).then_some(()))
    }

    /// The CPU time that the node has used, in seconds.
    pub(crate) fn cpu(&self) -> Result<f64> {
        process::cpu(self.child.id())
    }

    /// The resident memory of the node, in bytes.
    pub(crate) fn resident(&self) -> Result<f64> {
        Ok(process::resident(self.child.id())? as f64)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The first line with `text` in a log; `None` if there is none.
pub(crate) fn line_with(log: &Path, text: &str) -> Option<String> {
    let log = fs::read_to_string(log).ok()?;
    log.lines()
        .find(|line| line.contains(text))
        .map(str::to_owned)
}

fn port(line: &str) -> Option<u16> {
    let digits = line.split("127.0.0.1:").nth(1)?;
    let digits = digits.split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok()
}

/// The last lines of a log.
pub(crate) fn last_lines(log: &Path) -> String {
    let log = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(5)..].join("\n")
}

/// Waits until `condition` returns a value. Fails after `limit`.
pub(crate) async fn eventually<T>(
    what: &str,
    limit: Duration,
    mut condition: impl AsyncFnMut() -> Result<Option<T>>,
) -> Result<T> {
    let started = Instant::now();
    loop {
        if let Some(value) = condition().await? {
            return Ok(value);
        }
        if started.elapsed() > limit {
            return Err(format!("{what}: not within {limit:?}").into());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
