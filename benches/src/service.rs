//! The service under measurement: the release binary's own demo.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::{Result, case};

/// A running demo with a table to measure on.
#[derive(Debug)]
pub(crate) struct Service {
    /// Where the server listens.
    pub(crate) address: SocketAddr,
    /// The server's process.
    pub(crate) server: u32,
    /// PostgreSQL's first process.
    pub(crate) postmaster: u32,
    /// The owner's access token.
    pub(crate) owner_token: String,
    /// The default user's access token.
    pub(crate) guest_token: String,
    /// Where pgbench is.
    pub(crate) pgbench: PathBuf,
    /// As whom and by which transport pgbench connects.
    pub(crate) floor_url: String,
    /// The same by TCP, which is how the load generator reaches the service.
    pub(crate) floor_tcp_url: String,
    /// Holds the demo's data and our scripts.
    pub(crate) folder: TempDir,
    child: Child,
}

impl Service {
    /// Builds the server, unless a binary is given, and starts its demo in a folder of its own.
    pub(crate) async fn start(binary: Option<&Path>) -> Result<Self> {
        let binary = match binary {
            Some(binary) => binary.to_owned(),
            None => build()?,
        };
        let folder = tempfile::Builder::new()
            .prefix("tidegate-bench-")
            .tempdir()?;
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755))?;
        let data_dir = folder.path().join("demo");
        let mut child = Command::new(binary)
            .args(["demo", "--listen", "127.0.0.1:0", "--data-dir"])
            .arg(&data_dir)
            // Ten million rows take as long as they take.
            .env("TIDEGATE_STATEMENT_TIMEOUT", "600s")
            // People of a storm of sign-ins come from addresses of their own.
            .env("TIDEGATE_TRUSTED_PROXIES", "127.0.0.1")
            .stdout(Stdio::piped())
            .spawn()?;
        let mut lines = BufReader::new(child.stdout.take().ok_or("no output")?);
        let mut banner = String::new();
        while !banner.contains("Ctrl-C") {
            if lines.read_line(&mut banner)? == 0 {
                return Err(format!("the demo ended: {banner}").into());
            }
        }
        // Kept open, so that the demo can go on writing to it.
        std::thread::spawn(move || lines.lines().for_each(drop));
        let env = fs::read_to_string(data_dir.join("demo.env"))?;
        let url = variable(&env, "TIDEGATE_URL")?;
        let address: SocketAddr = url.trim_start_matches("http://").parse()?;
        let postmaster = find_file(&data_dir, "postmaster.pid").ok_or("no postmaster.pid")?;
        let postmaster = fs::read_to_string(postmaster)?;
        let mut lines = postmaster.lines();
        let pid = lines.next().ok_or("empty postmaster.pid")?.parse()?;
        let socket = lines.nth(3).unwrap_or_default().to_owned();
        let floor_tcp_url = variable(&env, "DATABASE_URL")?;
        let floor_url = floor_url(&floor_tcp_url, &socket);
        let pgbench = pgbench(pid)?;
        let owner_token = token(address, "/api/v4/oauth", OWNER).await?;
        let guest_token = token(address, "/api/v4/oauth/guest", GUEST).await?;
        let server = child.id();
        Ok(Self {
            address,
            server,
            postmaster: pid,
            owner_token,
            guest_token,
            pgbench,
            floor_url,
            floor_tcp_url,
            folder,
            child,
        })
    }

    /// How pgbench reaches PostgreSQL.
    pub(crate) fn floor_transport(&self) -> &'static str {
        if self.floor_url.contains("host=") {
            "Unix socket"
        } else {
            "TCP loopback"
        }
    }

    /// Makes the tables of the cases.
    pub(crate) async fn fill(&self) -> Result<()> {
        for statement in FILL {
            self.run(statement).await?;
        }
        let authorization = format!("Authorization: Bearer {}\r\n", self.owner_token);
        let body = case::methods();
        post(self.address, "/api/v4/methods", &authorization, &body).await?;
        Ok(())
    }

    /// Runs statements as the demo's administrator.
    pub(crate) async fn run(&self, statements: &str) -> Result<()> {
        let (client, connection) =
            tokio_postgres::connect(&self.floor_url, tokio_postgres::NoTls).await?;
        tokio::spawn(connection);
        Ok(client.batch_execute(statements).await?)
    }
}

impl Drop for Service {
    /// Stops the demo, also where a case failed.
    fn drop(&mut self) {
        let pid = self.server.to_string();
        if Command::new("kill").arg(pid).status().is_ok() {
            // There is nobody to tell, and nothing else to do.
            let _ = self.child.wait();
        }
    }
}

