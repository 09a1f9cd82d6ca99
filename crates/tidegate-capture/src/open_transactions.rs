//! Waits for the end of open transactions.

use std::time::Duration;

use tidegate_changelog::{LogError, LogResult};
use tokio::time::{Instant, sleep};
use tokio_postgres::Client;

use crate::error;

/// The shortest and the longest pause between two checks whether the transactions are open.
const CHECK_DELAY: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(100));

/// Waits for the end of all transactions of this database that have a transaction id at the time of
/// the call.
///
/// A transaction that gets its id after the call sees what was committed before the call, such as a
/// new publication. PostgreSQL may decode the writes of an older transaction as if the publication
/// did not exist.
pub(crate) async fn wait_until_ended(client: &Client, timeout: Duration) -> LogResult<()> {
    let failed = |error: tokio_postgres::Error| error::of_statement(&error, timeout);
    let rows = client
        .query(
            "SELECT x::text FROM pg_catalog.pg_snapshot_xip(pg_catalog.pg_current_snapshot()) x",
            &[],
        )
        .await
        .map_err(failed)?;
    let mut open: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    let deadline = Instant::now() + timeout;
    let mut pause = CHECK_DELAY.0;
    while !open.is_empty() {
        let rows = client.query(STILL_OPEN, &[&open]).await.map_err(failed)?;
        open = rows.iter().map(|row| row.get(0)).collect();
        if open.is_empty() {
            break;
        }
        if Instant::now() + pause > deadline {
            return Err(LogError::TimedOut {
                what: format!("the end of transaction {}, which was open before,", open[0]),
                limit: timeout,
            });
        }
        sleep(pause).await;
        pause = (pause * 2).min(CHECK_DELAY.1);
    }
    Ok(())
}

/// Selects the transactions among `$1` that are still open, except those that certainly belong to
/// another database.
const STILL_OPEN: &str = "\
    SELECT x::text FROM pg_catalog.pg_snapshot_xip(pg_catalog.pg_current_snapshot()) x \
    WHERE x::text = ANY ($1) \
    AND NOT EXISTS ( \
        SELECT FROM pg_catalog.pg_locks l \
        JOIN pg_catalog.pg_stat_activity a ON a.pid = l.pid \
        JOIN pg_catalog.pg_database d ON d.datname = pg_catalog.current_database() \
        WHERE l.locktype = 'transactionid' AND l.mode = 'ExclusiveLock' AND l.granted \
        AND l.transactionid = x::xid AND a.datid <> d.oid) \
    AND NOT EXISTS ( \
        SELECT FROM pg_catalog.pg_prepared_xacts p \
        WHERE p.transaction = x::xid AND p.database <> pg_catalog.current_database())";
