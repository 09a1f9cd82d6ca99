//! Nodes of `tidegate serve` on the PostgreSQL of a demo, with NATS servers.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use clap::Parser as _;

use super::nats::Nats;
use crate::arguments::Arguments;
use crate::feed::writer::TABLE;
use crate::service::{Service, send};
use crate::{Result, process};

const PATIENCE: Duration = Duration::from_mins(1);

/// A demo, of which only PostgreSQL is used, and NATS servers.
#[derive(Debug)]
pub(crate) struct Cluster {
    pub(crate) nats: Nats,
    pub(crate) demo: Service,
}

/// A node. It ends when this value is dropped.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) address: SocketAddr,
    child: Child,
}

impl Cluster {
    /// Starts a demo with the table for changes, and NATS servers.
    pub(crate) async fn start(binary: Option<&Path>) -> Result<Self> {
        let mut arguments = Arguments::try_parse_from(["tidegate-bench"])?;
        arguments.binary = binary.map(Path::to_owned);
        // This is PostgreSQL's default. With another value the demo would have to restart
        // PostgreSQL.
        arguments.max_connections = 100;
        let demo = Service::start(&arguments, None).await?;
        let nats = Nats::start(&demo.path).await?;
        demo.run(TABLE).await?;
        demo.run("grant select on bench_feed to demo").await?;
        Ok(Self { nats, demo })
    }

    /// Starts a node, with the bus or without.
    pub(crate) async fn node(&self, name: &str, has_bus: bool) -> Result<Node> {
        let demo = &self.demo;
        let (server, _) = demo
            .floor_url
            .split_once("/demo")
            .ok_or("no name of a database")?;
        let options = demo
            .floor_url
            .split_once('?')
            .map_or("", |(_, options)| options);
        let log = demo.path.join(format!("{name}.log"));
        let mut command = Command::new(&demo.binary);
        command
            .args(["serve", "--listen", "127.0.0.1:0"])
            .env("TIDEGATE_ADMIN_URL", format!("{server}/postgres?{options}"))
            .env(
                "TIDEGATE_MASTER_KEY_FILE",
                demo.path.join("demo/master.key"),
            )
            // The nodes have the demo's address, so that they accept the demo's tokens.
            .env("TIDEGATE_PUBLIC_URL", format!("http://{}", demo.address));
        if has_bus {
            command.env("TIDEGATE_BUS_URL", self.nats.url());
        }
        let child = command
            .stdout(Stdio::null())
            .stderr(fs::File::create(&log)?)
            .spawn()?;
        let mut node = Node {
            address: ([127, 0, 0, 1], 0).into(),
            child,
        };
        let listens = async || Ok(says(&log, "listening").and_then(|line| port(&line)));
        let port = eventually(name, PATIENCE, listens).await;
        let port = port.map_err(|error| format!("{error}: {}", end(&log)))?;
        node.address.set_port(port);
        let ready = async || node.is_ready(has_bus).await;
        let ready = eventually(name, PATIENCE, ready).await;
        ready.map_err(|error| format!("{error}: {}", end(&log)))?;
        Ok(node)
    }
}

impl Node {
    async fn is_ready(&self, has_bus: bool) -> Result<Option<()>> {
        let Ok(answer) = send(self.address, "GET /readyz", "", "").await else {
            return Ok(None);
        };
        let works = !has_bus || answer["checks"]["bus"] == "ok";
        Ok((answer["status"] == "ready" && works).then_some(()))
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

/// The first line of a log with this text.
pub(crate) fn says(log: &Path, text: &str) -> Option<String> {
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
fn end(log: &Path) -> String {
    let log = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(5)..].join("\n")
}

/// Waits until there is a value. Fails after `limit`.
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
