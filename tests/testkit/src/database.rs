//! Connections to databases of a cluster, and their creation.

use tidegate_embedded::{Cluster, testing};
use tokio_postgres::{Client, NoTls};

use crate::eventually;

/// Connects to a database by its URL.
///
/// # Panics
///
/// If PostgreSQL refuses the connection.
pub async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// Connects as another role. `url` is that of the administrator.
///
/// # Errors
///
/// If PostgreSQL refuses the login.
///
/// # Panics
///
/// If the URL is invalid.
pub async fn connect_as(
    url: &str,
    role: &str,
    password: &str,
) -> Result<Client, tokio_postgres::Error> {
    let mut config: tokio_postgres::Config = url.parse().unwrap();
    config.user(role).password(password);
    let (client, connection) = config.connect(NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

/// Creates a database in the cluster that the tests of this process share, runs SQL in it, and
/// returns the administrator's connection to it. No other test may use the same name.
///
/// # Panics
///
/// If a statement fails.
pub async fn database(name: &str, sql: &str) -> Client {
    database_on(testing::cluster(), name, sql).await
}

/// Does the same as [`database`] in another cluster.
///
/// # Panics
///
/// If a statement fails.
pub async fn database_on(cluster: &Cluster, name: &str, sql: &str) -> Client {
    let root = connect(&cluster.url("postgres")).await;
    let create = format!("CREATE DATABASE \"{name}\"");
    root.batch_execute(&create).await.unwrap();
    let client = connect(&cluster.url(name)).await;
    client.batch_execute(sql).await.unwrap();
    client
}

/// The text in the first column of the only row of a query; empty if it is NULL.
///
/// # Panics
/// If the query fails, or returns another number of rows or another type.
pub async fn text(client: &Client, query: &str) -> String {
    let row = client.query_one(query, &[]).await.unwrap();
    row.get::<_, Option<String>>(0).unwrap_or_default()
}

/// The OID of a table.
///
/// # Panics
///
/// If there is no such table.
pub async fn oid(client: &Client, table: &str) -> u32 {
    let query = "SELECT ($1::text::regclass)::oid";
    client.query_one(query, &[&table]).await.unwrap().get(0)
}

/// The number of statements with `mark` in their text that other sessions of the database are
/// running.
///
/// # Panics
///
/// If the query fails.
pub async fn running(client: &Client, mark: &str) -> i64 {
    let query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
        AND pid <> pg_backend_pid() AND state <> 'idle' AND strpos(query, $1) > 0";
    // Inside a transaction, PostgreSQL repeats the content that the view had at its first use.
    let clear = "SELECT pg_stat_clear_snapshot()";
    client.batch_execute(clear).await.unwrap();
    client.query_one(query, &[&mark]).await.unwrap().get(0)
}

/// Waits until other sessions are running `count` statements with `mark` in their text.
///
/// # Panics
/// After the deadline.
pub async fn wait_for_running(client: &Client, mark: &str, count: i64) {
    let what = format!("{count} statements with {mark} run");
    eventually(&what, async || running(client, mark).await == count).await;
}

/// Waits until a standby has replayed everything that its primary has written so far.
///
/// # Panics
///
/// If a query fails, or after the deadline.
pub async fn caught_up(primary: &Cluster, standby: &Cluster) {
    let primary = connect(&primary.admin_url()).await;
    let written = text(&primary, "SELECT pg_current_wal_insert_lsn()::text").await;
    let standby = connect(&standby.admin_url()).await;
    let replayed = format!("SELECT (pg_last_wal_replay_lsn() >= '{written}')::text");
    eventually("the standby has caught up", async || {
        text(&standby, &replayed).await == "true"
    })
    .await;
}
