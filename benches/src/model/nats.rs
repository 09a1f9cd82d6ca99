//! Three NATS servers. Each server keeps a copy of the messages.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::node::{eventually, line_with};
use crate::service::send;
use crate::{Result, process};

const SERVERS: usize = 3;

/// The servers. They end when this value is dropped.
#[derive(Debug)]
pub(crate) struct Nats {
    children: Vec<Child>,
    ports: Vec<u16>,
    monitor: u16,
}

impl Nats {
    /// Starts the servers, with their data in a folder.
    pub(crate) async fn start(folder: &Path) -> Result<Self> {
        let free = free_ports(2 * SERVERS + 1)?;
        let (ports, rest) = free.split_at(SERVERS);
        let mut nats = Self {
            children: Vec::new(),
            ports: ports.to_vec(),
            monitor: rest[SERVERS],
        };
        for number in 0..SERVERS {
            nats.children
                .push(nats.launch(folder, number, &rest[..SERVERS])?);
        }
        for number in 0..SERVERS {
            let log = folder.join(format!("nats{number}.log"));
            let ready = async || Ok(line_with(&log, "Server is ready").map(drop));
            eventually("nats-server is ready", Duration::from_secs(30), ready).await?;
        }
        Ok(nats)
    }

    fn launch(&self, folder: &Path, number: usize, routes: &[u16]) -> Result<Child> {
        let monitor = if number == 0 { self.monitor } else { 0 };
        let all: Vec<String> = routes
            .iter()
            .map(|port| format!("\"nats://127.0.0.1:{port}\""))
            .collect();
        let text = format!(
            "server_name: nats{number}\nlisten: \"127.0.0.1:{}\"\n{}\
             jetstream {{ store_dir: \"{}\", max_file_store: 2GB }}\n\
             cluster {{ name: bench, listen: \"127.0.0.1:{}\", routes: [{}] }}\n",
            self.ports[number],
            if monitor > 0 {
                format!("http: \"127.0.0.1:{monitor}\"\n")
            } else {
                String::new()
            },
            folder.join(format!("store{number}")).display(),
            routes[number],
            all.join(", "),
        );
        let config = folder.join(format!("nats{number}.conf"));
        fs::write(&config, text)?;
        let log = fs::File::create(folder.join(format!("nats{number}.log")))?;
        let launch = |program: &str| {
            Command::new(program)
                .arg("-c")
                .arg(&config)
                .stdout(Stdio::null())
                .stderr(log.try_clone()?)
                .spawn()
        };
        // Debian installs nats-server in /usr/sbin, which may not be in PATH.
        let child = launch("nats-server").or_else(|_| launch("/usr/sbin/nats-server"));
        child.map_err(|error| format!("nats-server cannot be started: {error}").into())
    }

    /// The value of the setting `bus_url` of the node with this number. A node would choose one of
    /// several servers at random, and a message between servers costs more than a message within a
    /// server. The address of one server is repeated instead, because JetStream keeps a copy for
    /// each address.
    pub(crate) fn url(&self, node: usize) -> String {
        let address = format!("nats://127.0.0.1:{}", self.ports[node % SERVERS]);
        vec![address; SERVERS].join(",")
    }

    /// The seconds of CPU of all servers together.
    pub(crate) fn cpu(&self) -> Result<f64> {
        self.children
            .iter()
            .map(|child| process::cpu(child.id()))
            .sum()
    }

    /// The bytes of one copy in JetStream.
    pub(crate) async fn stored(&self) -> Result<f64> {
        let address = ([127, 0, 0, 1], self.monitor).into();
        let response: Value = send(address, "GET /jsz", "", "").await?;
        let bytes = response["bytes"].as_f64();
        bytes.ok_or_else(|| "jsz without numbers".into())
    }
}

impl Drop for Nats {
    fn drop(&mut self) {
        for child in &mut self.children {
            // The data of the servers is removed with the folder.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn free_ports(count: usize) -> Result<Vec<u16>> {
    let listeners: Vec<TcpListener> = (0..count)
        .map(|_| TcpListener::bind("127.0.0.1:0"))
        .collect::<Result<_, _>>()?;
    let ports = listeners.iter().map(|it| Ok(it.local_addr()?.port()));
    ports.collect()
}
