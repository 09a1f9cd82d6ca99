//! Sessions outside of any pool: sessions of administration, and sessions that read streams.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tidegate_sql::DatabaseName;
use tidegate_wire::{Config, ConnectError};
use tokio::time::timeout;

use super::connect::{self, CONTROL};

/// How long a new session of administration waits while the limit on sessions is reached. After
/// this time the session is opened nevertheless.
const SESSION_WAIT: Duration = Duration::from_secs(1);

/// Opens a connection of the administrator outside of any pool. If [`Config::sessions`] has no
/// permit left, first waits up to a second for another session to end.
pub async fn open(
    config: &Config,
    database: &DatabaseName,
) -> Result<tokio_postgres::Client, ConnectError> {
    open_with(config, database, CONTROL).await
}

async fn open_with(
    config: &Config,
    database: &DatabaseName,
    options: &str,
) -> Result<tokio_postgres::Client, ConnectError> {
    // The wait must have a limit, because a task that holds a permit may need another one.
    let permit = timeout(SESSION_WAIT, config.sessions.clone().acquire_owned()).await;
    let (client, connection) = connect::connect(config, database, options).await?;
    tokio::spawn(async move {
        let ended = connection.await;
        drop(permit);
        ended
    });
    Ok(client)
}

/// Opens a connection that logs in as a user, for administration. The connection is in no pool.
/// `config` must have the user's login ([`Config::with_login`]). Settings of the user (`ALTER ROLE
/// … SET`) are overridden if administration depends on them. `version` is `server_version_num`; 0
/// if unknown.
pub async fn open_as_user(
    config: &Config,
    database: &DatabaseName,
    version: u32,
) -> Result<tokio_postgres::Client, ConnectError> {
    let options = connect::as_user(version);
    open_with(config, database, &options).await
}

/// Opens a connection of the administrator that is used for a long time. It reads the changes of a
/// database, or the positions of the WAL. The connection is counted in [`Config::streams`] and
/// needs no permit of [`Config::sessions`].
pub async fn open_stream(
    config: &Config,
    database: &DatabaseName,
) -> Result<tokio_postgres::Client, ConnectError> {
    let (client, connection) = connect::connect(config, database, CONTROL).await?;
    let streams = config.streams.clone();
    streams.fetch_add(1, Ordering::Relaxed);
    tokio::spawn(async move {
        let ended = connection.await;
        streams.fetch_sub(1, Ordering::Relaxed);
        ended
    });
    Ok(client)
}
