//! Whether others see yet what a transaction did. The log tells of it as soon as its commit is
//! written; PostgreSQL shows it to others an instant later, or much later where the commit waits
//! for a standby (PostgreSQL, "Synchronous Replication"). Who asks in between is answered from
//! before.

use std::time::Duration;

use tidegate_sql::Principal;
use tidegate_sql::log::LogError;
use tokio::time::{Instant, sleep, timeout};
use tracing::{debug, warn};

use crate::database::Database;
use crate::question::{Asked, ask, is_true};

/// The waits between questions: the first and the longest.
pub(crate) const PAUSE: (Duration, Duration) =
    (Duration::from_millis(2), Duration::from_millis(250));
/// How long the stream waits for one transaction before it is opened again: shorter than the
/// `wal_sender_timeout` of most servers.
const PATIENCE: Duration = Duration::from_secs(20);

/// How long a definition is waited for that the transaction did not change: a commit that takes
/// longer waits for a standby.
const GRACE: Duration = Duration::from_secs(1);

/// Whether a transaction has yet to end and has not changed a table's definition. Whoever changes a
/// table, or its policies, keeps a lock of it that writers of rows do not take, and gives it up only
/// after others see the change (PostgreSQL, "Explicit Locking").
const LEFT_ALONE: &str = "\
    WITH held AS (SELECT * FROM pg_catalog.pg_locks) \
    SELECT (EXISTS (SELECT FROM held WHERE locktype = 'transactionid' AND granted \
                   AND mode = 'ExclusiveLock' AND transactionid::text = :transaction::text) \
       AND NOT EXISTS (SELECT FROM held own JOIN held ON held.virtualtransaction = own.virtualtransaction \
                       WHERE own.locktype = 'transactionid' AND own.mode = 'ExclusiveLock' \
                       AND own.granted AND own.transactionid::text = :transaction::text \
                       AND held.locktype = 'relation' AND held.relation = :relation::oid \
                       AND held.mode NOT IN ('AccessShareLock', 'RowShareLock', \
                                             'RowExclusiveLock')))::text";

/// Waits until others see what a transaction did to the definition of a table, before that is read
/// from PostgreSQL. What it cannot have changed is waited for no longer than a moment: a commit may
/// wait for a standby that is gone, and the rows of all tables are behind it.
///
/// # Errors
/// Those of [`wait`].
pub(crate) async fn defined(
    database: &Database,
    transaction: u32,
    relation: u32,
) -> Result<(), LogError> {
    let waiting = wait(database, transaction);
    tokio::pin!(waiting);
    loop {
        if let Ok(waited) = timeout(GRACE, &mut waiting).await {
            return waited;
        }
        let who = Principal::Catalog(database.name.clone());
        let (transaction, relation) = (transaction.to_string(), relation.to_string());
        let question = [(LEFT_ALONE, &[&*transaction, &*relation][..])];
        let asked = ask(&*database.executor, &who, &[], &question).await;
        let answers = asked.map(Asked::answers).unwrap_or_default();
        if answers.iter().flatten().any(|row| is_true(row, 0)) {
            debug!(
                transaction,
                relation, "a definition that nobody changed is not waited for"
            );
            return Ok(());
        }
    }
}

/// Waits until others see what a transaction did; to be asked for before whatever is read from
/// PostgreSQL about what the transaction may have changed.
///
/// # Errors
/// [`LogError::Unavailable`] when it takes too long or PostgreSQL does not answer: the transaction
/// comes again with the next stream.
pub(crate) async fn wait(database: &Database, transaction: u32) -> Result<(), LogError> {
    let who = Principal::Catalog(database.name.clone());
    let begin = Instant::now();
    let mut pause = PAUSE.0;
    loop {
        let problem = match ask(&*database.executor, &who, &[transaction], &[]).await {
            Ok(Asked::Answers(_)) => return Ok(()),
            Ok(Asked::TooEarly) => None,
            Err(error) => Some(error),
        };
        if begin.elapsed() > PATIENCE {
            warn!(database = %database.name, transaction,
                  "a transaction is in the log and nobody sees yet what it did");
            return Err(LogError::Unavailable(match problem {
                Some(error) => Box::new(error),
                None => "a transaction is in the log and not to be seen".into(),
            }));
        }
        debug!(transaction, ?problem, "waiting until a transaction is seen");
        sleep(pause).await;
        pause = (pause * 2).min(PAUSE.1);
    }
}
