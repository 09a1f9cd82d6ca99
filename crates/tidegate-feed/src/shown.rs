//! Whether others see yet what a transaction did. The log tells of it as soon as its commit is
//! written; PostgreSQL shows it to others an instant later, or much later where the commit waits
//! for a standby (PostgreSQL, "Synchronous Replication"). Who asks in between is answered from
//! before.

use std::time::Duration;

use tidegate_sql::Principal;
use tidegate_sql::log::LogError;
use tokio::time::{Instant, sleep};
use tracing::{debug, warn};

use crate::database::Database;
use crate::question::{Asked, ask};

/// The waits between questions: the first and the longest.
pub(crate) const PAUSE: (Duration, Duration) =
    (Duration::from_millis(2), Duration::from_millis(250));
/// How long the stream waits for one transaction before it is opened again: shorter than the
/// `wal_sender_timeout` of most servers.
const PATIENCE: Duration = Duration::from_secs(20);

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
