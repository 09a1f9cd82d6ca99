//! Starts the measured service, which is a demo in a temporary or a kept folder.

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

use crate::Result;
use crate::arguments::Arguments;

/// A running demo with a table to measure on.
#[derive(Debug)]
pub(crate) struct Service {
    /// The address of the service.
    pub(crate) address: SocketAddr,
    /// The id of the server's process.
    pub(crate) server: u32,
    /// The id of PostgreSQL's first process.
    pub(crate) postmaster: u32,
    /// The owner's access token.
    pub(crate) owner_token: String,
    /// The default user's access token.
    pub(crate) guest_token: String,
    /// The path of pgbench.
    pub(crate) pgbench: PathBuf,
    /// The URL with which pgbench connects.
    pub(crate) floor_url: String,
    /// PostgreSQL's URL for TCP.
    pub(crate) tcp_url: String,
    /// The binary of the service. Other commands are run with it too.
    pub(crate) binary: PathBuf,
    /// The folder with the demo's data, the pgbench scripts and the users' tokens.
    pub(crate) path: PathBuf,
    /// The temporary folder, which is removed on drop; `None` if the folder is kept.
    _folder: Option<TempDir>,
    child: Child,
}

impl Service {
    /// Builds the server, unless a binary is given, and starts its demo in the folder `keep` or in
    /// a temporary folder.
    pub(crate) async fn start(arguments: &Arguments, keep: Option<&Path>) -> Result<Self> {
        let binary = match &arguments.binary {
            Some(binary) => binary.canonicalize()?,
            None => build()?,
        };
        let (path, folder) = folder(keep)?;
        let data_dir = path.join("demo");
        let mut child = launch(&binary, &data_dir)?;
        if set_max_connections(&data_dir, arguments.max_connections).await? {
            stop(&mut child);
            child = launch(&binary, &data_dir)?;
        }
        let env = fs::read_to_string(data_dir.join("demo.env"))?;
        let url = variable(&env, "TIDEGATE_URL")?;
        let address: SocketAddr = url.trim_start_matches("http://").parse()?;
        let postmaster = find_file(&data_dir, "postmaster.pid").ok_or("no postmaster.pid")?;
        let postmaster = fs::read_to_string(postmaster)?;
        let mut lines = postmaster.lines();
        let pid = lines.next().ok_or("empty postmaster.pid")?.parse()?;
        let socket = lines.nth(3).unwrap_or_default().to_owned();
        let tcp_url = variable(&env, "DATABASE_URL")?;
        Ok(Self {
            address,
            server: child.id(),
            postmaster: pid,
            owner_token: token(address, "/api/v4/oauth", OWNER).await?,
            guest_token: token(address, "/api/v4/oauth/guest", GUEST).await?,
            pgbench: pgbench(pid)?,
            floor_url: floor_url(&tcp_url, &socket),
            tcp_url,
            binary,
            path,
            _folder: folder,
            child,
        })
    }

    /// The name of the transport between pgbench and PostgreSQL.
    pub(crate) fn floor_transport(&self) -> &'static str {
        if self.floor_url.contains("host=") {
            "Unix socket"
        } else {
            "TCP loopback"
        }
    }

    /// Runs statements as the demo's administrator.
    pub(crate) async fn run(&self, statements: &str) -> Result<()> {
        Ok(self.client().await?.batch_execute(statements).await?)
    }

    /// A connection as the demo's administrator.
    pub(crate) async fn client(&self) -> Result<tokio_postgres::Client> {
        let (client, connection) =
            tokio_postgres::connect(&self.floor_url, tokio_postgres::NoTls).await?;
        tokio::spawn(connection);
        Ok(client)
    }
}

impl Drop for Service {
    /// Stops the demo, even if a case failed.
    fn drop(&mut self) {
        stop(&mut self.child);
    }
}

fn launch(binary: &Path, data_dir: &Path) -> Result<Child> {
    let mut child = Command::new(binary)
        .args(["demo", "--listen", &listen(data_dir), "--data-dir"])
        .arg(data_dir)
        // The export of ten million rows takes longer than the default limit.
        .env("TIDEGATE_STATEMENT_TIMEOUT", "600s")
        // The limit is enough for the sockets of `--page-sign-ups` and the connections of the load
        // generator.
        .env("TIDEGATE_CONNECTIONS", "15000")
        // With this setting, requests can have different client addresses (`X-Forwarded-For`).
        .env("TIDEGATE_TRUSTED_PROXIES", "127.0.0.1")
        .stdout(Stdio::piped())
        .spawn()?;
    wait_for_banner(&mut child)?;
    Ok(child)
}

fn stop(child: &mut Child) {
    if Command::new("kill")
        .arg(child.id().to_string())
        .status()
        .is_ok()
    {
        // The exit status of a terminated process is irrelevant.
        let _ = child.wait();
    }
}

