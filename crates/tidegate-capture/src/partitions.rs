//! Tracks which partitions hold the rows of a table. With `publish_via_partition_root` the change
//! log reports changes of rows as changes of the root table. It does not report that a partition
//! was attached, detached, dropped or truncated (PostgreSQL, "CREATE PUBLICATION"), so the catalog
//! is polled. Polling takes no lock on existing partitions and does not wait for locks on them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::future::Future;

use tidegate_changelog::{LogPosition, LogResult};

use crate::capture_session::CaptureSession;

/// The partitions that hold a table's rows: their OIDs and the numbers of their files
/// (`relfilenode`). `TRUNCATE` and commands that rewrite a partition give it a new file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Partitions(BTreeMap<u32, u32>);

/// The partitions of a table as the catalog has them now.
#[derive(Debug)]
pub(crate) struct CurrentPartitions {
    pub(crate) partitions: Partitions,
    /// The lower half of the id of the transaction that last changed each partition
    /// (`pg_class.xmin`).
    touched: BTreeMap<u32, u32>,
}

/// The text form of an empty set of partitions.
const NONE: &str = ".";

impl Partitions {
    /// Parses the result of [`Self::to_text`]; `None` for any other text.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        if text == NONE {
            return Some(Self::default());
        }
        let one = |text: &str| match text.split_once('/') {
            Some((partition, file)) => Some((partition.parse().ok()?, file.parse().ok()?)),
            None => text.parse().ok().map(|both| (both, both)),
        };
        text.split(',').map(one).collect::<Option<_>>().map(Self)
    }

    /// The text form, which has no quotes and no spaces. The number of a partition's file is left
    /// out if it equals the partition's OID, which is usual until the partition is rewritten.
    pub(crate) fn to_text(&self) -> String {
        let mut text = String::new();
        for (partition, file) in &self.0 {
            let comma = if text.is_empty() { "" } else { "," };
            let written = if partition == file {
                write!(text, "{comma}{partition}")
            } else {
                write!(text, "{comma}{partition}/{file}")
            };
            written.expect("a String takes everything");
        }
        if text.is_empty() {
            NONE.clone_into(&mut text);
        }
        text
    }
}

/// The stored state of a captured table's partitions.
#[derive(Debug, Default)]
pub(crate) struct PartitionRecord {
    /// A position after the most recent attaching, detaching, dropping or truncating of a partition
    /// with rows; `None` if there was none.
    pub(crate) changed: Option<LogPosition>,
    pub(crate) partitions: Option<Partitions>,
}

/// Stores the state of partitions: in the comment of a publication, or in a table of the outbox.
pub(crate) trait PartitionStore: Sync {
    /// Reads the stored state of a table; `None` if the table is not captured.
    fn read(
        &self,
        session: &CaptureSession,
        relation: u32,
    ) -> impl Future<Output = LogResult<Option<PartitionRecord>>> + Send;

    /// Returns a position after everything that was committed so far.
    fn now(&self, session: &CaptureSession) -> impl Future<Output = LogResult<LogPosition>> + Send;

    /// Replaces the stored state of a table.
    fn write(
        &self,
        session: &CaptureSession,
        relation: u32,
        entry: PartitionRecord,
    ) -> impl Future<Output = LogResult<()>> + Send;
}

impl CaptureSession {
    /// Checks the partitions of a captured table; see
    /// [`tidegate_changelog::ChangeLog::partitions`]. `reported` has the ids of transactions whose
    /// TRUNCATE the stream has reported.
    pub(crate) async fn check(
        &self,
        store: &impl PartitionStore,
        relation: u32,
        reported: &[u32],
    ) -> LogResult<Option<LogPosition>> {
        self.begin().await?;
        let checked = self.check_within(store, relation, reported).await;
        self.end(checked).await
    }

