//! Waits until a transaction is visible to queries. The change log contains a transaction as soon
//! as its commit record is written. The transaction becomes visible to queries a moment later, or
//! much later if the commit waits for a standby (PostgreSQL, "Synchronous Replication"). Until then
//! a query returns the state before the transaction.

use std::time::Duration;

use tidegate_changelog::LogError;
use tokio::time::{Instant, sleep, timeout};
use tracing::{debug, warn};

use crate::catalog_query::{CatalogReader, QueryOutcome, is_true};

/// The first and the longest pause between two checks whether a transaction is visible.
pub(crate) const PAUSE: (Duration, Duration) =
    (Duration::from_millis(2), Duration::from_millis(250));
/// How long the live reader waits until a transaction is visible. After this time it opens the
/// stream again. The time is shorter than the default `wal_sender_timeout`, after which PostgreSQL
/// would close the stream.
const TIMEOUT: Duration = Duration::from_secs(20);

/// The time after which [`wait_for_definition`] checks whether the transaction can have changed the
/// definition. A transaction that is not visible by then probably waits for a standby.
const CHECK_AFTER: Duration = Duration::from_secs(1);

/// Selects whether a transaction is still running and has not changed a table's definition. A
/// statement that changes a table or its policies takes a lock that writers of rows do not take.
/// The transaction holds this lock until the change is visible to others (PostgreSQL, "Explicit
/// Locking").
const LEFT_DEFINITION_UNCHANGED: &str = "\
    WITH held AS (SELECT * FROM pg_catalog.pg_locks) \
    SELECT (EXISTS (SELECT FROM held WHERE locktype = 'transactionid' AND granted \
                   AND mode = 'ExclusiveLock' AND transactionid::text = :transaction::text) \
       AND NOT EXISTS (SELECT FROM held own JOIN held ON held.virtualtransaction = own.virtualtransaction \
                       WHERE own.locktype = 'transactionid' AND own.mode = 'ExclusiveLock' \
                       AND own.granted AND own.transactionid::text = :transaction::text \
                       AND held.locktype = 'relation' AND held.relation = :relation::oid \
                       AND held.mode NOT IN ('AccessShareLock', 'RowShareLock', \
                                             'RowExclusiveLock')))::text";

/// Waits until a transaction's change of a table's definition is visible, before the definition is
/// read. If the transaction cannot have changed the definition, the wait ends after a second,
/// although the transaction is not visible yet. A commit may wait for a standby that is down, and a
/// longer wait here would delay the rows of all tables.
///
/// # Errors
///
/// The errors of [`wait`].
pub(crate) async fn wait_for_definition(
    catalog: &CatalogReader,
    transaction: u32,
    relation: u32,
) -> Result<(), LogError> {
    let visible = wait(catalog, transaction);
    tokio::pin!(visible);
    loop {
        if let Ok(result) = timeout(CHECK_AFTER, &mut visible).await {
            return result;
        }
        let (transaction, relation) = (transaction.to_string(), relation.to_string());
        let queries = [(LEFT_DEFINITION_UNCHANGED, &[&*transaction, &*relation][..])];
        let outcome = catalog.query_snapshot(&[], &queries).await;
        let results = outcome.map(QueryOutcome::rows).unwrap_or_default();
        if results.iter().flatten().any(|row| is_true(row, 0)) {
            debug!(
                transaction,
                relation, "not waiting for a transaction that left the definition unchanged"
            );
            return Ok(());
        }
    }
}

/// Waits until a transaction is visible to queries. Call this function before a query of data that
/// the transaction may have changed.
///
/// # Errors
///
/// [`LogError::Unavailable`] if the transaction does not become visible in time, or if PostgreSQL
/// does not respond. The next stream then returns the transaction again.
pub(crate) async fn wait(catalog: &CatalogReader, transaction: u32) -> Result<(), LogError> {
    let begin = Instant::now();
    let mut pause = PAUSE.0;
    loop {
        let problem = match catalog.query_snapshot(&[transaction], &[]).await {
            Ok(QueryOutcome::Rows(_)) => return Ok(()),
            Ok(QueryOutcome::NotVisibleYet) => None,
            Err(error) => Some(error),
        };
        if begin.elapsed() > TIMEOUT {
            warn!(database = %catalog.database, transaction,
                  "a committed transaction is still not visible; opening the stream again");
            return Err(LogError::Unavailable(match problem {
                Some(error) => Box::new(error),
                None => "a committed transaction is still not visible to queries".into(),
            }));
        }
        debug!(
            transaction,
            ?problem,
            "waiting until a committed transaction is visible"
        );
        sleep(pause).await;
        pause = (pause * 2).min(PAUSE.1);
    }
}
