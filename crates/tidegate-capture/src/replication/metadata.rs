//! The capture metadata of a database, stored as the comment of its publication.
//!
//! The comment is dropped with the publication, is visible to every node, and changes in the same
//! transaction as the capture. After a first line for human readers, it has one line for each
//! table: `table since identity`, and for a partitioned table
//! `table since identity changed partitions`.
//!
//! | word | meaning |
//! | --- | --- |
//! | `table` | the OID of the table |
//! | `since` | the position from which the table is captured without a gap. While a capture is not finished: `-` and the position at which it began. `-` alone: no position is known. If INSERTs are captured from an earlier position on, a comma and that position follow |
//! | `identity` | the replica identity before the service raised it; `-` if it was not raised |
//! | `changed` | a position after the last change of partitions that added or removed rows; `-` if there was none |
//! | `partitions` | the partitions as last seen |

use std::collections::BTreeMap;
use std::fmt::Write as _;

use tidegate_changelog::LogPosition;

use crate::partitions::Partitions;

/// The tables that the service has changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CaptureMetadata(pub(super) BTreeMap<u32, TableMetadata>);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TableMetadata {
    pub(super) since: Option<LogPosition>,
    /// The position from which INSERTs are captured, if that is earlier than `since`.
    pub(super) inserts: Option<LogPosition>,
    /// The position at which the capture was begun that is not finished yet. Nodes that capture the
    /// table at the same time find out by it whether they finish the same capture.
    pub(super) begun: Option<LogPosition>,
    /// The replica identity before the service raised it; `None` if the service did not.
    pub(super) before: Option<ReplicaIdentity>,
    /// A position after the last change of partitions by which the table gained or lost rows;
    /// `None` if there was none.
    pub(super) changed: Option<LogPosition>,
    pub(super) partitions: Option<Partitions>,
}

impl TableMetadata {
    /// Records that changes may be missing until the capture that is begun at `begun` is finished;
    /// with `keeps_inserts`, none but UPDATEs and DELETEs.
    pub(super) fn begin(&mut self, begun: LogPosition, keeps_inserts: bool) {
        let inserts = self.inserts.or(self.since);
        self.inserts = inserts.filter(|_| keeps_inserts);
        (self.since, self.begun) = (None, Some(begun));
    }

    /// The position from which on the log has every change of the table, or without `changes` every
    /// INSERT; `None` if unknown.
    pub(super) fn complete(&self, changes: bool) -> Option<LogPosition> {
        let inserts = self.inserts.filter(|_| !changes);
        let since = inserts.or(self.since);
        since.max(since.and(self.changed))
    }
}

/// The replica identity of a table before the service raised it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReplicaIdentity {
    Default,
    Nothing,
    /// The index with this OID.
    Index(u32),
}

impl CaptureMetadata {
    /// Parses a comment. Invalid lines are skipped.
    pub(super) fn parse(comment: &str) -> Self {
        let line = |line: &str| {
            let mut words = line.split(' ');
            let table = words.next()?.parse().ok()?;
            let (since, identity) = (words.next()?, words.next()?);
            let (since, inserts) = match since.split_once(',') {
                Some((since, inserts)) => (since, inserts.parse().ok()),
                None => (since, None),
            };
            let before = match identity.split_at_checked(1)? {
                ("d", "") => Some(ReplicaIdentity::Default),
                ("n", "") => Some(ReplicaIdentity::Nothing),
                ("i", index) => Some(ReplicaIdentity::Index(index.parse().ok()?)),
                _ => None,
            };
            let entry = TableMetadata {
                since: since.parse().ok(),
                inserts,
                begun: since.strip_prefix('-').and_then(|at| at.parse().ok()),
                before,
                changed: words.next().and_then(|word| word.parse().ok()),
                partitions: words.next().and_then(Partitions::parse),
            };
            Some((table, entry))
        };
        Self(comment.lines().filter_map(line).collect())
    }

    /// Writes the comment. It contains no character that must be quoted.
    pub(super) fn to_comment(&self) -> String {
        let mut comment = String::from("Tidegate: do not edit\n");
        for (table, entry) in &self.0 {
            let position = |position: Option<LogPosition>| {
                position.map_or("-".to_owned(), |position| position.to_string())
            };
            let since = match (entry.since, entry.begun) {
                (None, Some(begun)) => format!("-{begun}"),
                (since, _) => position(since),
            };
            let identity = match entry.before {
                None => "-".to_owned(),
                Some(ReplicaIdentity::Default) => "d".to_owned(),
                Some(ReplicaIdentity::Nothing) => "n".to_owned(),
                Some(ReplicaIdentity::Index(index)) => format!("i{index}"),
            };
            let inserts = entry.inserts.map(|inserts| format!(",{inserts}"));
            let inserts = inserts.unwrap_or_default();
            write!(comment, "{table} {since}{inserts} {identity}")
                .expect("a String takes everything");
            if let Some(partitions) = &entry.partitions {
                let (changed, partitions) = (position(entry.changed), partitions.to_text());
                write!(comment, " {changed} {partitions}").expect("a String takes everything");
            }
            comment.push('\n');
        }
        comment
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_reads_what_it_writes() {
        let entry = |since, before| TableMetadata {
            since,
            before,
            ..TableMetadata::default()
        };
        let parted = |changed, partitions| TableMetadata {
            changed,
            partitions: Partitions::parse(partitions),
            ..TableMetadata::default()
        };
        let metadata = CaptureMetadata(BTreeMap::from([
            (1, entry(None, None)),
            (
                2,
                entry(
                    Some(LogPosition(0x1_0000_0002)),
                    Some(ReplicaIdentity::Default),
                ),
            ),
            (3, entry(None, Some(ReplicaIdentity::Nothing))),
            (4, entry(None, Some(ReplicaIdentity::Index(77)))),
            (5, parted(Some(LogPosition(3)), "8/9,10")),
            (6, parted(None, ".")),
            (
                7,
                TableMetadata {
                    begun: Some(LogPosition(0x1_0000_0003)),
                    inserts: Some(LogPosition(4)),
                    ..TableMetadata::default()
                },
            ),
        ]));
        let comment = metadata.to_comment();
        assert_eq!(
            comment,
            "Tidegate: do not edit\n1 - -\n2 1/2 d\n3 - n\n4 - i77\n5 - - 0/3 8/9,10\n6 - - - .\n7 -1/3,0/4 -\n"
        );
        assert_eq!(CaptureMetadata::parse(&comment), metadata);
        assert_eq!(
            CaptureMetadata::parse("not a comment of the service"),
            CaptureMetadata::default()
        );
    }
}