    async fn check_within(
        &self,
        store: &impl PartitionStore,
        relation: u32,
        reported: &[u32],
    ) -> LogResult<Option<LogPosition>> {
        let Some(PartitionRecord {
            mut changed,
            partitions: before,
        }) = store.read(self, relation).await?
        else {
            return Ok(None);
        };
        let Some(seen) = self.partitions(relation).await? else {
            return Ok(None);
        };
        if before.as_ref() == Some(&seen.partitions) {
            return Ok(changed);
        }
        if let Some(before) = &before
            && self.has_changed_rows(before, &seen, reported).await?
        {
            changed = Some(store.now(self).await?);
        }
        let partitions = Some(seen.partitions);
        let entry = PartitionRecord {
            changed,
            partitions,
        };
        store.write(self, relation, entry).await?;
        Ok(changed)
    }

    /// The partitions of a table; `None` if it is not partitioned.
    pub(crate) async fn partitions(&self, relation: u32) -> LogResult<Option<CurrentPartitions>> {
        let rows = self.rows(PARTITIONS, &[&relation]).await?;
        if rows.is_empty() {
            return Ok(None);
        }
        let mut seen = CurrentPartitions {
            partitions: Partitions::default(),
            touched: BTreeMap::new(),
        };
        // Partitioned tables, such as the table itself in the first row, hold no rows.
        for row in rows.iter().filter(|row| row.get(3)) {
            let partition = row.get(0);
            seen.partitions.0.insert(partition, row.get(1));
            let touched: i64 = row.get(2);
            let touched = u32::try_from(touched).unwrap_or_default();
            seen.touched.insert(partition, touched);
        }
        Ok(Some(seen))
    }

    /// Whether the table gained or lost rows since `before` because partitions were added, removed,
    /// rewritten or truncated. An added partition counts only if it may hold rows. A TRUNCATE by a
    /// transaction in `reported` does not count, because the stream has reported it.
    async fn has_changed_rows(
        &self,
        before: &Partitions,
        now: &CurrentPartitions,
        reported: &[u32],
    ) -> LogResult<bool> {
        let is_reported = |partition| {
            let touched = now.touched.get(partition);
            touched.is_some_and(|touched| reported.contains(touched))
        };
        let gone = before.0.iter().any(|(partition, file)| {
            let today = now.partitions.0.get(partition);
            today.is_none_or(|today| today != file && !is_reported(partition))
        });
        if gone {
            return Ok(true);
        }
        let is_new = |partition: &&u32| !before.0.contains_key(partition);
        let new: Vec<u32> = now.partitions.0.keys().filter(is_new).copied().collect();
        if new.is_empty() {
            return Ok(false);
        }
        let rows = self.rows(HOLD_ROWS, &[&new]).await?;
        Ok(rows.first().is_some_and(|row| row.get(0)))
    }
}

const PARTITIONS: &str = "\
    WITH RECURSIVE tree AS (\
        SELECT c.oid, c.relfilenode, c.xmin, c.relkind \
        FROM pg_catalog.pg_class c WHERE c.oid = $1 AND c.relkind = 'p' \
        UNION ALL \
        SELECT c.oid, c.relfilenode, c.xmin, c.relkind FROM tree t \
        JOIN pg_catalog.pg_inherits i ON i.inhparent = t.oid \
        JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid) \
    SELECT oid, relfilenode, xmin::text::pg_catalog.int8, relkind <> 'p' FROM tree";

/// Selects whether any of these tables may hold rows. A foreign table is assumed to hold rows,
/// because its rows cannot be counted here.
const HOLD_ROWS: &str = "\
    SELECT EXISTS (SELECT FROM pg_catalog.pg_class c WHERE c.oid = ANY ($1) \
                   AND (c.relkind <> 'r' OR pg_catalog.pg_relation_size(c.oid) > 0))";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_read_what_they_write() {
        let some = Partitions(BTreeMap::from([(7, 7), (8, 90), (9, 0)]));
        assert_eq!(some.to_text(), "7,8/90,9/0");
        for partitions in [some, Partitions::default()] {
            assert_eq!(Partitions::parse(&partitions.to_text()), Some(partitions));
        }
        assert_eq!(Partitions::parse("somebody"), None);
    }
}
