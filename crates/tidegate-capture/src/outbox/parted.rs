//! What the outbox holds of the partitions of a captured table.

use tidegate_changelog::{LogPosition, LogResult};

use super::{number, position};
use crate::actor::Actor;
use crate::partitions::{Book, Entry, Partitions};

/// The table of what is captured.
pub(super) struct Table;

impl Book for Table {
    async fn read(&self, actor: &Actor, relation: u32) -> LogResult<Option<Entry>> {
        let rows = actor.rows(CAPTURED, &[&relation]).await?;
        Ok(rows.first().map(|row| {
            let changed: Option<i64> = row.get(0);
            let partitions: Option<&str> = row.get(1);
            Entry {
                changed: changed.map(position),
                partitions: partitions.and_then(Partitions::parse),
            }
        }))
    }

    async fn now(&self, actor: &Actor) -> LogResult<LogPosition> {
        // Nothing is told there, so that it is a place of its own.
        actor.run("SELECT tidegate_outbox.advance()").await?;
        let rows = actor.rows(STEP, &[]).await?;
        let now = rows.first().map(|row| position(row.get(0)));
        now.ok_or_else(|| super::unreadable("the state of the outbox"))
    }

    async fn write(&self, actor: &Actor, relation: u32, entry: Entry) -> LogResult<()> {
        let partitions = entry.partitions.map(|partitions| partitions.to_text());
        let changed = entry.changed.map(number);
        actor
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