const FILL: [&str; 11] = [
    "create table bench (id int primary key, name text not null, price numeric(8,2), \
     created_at timestamptz not null)",
    "insert into bench select i, 'name of row ' || i, (i % 10000) / 100.0, \
     timestamptz '2024-01-01' + i * interval '1 second' from generate_series(1, 200000) i",
    "create table bench_write (id bigint generated always as identity primary key, name text, \
     price numeric(10,2))",
    "grant select on bench to demo, \"demo/guest\"",
    "grant select, insert on bench_write to demo",
    "create table bench_artists as select i as id, 'artist ' || i as name from generate_series(1, 1000) i",
    "create table bench_albums as select i as id, (i + 9) / 10 as artist_id, 'album ' || i as title \
     from generate_series(1, 10000) i",
    "create table bench_tracks as select i as id, (i + 9) / 10 as album_id, 'track ' || i as title, \
     i % 600 as seconds from generate_series(1, 100000) i",
    "create table bench_update as select * from bench where id <= 1000",
    "alter table bench_update add primary key (id); alter table bench_artists add primary key (id); \
     alter table bench_albums add primary key (id), add foreign key (artist_id) references bench_artists; \
     alter table bench_tracks add primary key (id), add foreign key (album_id) references bench_albums; \
     create index on bench_albums (artist_id); create index on bench_tracks (album_id); \
     grant select on bench_artists, bench_albums, bench_tracks to demo; \
     grant select, update on bench_update to demo; \
     grant usage on schema public to demo",
    "vacuum analyze",
];

/// A sign-in of the owner.
pub(crate) const OWNER: &str =
    r#"{"grant_type":"password","username":"demo","password":"demo1234","client_id":"demo-app"}"#;
const GUEST: &str = r#"{"database":"demo","client_id":"demo-app"}"#;

fn build() -> Result<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let built = Command::new(env!("CARGO"))
        .args([
            "build",
            "--release",
            "-p",
            "tidegate",
            "--message-format=json-render-diagnostics",
        ])
        .current_dir(root)
        .stderr(Stdio::inherit())
        .output()?;
    if !built.status.success() {
        return Err("the server cannot be built".into());
    }
    for line in String::from_utf8(built.stdout)?.lines() {
        let message: Value = serde_json::from_str(line)?;
        if message["target"]["name"] == "tidegate"
            && let Some(path) = message["executable"].as_str()
        {
            return Ok(path.into());
        }
    }
    Err("the build named no binary".into())
}

fn variable(env: &str, name: &str) -> Result<String> {
    let line = env
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    let value = line.ok_or_else(|| format!("demo.env has no {name}"))?;
    Ok(value.trim_matches(['"', '\'']).to_owned())
}

fn find_file(folder: &Path, name: &str) -> Option<PathBuf> {
    for entry in fs::read_dir(folder).ok()?.flatten() {
        let path = entry.path();
        if path.file_name().is_some_and(|file| file == name) {
            return Some(path);
        }
        if path.is_dir()
            && let Some(found) = find_file(&path, name)
        {
            return Some(found);
        }
    }
    None
}

/// The same connection over the Unix socket, which is what the service uses too.
fn floor_url(url: &str, socket: &str) -> String {
    let (Some((credentials, rest)), false) = (url.rsplit_once('@'), socket.is_empty()) else {
        return url.to_owned();
    };
    let database = rest
        .split_once('/')
        .map_or("demo", |(_, database)| database);
    let database = database.split('?').next().unwrap_or("demo");
    let port = rest
        .split_once('/')
        .and_then(|(host, _)| host.rsplit_once(':'))
        .map_or("5432", |(_, port)| port);
    format!("{credentials}@/{database}?host={socket}&port={port}")
}

/// The pgbench beside the running server's binary.
fn pgbench(postmaster: u32) -> Result<PathBuf> {
    let binary = fs::read_link(format!("/proc/{postmaster}/exe"))?;
    let beside = binary.with_file_name("pgbench");
    if beside.exists() {
        Ok(beside)
    } else {
        Err("pgbench is not installed beside postgres".into())
    }
}

async fn token(address: SocketAddr, path: &str, body: &str) -> Result<String> {
    let answer = post(address, path, "", body).await?;
    let token = answer["access_token"].as_str();
    Ok(token.ok_or_else(|| answer.to_string())?.to_owned())
}

/// Posts a JSON text and reads the answer's.
pub(crate) async fn post(
    address: SocketAddr,
    path: &str,
    headers: &str,
    body: &str,
) -> Result<Value> {
    let request = format!(
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n{headers}\
         Connection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let body = answer.split("\r\n\r\n").nth(1).unwrap_or_default();
    if !answer.starts_with("HTTP/1.1 20") {
        return Err(answer.into());
    }
    serde_json::from_str(body).map_err(|_| answer.clone().into())
}
