//! Prevents captures from blocking writers. If UPDATE and DELETE of a table are published,
//! PostgreSQL refuses them unless the table has a replica identity. A captured table loses its
//! replica identity if the primary key or the index of the identity is dropped, or if the owner
//! sets REPLICA IDENTITY NOTHING.

use tidegate_changelog::LogResult;
use tidegate_sql::DatabaseName;
use tracing::warn;

use super::table_info::TableInfo;
use super::{EVERYTHING, Shared};
use crate::capture_session::CaptureSession;

/// Called after an attempt to capture a table failed. If PostgreSQL refuses UPDATE and DELETE of
/// the table because they are published, removes the table from the publication [`EVERYTHING`].
pub(super) async fn unblock_writers(
    shared: &Shared,
    database: &DatabaseName,
    relation: u32,
) -> LogResult<()> {
    if let Some(owner) = CaptureSession::owner(&shared.logins, database).await?
        && owner.stop_capture(relation).await?
    {
        return Ok(());
    }
    let admin = CaptureSession::admin(&shared.logins, database).await?;
    admin.stop_capture(relation).await.map(drop)
}

impl CaptureSession {
    /// Stops the capture of a table if PostgreSQL refuses its writers. Returns whether writers are
    /// accepted afterwards.
    async fn stop_capture(&self, relation: u32) -> LogResult<bool> {
        self.begin().await?;
        let accepted = self.stop_capture_within(relation).await;
        self.end(accepted).await
    }

    async fn stop_capture_within(&self, relation: u32) -> LogResult<bool> {
        let Some(mut table) = self.table(relation).await? else {
            return Ok(true);
        };
        if !table.refuses_writers() {
            return Ok(true);
        }
        if !table.may_publish {
            return Ok(false);
        }
        let name = &table.name;
        warn!(
            table = name,
            "stopped the capture of a table, because PostgreSQL refused its writers"
        );
        let mut commands = format!("ALTER PUBLICATION \"{EVERYTHING}\" DROP TABLE ONLY {name}; ");
        if let Some(entry) = table.metadata.0.get_mut(&relation) {
            (entry.since, entry.inserts, entry.begun) = (None, None, None);
        }
        commands.push_str(&table.comment());
        self.run(&commands).await?;
        Ok(true)
    }

    /// Whether PostgreSQL refuses UPDATE and DELETE of a table; see [`TableInfo::refuses_writers`].
    pub(super) async fn refuses_writers(&self, relation: u32) -> LogResult<bool> {
        let table = self.table(relation).await?;
        Ok(table.is_some_and(|table| table.refuses_writers()))
    }

    /// Inspects a table. Returns `None` if the table cannot be captured at all, or if the
    /// publications do not exist.
    async fn table(&self, relation: u32) -> LogResult<Option<TableInfo>> {
        use tidegate_changelog::LogError::{Gone, NoTable, Unsupported};
        match TableInfo::of(self, relation).await {
            Ok(table) => Ok(Some(table)),
            Err(Gone | NoTable | Unsupported(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }
}
