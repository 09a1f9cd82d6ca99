//! Which partitions hold the rows of a table. With `publish_via_partition_root` the log tells the
//! changes of rows as those of the root, and leaves out what happens to a partition as a whole
//! (PostgreSQL, "CREATE PUBLICATION"); so the catalog is looked at again and again. No lock is
//! taken on partitions that were there before: nobody waits for a look, and a look for nobody.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::future::Future;

use tidegate_changelog::{LogPosition, LogResult};

use crate::actor::Actor;

/// The partitions that hold a table's rows, by their numbers, each with the number of its file:
/// `TRUNCATE` gives it another one, and so does whatever writes it anew.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Partitions(BTreeMap<u32, u32>);

/// Partitions as they are now.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) partitions: Partitions,
    /// The transaction that touched each of them last, by the lower half of its number.
    touched: BTreeMap<u32, u32>,
}

/// Stands where there are none.
const NONE: &str = ".";

impl Partitions {
    /// Reads what [`Self::to_text`] wrote.
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

    /// A word without quotes and spaces. A file has its table's number until it is written anew.
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

/// What is written down of a captured table's partitions.
#[derive(Debug, Default)]
pub(crate) struct Entry {
    /// Before which position rows came or went with them last.
    pub(crate) changed: Option<LogPosition>,
    pub(crate) partitions: Option<Partitions>,
}

/// Where a source of changes writes down what it has seen of partitions.
pub(crate) trait Book: Sync {
    /// What is written of a table, if it is captured.
    fn read(
        &self,
        actor: &Actor,
        relation: u32,
    ) -> impl Future<Output = LogResult<Option<Entry>>> + Send;

    /// A position behind everything that has come so far.
    fn now(&self, actor: &Actor) -> impl Future<Output = LogResult<LogPosition>> + Send;

    /// Writes something else of a table.
    fn write(
        &self,
        actor: &Actor,
        relation: u32,
        entry: Entry,
    ) -> impl Future<Output = LogResult<()>> + Send;
}

impl Actor {
    /// Looks at the partitions of a captured table; see
    /// [`tidegate_changelog::ChangeLog::partitions`].
    pub(crate) async fn look(
        &self,
        book: &impl Book,
        relation: u32,
        told: &[u32],
    ) -> LogResult<Option<LogPosition>> {
        self.begin().await?;
        let looked = self.look_within(book, relation, told).await;
        self.end(looked).await
    }

    async fn look_within(
        &self,
        book: &impl Book,
        relation: u32,
        told: &[u32],
    ) -> LogResult<Option<LogPosition>> {
        let Some(Entry {
            mut changed,
            partitions: before,
        }) = book.read(self, relation).await?
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
            && self.moved(before, &seen, told).await?
        {
            changed = Some(book.now(self).await?);
        }
        let partitions = Some(seen.partitions);
        let entry = Entry {
            changed,
            partitions,
        };
        book.write(self, relation, entry).await?;
        Ok(changed)
    }

    /// The partitions of a table; nothing when it is not partitioned.
    pub(crate) async fn partitions(&self, relation: u32) -> LogResult<Option<Seen>> {
        let rows = self.rows(PARTITIONS, &[&relation]).await?;
        if rows.is_empty() {
            return Ok(None);
        }
        let mut seen = Seen {
            partitions: Partitions::default(),
            touched: BTreeMap::new(),
        };
        // The first is the table itself.
        for row in rows.iter().filter(|row| row.get(3)) {
            let partition = row.get(0);
            seen.partitions.0.insert(partition, row.get(1));
            let touched: i64 = row.get(2);
            let touched = u32::try_from(touched).unwrap_or_default();
            seen.touched.insert(partition, touched);
        }
        Ok(Some(seen))
    }

    /// Whether rows have come or gone with partitions. What the transactions `told` have emptied
    /// does not count.
    async fn moved(&self, before: &Partitions, now: &Seen, told: &[u32]) -> LogResult<bool> {
        let is_told = |partition| {
            let touched = now.touched.get(partition);
            touched.is_some_and(|touched| told.contains(touched))
        };
        let gone = before.0.iter().any(|(partition, file)| {
            let today = now.partitions.0.get(partition);
            today.is_none_or(|today| today != file && !is_told(partition))
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

/// Whether any of some tables holds rows, or may: what a foreign one holds cannot be seen.
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