/// Sets `max_connections` of PostgreSQL. Returns whether PostgreSQL must be restarted for the
/// change to take effect.
async fn set_max_connections(data_dir: &Path, count: u32) -> Result<bool> {
    let env = fs::read_to_string(data_dir.join("demo.env"))?;
    let (client, connection) =
        tokio_postgres::connect(&variable(&env, "DATABASE_URL")?, tokio_postgres::NoTls).await?;
    tokio::spawn(connection);
    let row = client.query_one("SHOW max_connections", &[]).await?;
    if row.get::<_, &str>(0) == count.to_string() {
        return Ok(false);
    }
    let set = format!("ALTER SYSTEM SET max_connections = {count}");
    client.batch_execute(&set).await?;
    Ok(true)
}

/// The body of a request with which the owner signs in.
pub(crate) const OWNER: &str =
    r#"{"grant_type":"password","username":"demo","password":"demo1234","client_id":"demo-app"}"#;
const GUEST: &str = r#"{"database":"demo","client_id":"demo-app"}"#;

/// The kept folder, or a new temporary folder. Dropping the second value removes the temporary
/// folder.
fn folder(keep: Option<&Path>) -> Result<(PathBuf, Option<TempDir>)> {
    // If this process runs as root, PostgreSQL runs as another user, who must be able to enter the
    // folder.
    let open = fs::Permissions::from_mode(0o755);
    if let Some(path) = keep {
        if !path.exists() {
            fs::create_dir_all(path)?;
            fs::set_permissions(path, open)?;
        }
        return Ok((path.canonicalize()?, None));
    }
    let new = tempfile::Builder::new()
        .prefix("tidegate-bench-")
        .tempdir()?;
    fs::set_permissions(new.path(), open)?;
    Ok((new.path().to_owned(), Some(new)))
}

/// The address on which the demo listens. A kept demo has the same address as before, because the
/// address is the issuer of the users' tokens.
fn listen(data_dir: &Path) -> String {
    let env = fs::read_to_string(data_dir.join("demo.env")).unwrap_or_default();
    variable(&env, "TIDEGATE_URL").map_or_else(
        |_| "127.0.0.1:0".to_owned(),
        |url| url.trim_start_matches("http://").to_owned(),
    )
}

fn wait_for_banner(child: &mut Child) -> Result<()> {
    let mut lines = BufReader::new(child.stdout.take().ok_or("no output")?);
    let mut banner = String::new();
    while !banner.contains("Ctrl-C") {
        if lines.read_line(&mut banner)? == 0 {
            return Err(format!("the demo ended: {banner}").into());
        }
    }
    // The pipe is read to its end on a thread, so that the demo can continue to write to it.
    std::thread::spawn(move || lines.lines().for_each(drop));
    Ok(())
}

fn build() -> Result<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let built = Command::new(env!("CARGO"))
        .args([
            "build",
            "--profile",
            "dist",
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

/// The URL with which pgbench connects over the Unix socket, as the service does. Without a socket,
/// the unchanged `url`.
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

/// The path of the pgbench beside the program of the running PostgreSQL.
fn pgbench(postmaster: u32) -> Result<PathBuf> {
    let binary = fs::read_link(format!("/proc/{postmaster}/exe"))?;
    let beside = binary.with_file_name("pgbench");
    if beside.exists() {
        Ok(beside)
    } else {
        Err("pgbench is not installed beside postgres".into())
    }
}

/// Requests an access token.
pub(crate) async fn token(address: SocketAddr, path: &str, body: &str) -> Result<String> {
    let response = post(address, path, "", body).await?;
    let token = response["access_token"].as_str();
    Ok(token.ok_or_else(|| response.to_string())?.to_owned())
}

/// Posts JSON and reads the response as JSON.
pub(crate) async fn post(
    address: SocketAddr,
    path: &str,
    headers: &str,
    body: &str,
) -> Result<Value> {
    send(address, &format!("POST {path}"), headers, body).await
}

/// Sends JSON with a method and path, and reads the response as JSON.
pub(crate) async fn send(
    address: SocketAddr,
    method_and_path: &str,
    headers: &str,
    body: &str,
) -> Result<Value> {
    let request = format!(
        "{method_and_path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
         {headers}Connection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(request.as_bytes()).await?;
    let mut response = String::new();
    stream.read_to_string(&mut response).await?;
    let body = response.split("\r\n\r\n").nth(1).unwrap_or_default();
    if !response.starts_with("HTTP/1.1 20") && !response.starts_with("HTTP/1.1 303") {
        return Err(response.into());
    }
    serde_json::from_str(body).map_err(|_| response.clone().into())
}
