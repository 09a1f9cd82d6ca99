//! Retries statements that need locks. Each attempt waits for its lock only a short time, because
//! other sessions that need the table queue after this session.

use std::time::Duration;

use tidegate_changelog::{LogError, LogResult};
use tokio::time::{Instant, sleep};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::readers;
use crate::capture_session::CaptureSession;

/// The shortest and the longest pause between two attempts.
const PAUSE: (Duration, Duration) = (Duration::from_millis(25), Duration::from_millis(400));

/// Statements that wait for locks. They run in a transaction of their own, which is repeated if a
/// lock is not granted in time.
#[derive(Clone, Copy)]
pub(super) enum LockedWork<'a> {
    /// A query and its parameters.
    Rows(&'a str, &'a [&'a (dyn ToSql + Sync)]),
    /// Commands.
    Run(&'a str),
    /// Commands that run only if at most this number of streams is open.
    RunUnlessRead(i64, &'a str),
}

impl CaptureSession {
    /// Runs the work, and retries it until its locks are granted or the deadline passes.
    ///
    /// # Errors
    ///
    /// [`LogError::TimedOut`] if a lock was not granted. Any other error of the work ends the
    /// attempts.
    pub(super) async fn retry_until_locked(
        &self,
        deadline: Instant,
        work: LockedWork<'_>,
    ) -> LogResult<Vec<Row>> {
        let mut pause = PAUSE.0;
        loop {
            let outcome = match self.begin().await {
                Ok(()) => {
                    let done = self.attempt(work).await;
                    self.end(done).await
                }
                Err(error) => self.end(Err(error)).await,
            };
            let timed_out = matches!(outcome, Err(LogError::TimedOut { .. }));
            if !timed_out || Instant::now() + pause > deadline {
                return outcome;
            }
            sleep(pause).await;
            pause = (pause * 2).min(PAUSE.1);
        }
    }

    async fn attempt(&self, work: LockedWork<'_>) -> LogResult<Vec<Row>> {
        match work {
            LockedWork::Rows(query, values) => return self.rows(query, values).await,
            LockedWork::Run(commands) => self.run(commands).await?,
            LockedWork::RunUnlessRead(max, commands) => {
                let rows = self.rows(readers::COUNT, &[]).await?;
                if rows.first().is_some_and(|row| row.get::<_, i64>(0) <= max) {
                    self.run(commands).await?;
                }
            }
        }
        Ok(Vec::new())
    }
}
