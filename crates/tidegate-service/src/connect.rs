//! Opens service connections, and sets the settings of their sessions.

use std::io::ErrorKind;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::poll_fn;
use tidegate_sql::DatabaseName;
use tidegate_wire::body::IN_HOT_STANDBY;
use tidegate_wire::{Config, ConnectError, Target, TlsMode};
use tokio_postgres::SimpleQueryMessage;
use tokio_postgres::config::SslMode;

use super::error;
use super::tls::Tls;

/// The settings of service sessions. Sessions that read catalogs have the settings [`CATALOG`]
/// instead. The empty `search_path` prevents the accidental use of a user's object. The timeouts
/// limit how long a statement runs, how long it waits for a lock, and how long a transaction is
/// idle. The keepalives make PostgreSQL end the sessions of an unreachable machine after half a
/// minute. Transactions are read-write by default. Otherwise the service could not administer a
/// database with `default_transaction_read_only` set.
pub(super) const CONTROL: &str = "-c search_path= -c TimeZone=UTC -c DateStyle=ISO -c jit=off \
    -c statement_timeout=60s -c lock_timeout=30s -c idle_in_transaction_session_timeout=60s \
    -c tcp_keepalives_idle=15 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=3 \
    -c client_min_messages=warning -c default_transaction_read_only=off";

/// The settings of sessions that read the catalog of a tenant's database: those of [`CONTROL`], but
/// with read-only transactions by default, and with a shorter lock timeout.
pub(super) const CATALOG: &str = "-c search_path= -c TimeZone=UTC -c DateStyle=ISO -c jit=off \
    -c statement_timeout=60s -c lock_timeout=5s -c idle_in_transaction_session_timeout=60s \
    -c tcp_keepalives_idle=15 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=3 \
    -c client_min_messages=warning -c default_transaction_read_only=on";

/// Additional settings of sessions in which the service logs in as a user for administration.
/// Without them, settings of the user (`ALTER ROLE … SET`) could change the role of the session, or
/// keep the session from starting.
const AS_USER: &str = " -c role=none \
    -c local_preload_libraries= -c default_transaction_isolation=read\\ committed \
    -c default_transaction_deferrable=off -c standard_conforming_strings=on -c row_security=on";

/// The settings of a session in which the service logs in as a user. `version` is
/// `server_version_num`; 0 if unknown.
pub(super) fn as_user(version: u32) -> String {
    let mut options = format!("{CONTROL}{AS_USER}");
    for (name, value) in tidegate_wire::version::startup_settings(version) {
        options.extend([" -c ", name, "=", value]);
    }
    options
}

const KEEPALIVE_IDLE: Duration = Duration::from_secs(15);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
const KEEPALIVE_RETRIES: u32 = 3;

/// The connection settings of the administrator for one database at one of the cluster's hosts.
fn settings(
    config: &Config,
    target: &Target,
    database: &DatabaseName,
    options: &str,
) -> tokio_postgres::Config {
    let mut settings = tokio_postgres::Config::new();
    let tls = match (target, config.tls) {
        (Target::Unix { .. }, _) | (_, TlsMode::Disable) => SslMode::Disable,
        (_, TlsMode::Prefer) => SslMode::Prefer,
        _ => SslMode::Require,
    };
    match target {
        Target::Tcp { host, port } => settings.host(host).port(*port),
        Target::Unix { directory, port } => settings.host_path(directory).port(*port),
    };
    settings
        .user(&config.admin_role)
        .password(config.admin_password.reveal())
        .dbname(database.as_str())
        .application_name("tidegate")
        .options(options)
        .ssl_mode(tls)
        .connect_timeout(config.connect_timeout)
        .keepalives(true)
        .keepalives_idle(KEEPALIVE_IDLE)
        .keepalives_interval(KEEPALIVE_INTERVAL)
        .keepalives_retries(KEEPALIVE_RETRIES)
        .tcp_user_timeout(KEEPALIVE_IDLE);
    settings
}

/// A client and its connection. The connection must be polled for the client to work.
pub(super) type ClientAndConnection = (
    tokio_postgres::Client,
    tokio_postgres::Connection<tokio_postgres::Socket, super::tls::TlsSocket>,
);

/// A connection that was opened, and its server.
pub(super) struct Opened<'a> {
    pub(super) connection: ClientAndConnection,
    pub(super) host: &'a Target,
    /// Whether the server is in recovery. Such a server refuses writes.
    pub(super) in_recovery: bool,
}

/// Opens one connection, to the first host of the cluster that can be used.
pub(super) async fn connect(
    config: &Config,
    database: &DatabaseName,
    options: &str,
) -> Result<ClientAndConnection, ConnectError> {
    let opened = connect_to_host(config, database, options).await?;
    Ok(opened.connection)
}

/// Does the same as [`connect`], and also returns the server.
pub(super) async fn connect_to_host<'a>(
    config: &'a Config,
    database: &DatabaseName,
    options: &str,
) -> Result<Opened<'a>, ConnectError> {
    let tls = &Tls::new(config)?;
    let attempt = async |host| {
        let settings = settings(config, host, database, options);
        let connected = settings.connect(tls.clone()).await;
        let (client, mut connection) = connected.map_err(|error| error::of_connection(&error))?;
        let in_recovery = is_in_recovery(&client, &mut connection).await?;
        if in_recovery && config.requires_primary {
            return Err(ConnectError::InRecovery);
        }
        Ok(Opened {
            connection: (client, connection),
            host,
            in_recovery,
        })
    };
    config.first_usable(attempt).await
}

/// Whether the server is in recovery. PostgreSQL 14 and later report it at the login; earlier
/// versions are queried.
async fn is_in_recovery(
    client: &tokio_postgres::Client,
    connection: &mut tokio_postgres::Connection<tokio_postgres::Socket, super::tls::TlsSocket>,
) -> Result<bool, ConnectError> {
    if let Some(value) = connection.parameter(IN_HOT_STANDBY) {
        return Ok(value == "on");
    }
    let mut messages = poll_fn(|cx| connection.poll_message(cx));
    let mut response = std::pin::pin!(client.simple_query("SELECT pg_catalog.pg_is_in_recovery()"));
    loop {
        tokio::select! {
            response = &mut response => {
                let response = response.map_err(|error| error::of_connection(&error))?;
                return Ok(response.iter().any(|message| matches!(
                    message,
                    SimpleQueryMessage::Row(row) if row.get(0) == Some("t")
                )));
            }
            message = messages.next() => match message {
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(error::of_connection(&error)),
                None => return Err(ConnectError::Unreachable(ErrorKind::UnexpectedEof.into())),
            }
        }
    }
}
