//! Taking the outbox out of a database, for an operator who wants it gone.

use std::time::Duration;

use tidegate_changelog::{LogError, LogResult};
use tidegate_sql::DatabaseName;
use tokio::time::{Instant, sleep};

use super::Outbox;
use super::retry::Work;
use super::status::{OutboxReader, OutboxStatus};
use crate::actor::Actor;

/// How long processes that were told to end, and locks, may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// What became of a removal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutboxRemoval {
    /// There is none any more; this is what was there.
    Done(Option<OutboxStatus>),
    /// Servers read it; nothing was changed.
    Streaming(Vec<OutboxReader>),
    /// A server came back while it was removed, and has made it anew.
    CameBack,
}

impl Outbox {
    /// Takes the outbox and its triggers out of a database. `end_streams` ends the sessions of
    /// servers that read it before; a server that runs comes back as soon as it can.
    ///
    /// # Errors
    /// The database is not there, or a login or a statement failed.
    pub async fn remove(
        &self,
        database: &DatabaseName,
        end_streams: bool,
    ) -> LogResult<OutboxRemoval> {
        let Some(status) = self.status(database).await? else {
            return Ok(OutboxRemoval::Done(None));
        };
        let admin = Actor::admin(&self.shared.logins, database).await?;
        if !status.readers.is_empty() {
            if !end_streams {
                return Ok(OutboxRemoval::Streaming(status.readers));
            }
            self.end(database, &admin, &status.readers).await?;
        }
        let deadline = Instant::now() + PATIENCE;
        // The triggers go with their functions, whosoever their tables are.
        admin.insist(deadline, Work::Run(DROP)).await?;
        if self.status(database).await?.is_some() {
            return Ok(OutboxRemoval::CameBack);
        }
        Ok(OutboxRemoval::Done(Some(status)))
    }

    /// Ends sessions that read, and waits until they have ended.
    async fn end(
        &self,
        database: &DatabaseName,
        admin: &Actor,
        readers: &[OutboxReader],
    ) -> LogResult<()> {
        let processes: Vec<i32> = readers.iter().map(|reader| reader.process).collect();
        admin.rows(TERMINATE, &[&processes]).await?;
        let deadline = Instant::now() + PATIENCE;
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
                    limit: PATIENCE,
                });
            }
            sleep(Duration::from_millis(50)).await;
        }
    }
}

const DROP: &str = "DROP SCHEMA IF EXISTS tidegate_outbox CASCADE";

const TERMINATE: &str =
    "SELECT pg_catalog.pg_terminate_backend(p) FROM pg_catalog.unnest($1::int4[]) AS p";
