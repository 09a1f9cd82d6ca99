//! The capture metadata of a database, stored as the comment of its publication.
//!
//! The comment is dropped with the publication, is visible to every node, and changes in the same
//! transaction as the capture. After a first line for human readers, it has one line for each
//! table: `table since identity changed partitions inserts begun`. The first three words are always
//! written. A later word is left out if it and all words after it are `-`.
//!
//! Nodes of an earlier release may read and write the same comment. They ignore additional words at
//! the end of a line, and treat a word that they cannot parse as `-`. Therefore a new word comes
//! last, and the existing words keep their position and form.
//!
//! | word | meaning |
//! | --- | --- |
//! | `table` | the OID of the table |
//! | `since` | the position from which the table is captured without a gap; `-` if no position is known |
//! | `identity` | the replica identity before the service changed it to FULL; otherwise `-` |
//! | `changed` | a position after the last change of partitions that added or removed rows; `-` if there was none |
//! | `partitions` | the partitions as last seen; `-` if the table is not partitioned |
//! | `inserts` | the position from which INSERTs are captured, if that is earlier than `since`; otherwise `-` |
//! | `begun` | the position at which the unfinished capture was begun; `-` if there is none |

use std::collections::BTreeMap;
use std::fmt::Write as _;

use tidegate_changelog::LogPosition;

use crate::partitions::Partitions;

/// The metadata of the tables that the service has changed, by the OID of the table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CaptureMetadata(pub(super) BTreeMap<u32, TableMetadata>);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TableMetadata {
    /// The position from which the table is captured without a gap; `None` if no position is known.
    pub(super) since: Option<LogPosition>,
    /// The position from which INSERTs are captured, if that is earlier than `since`; otherwise
    /// `None`.
    pub(super) inserts: Option<LogPosition>,
    /// The position at which the unfinished capture was begun; `None` if there is none. A node that
    /// is about to finish a capture compares this position with the position at which that capture
    /// was begun. If the positions differ, another node has finished the capture or has begun a new
    /// one.
    pub(super) begun: Option<LogPosition>,
    /// The replica identity that the table had before the service changed it to FULL; `None` if the
    /// service did not change it.
    pub(super) before: Option<ReplicaIdentity>,
    /// A position after the most recent attaching, detaching, dropping or truncating of a partition
    /// with rows; `None` if there was none.
    pub(super) changed: Option<LogPosition>,
    /// The partitions as last seen; `None` if the table is not partitioned.
    pub(super) partitions: Option<Partitions>,
}

impl TableMetadata {
    /// Records that a capture is begun at the position `begun`. Until it is finished, changes may
    /// be missing. With `keeps_inserts`, only UPDATEs and DELETEs may be missing.
    pub(super) fn begin(&mut self, begun: LogPosition, keeps_inserts: bool) {
        let inserts = self.inserts.or(self.since);
        self.inserts = inserts.filter(|_| keeps_inserts);
        (self.since, self.begun) = (None, Some(begun));
    }

    /// The position from which the log has every change of the table, or every INSERT if `changes`
    /// is false. `None` if the position is not known.
    pub(super) fn complete(&self, changes: bool) -> Option<LogPosition> {
        let inserts = self.inserts.filter(|_| !changes);
        let since = inserts.or(self.since);
        since.max(since.and(self.changed))
    }
}

/// The replica identity that a table had before the service changed it to FULL.
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
            let before = match identity.split_at_checked(1)? {
                ("d", "") => Some(ReplicaIdentity::Default),
                ("n", "") => Some(ReplicaIdentity::Nothing),
                ("i", index) => Some(ReplicaIdentity::Index(index.parse().ok()?)),
                _ => None,
            };
            let position = |word: &str| word.parse().ok();
            let entry = TableMetadata {
                since: position(since),
                before,
                changed: words.next().and_then(position),
                partitions: words.next().and_then(Partitions::parse),
                inserts: words.next().and_then(position),
                begun: words.next().and_then(position),
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
            let identity = match entry.before {
                None => "-".to_owned(),
                Some(ReplicaIdentity::Default) => "d".to_owned(),
                Some(ReplicaIdentity::Nothing) => "n".to_owned(),
                Some(ReplicaIdentity::Index(index)) => format!("i{index}"),
            };
            let partitions = entry.partitions.as_ref().map(Partitions::to_text);
            let optional = format!(
                " {} {} {} {}",
                position(entry.changed),
                partitions.as_deref().unwrap_or("-"),
                position(entry.inserts),
                position(entry.begun),
            );
            let (since, optional) = (position(entry.since), optional.trim_end_matches(" -"));
            writeln!(comment, "{table} {since} {identity}{optional}")
                .expect("a String takes everything");
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
            "Tidegate: do not edit\n1 - -\n2 1/2 d\n3 - n\n4 - i77\n5 - - 0/3 8/9,10\n6 - - - .\n7 - - - - 0/4 1/3\n"
        );
        assert_eq!(CaptureMetadata::parse(&comment), metadata);
        assert_eq!(
            CaptureMetadata::parse("not a comment of the service"),
            CaptureMetadata::default()
        );
    }

    // An earlier release reads only the first five words.
    #[test]
    fn new_words_do_not_move_those_of_earlier_releases() {
        let all = TableMetadata {
            since: Some(LogPosition(5)),
            before: Some(ReplicaIdentity::Nothing),
            changed: Some(LogPosition(3)),
            partitions: Partitions::parse("8/9,10"),
            inserts: Some(LogPosition(4)),
            begun: None,
        };
        let without_partitions = TableMetadata {
            changed: None,
            partitions: None,
            ..all.clone()
        };
        let metadata = CaptureMetadata(BTreeMap::from([(1, all), (2, without_partitions)]));
        let comment = metadata.to_comment();
        assert_eq!(
            comment,
            "Tidegate: do not edit\n1 0/5 n 0/3 8/9,10 0/4\n2 0/5 n - - 0/4\n"
        );
        assert_eq!(CaptureMetadata::parse(&comment), metadata);
        assert_eq!(Partitions::parse("-"), None);
        let earlier = CaptureMetadata::parse("1 0/5 n 0/3 8/9,10\n2 0/5 n");
        for (table, entry) in &metadata.0 {
            let entry = TableMetadata {
                inserts: None,
                ..entry.clone()
            };
            assert_eq!(earlier.0.get(table), Some(&entry));
        }
    }
}
