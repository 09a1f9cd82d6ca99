//! Stores the partitions of captured tables in the outbox.

use tidegate_changelog::{LogPosition, LogResult};

use super::{number, position};
use crate::capture_session::CaptureSession;
use crate::partitions::{PartitionRecord, PartitionStore, Partitions};

/// Stores partitions in the table `tidegate_outbox.captured`.
pub(super) struct Table;

impl PartitionStore for Table {
    async fn read(
        &self,
        session: &CaptureSession,
        relation: u32,
    ) -> LogResult<Option<PartitionRecord>> {
        let rows = session.rows(CAPTURED, &[&relation]).await?;
        Ok(rows.first().map(|row| {
            let changed: Option<i64> = row.get(0);
            let partitions: Option<&str> = row.get(1);
            PartitionRecord {
                changed: changed.map(position),
                partitions: partitions.and_then(Partitions::parse),
            }
        }))
    }

    async fn now(&self, session: &CaptureSession) -> LogResult<LogPosition> {
        // `advance()` assigns positions to all transactions that have committed. `STEP` skips one
        // position and returns the next. So two changes of partitions get different positions even
        // if no transaction committed between them.
        session.run("SELECT tidegate_outbox.advance()").await?;
        let rows = session.rows(STEP, &[]).await?;
        let now = rows.first().map(|row| position(row.get(0)));
        now.ok_or_else(|| super::unreadable("the state of the outbox"))
    }

    async fn write(
        &self,
        session: &CaptureSession,
        relation: u32,
        entry: PartitionRecord,
    ) -> LogResult<()> {
        let partitions = entry.partitions.map(|partitions| partitions.to_text());
        let changed = entry.changed.map(number);
        session
            .rows(NOTE, &[&relation, &partitions, &changed])
            .await?;
        Ok(())
    }
}

const CAPTURED: &str = "\
    SELECT changed, partitions FROM tidegate_outbox.captured WHERE relation = $1";

const STEP: &str = "\
    UPDATE tidegate_outbox.state SET position = position + 1 RETURNING position";

const NOTE: &str = "\
    UPDATE tidegate_outbox.captured SET partitions = $2, changed = $3 WHERE relation = $1";
