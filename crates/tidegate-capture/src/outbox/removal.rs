//! Removes the outbox from a database, at the request of an operator.

use std::time::Duration;

use tidegate_changelog::{LogError, LogResult};
use tidegate_sql::DatabaseName;
use tokio::time::{Instant, sleep};

use super::Outbox;
use super::locked_work::LockedWork;
use super::status::{OutboxReader, OutboxStatus};
use crate::capture_session::CaptureSession;

/// The time limit for terminated processes to end and for locks to be granted.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The result of a removal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutboxRemoval {
    /// The outbox is removed. The value is its state before the removal; `None` if there was no
    /// outbox.
    Done(Option<OutboxStatus>),
    /// These nodes are reading the outbox, so nothing was changed.
    Streaming(Vec<OutboxReader>),
    /// A node started to read during the removal and has created the outbox again.
    Recreated,
}

impl Outbox {
    /// Removes the outbox and its triggers from a database. If nodes read the outbox and
    /// `end_streams` is false, removes nothing. If `end_streams` is true, first ends the sessions
    /// of these nodes, which connect again as soon as they can.
    ///
    /// # Errors
    ///
    /// If the database does not exist, or a login or a statement failed.
    pub async fn remove(
        &self,
        database: &DatabaseName,
        end_streams: bool,
    ) -> LogResult<OutboxRemoval> {
        let Some(status) = self.status(database).await? else {
            return Ok(OutboxRemoval::Done(None));
        };
        let admin = CaptureSession::admin(&self.shared.logins, database).await?;
        if !status.readers.is_empty() {
            if !end_streams {
                return Ok(OutboxRemoval::Streaming(status.readers));
            }
            self.end(database, &admin, &status.readers).await?;
        }
        let deadline = Instant::now() + TIMEOUT;
        // `DROP` drops the schema with the trigger functions, and thereby the triggers, even on
        // tables of other owners.
        admin
            .retry_until_locked(deadline, LockedWork::Run(DROP))
            .await?;
        if self.status(database).await?.is_some() {
            return Ok(OutboxRemoval::Recreated);
        }
        Ok(OutboxRemoval::Done(Some(status)))
    }

    /// Ends the sessions of readers, and waits until they have ended.
    async fn end(
        &self,
        database: &DatabaseName,
        admin: &CaptureSession,
        readers: &[OutboxReader],
    ) -> LogResult<()> {
        let processes: Vec<i32> = readers.iter().map(|reader| reader.process).collect();
        admin.rows(TERMINATE, &[&processes]).await?;
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let status = self.status(database).await?.unwrap_or_default();
            let mut left = status.readers.iter().map(|reader| reader.process);
            let Some(old) = left.find(|process| processes.contains(process)) else {
                return Ok(());
            };
            if Instant::now() > deadline {
                let what = format!("the end of the process {old}");
                return Err(LogError::TimedOut {
                    what,
                    limit: TIMEOUT,
                });
            }
            sleep(Duration::from_millis(50)).await;
        }
    }
}

const DROP: &str = "DROP SCHEMA IF EXISTS tidegate_outbox CASCADE";

const TERMINATE: &str =
    "SELECT pg_catalog.pg_terminate_backend(p) FROM pg_catalog.unnest($1::int4[]) AS p";
