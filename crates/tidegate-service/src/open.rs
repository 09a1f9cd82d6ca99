//! Sessions outside of any pool: of administration, and of streams.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tidegate_sql::DatabaseName;
use tidegate_wire::{Config, ConnectError};
use tokio::time::timeout;

use super::connect::{self, CONTROL};

/// How long the opening of a session of administration waits while the most are open. After that it
/// is opened nevertheless.
const SESSION_WAIT: Duration = Duration::from_secs(1);

/// Opens a connection of the administrator outside of any pool. If [`Config::sessions`] are open
/// already, waits a while for one of them to end.
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
    // Administration that holds a session may need another one, so the wait must end.
    let permit = timeout(SESSION_WAIT, config.sessions.clone().acquire_owned()).await;
    let (client, connection) = connect::connect(config, database, options).await?;
    tokio::spawn(async move {
        let ended = connection.await;
        drop(permit);
        ended
    });
    Ok(client)
}

/// Opens a connection with the login of a user outside of any pool, for administration. Settings
/// that the user made (`ALTER ROLE … SET`) do not apply where administration depends on them.
/// `version` is `server_version_num`, or 0 if unknown.
pub async fn open_as_user(
    config: &Config,
    database: &DatabaseName,
    version: u32,
) -> Result<tokio_postgres::Client, ConnectError> {
    let options = connect::as_user(version);
    open_with(config, database, &options).await
}

/// Opens a connection of the administrator that reads changes for as long as a database has
/// subscribers. It counts in [`Config::streams`] and not in [`Config::sessions`].
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
