//! What the service changed in a database, kept as the comment of its publication.
//!
//! It is gone with the publication, every node sees it, and it changes in the transaction of the
//! change. A line is `table since identity`: `since` is the position from which the table is
//! captured without a gap (`-` as long as that is not known), `identity` what its replica identity
//! was before the service raised it (`-` when it did not). Behind these a partitioned table has
//! `changed partitions`: its partitions as they were last seen, and the position before which rows
//! last came or went with one of them (`-` when they never did).

use std::collections::BTreeMap;
use std::fmt::Write as _;

use tidegate_changelog::LogPosition;

use crate::partitions::Partitions;

/// The tables that the service has touched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ledger(pub(super) BTreeMap<u32, Entry>);

/// What is known of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) since: Option<LogPosition>,
    pub(super) before: Option<Identity>,
    /// The position before which rows came or went with partitions.
    pub(super) changed: Option<LogPosition>,
    pub(super) partitions: Option<Partitions>,
}

impl Entry {
    /// From where on a reader of the log misses nothing.
    pub(super) fn complete(&self) -> Option<LogPosition> {
        self.since.max(self.since.and(self.changed))
    }
}

/// A replica identity that was put aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Identity {
    Default,
    Nothing,
    /// The index with this number.
    Index(u32),
}

impl Ledger {
    /// Reads a comment; what cannot be read is left out.
    pub(super) fn parse(comment: &str) -> Self {
        let line = |line: &str| {
            let mut words = line.split(' ');
            let table = words.next()?.parse().ok()?;
            let (since, identity) = (words.next()?, words.next()?);
            let before = match identity.split_at_checked(1)? {
                ("d", "") => Some(Identity::Default),
                ("n", "") => Some(Identity::Nothing),
                ("i", index) => Some(Identity::Index(index.parse().ok()?)),
                _ => None,
            };
            let entry = Entry {
                since: since.parse().ok(),
                before,
                changed: words.next().and_then(|word| word.parse().ok()),
                partitions: words.next().and_then(Partitions::parse),
            };
            Some((table, entry))
        };
        Self(comment.lines().filter_map(line).collect())
    }

    /// The comment. It holds nothing that would have to be quoted.
    pub(super) fn to_comment(&self) -> String {
        let mut comment = String::from("Tidegate: do not edit\n");
        for (table, entry) in &self.0 {
            let position = |position: Option<LogPosition>| {
                position.map_or("-".to_owned(), |position| position.to_string())
            };
            let since = position(entry.since);
            let identity = match entry.before {
                None => "-".to_owned(),
                Some(Identity::Default) => "d".to_owned(),
                Some(Identity::Nothing) => "n".to_owned(),
                Some(Identity::Index(index)) => format!("i{index}"),
            };
            write!(comment, "{table} {since} {identity}").expect("a String takes everything");
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
    fn a_ledger_reads_what_it_writes() {
        let entry = |since, before| Entry {
            since,
            before,
            ..Entry::default()
        };
        let parted = |changed, partitions| Entry {
            changed,
            partitions: Partitions::parse(partitions),
            ..Entry::default()
        };
        let ledger = Ledger(BTreeMap::from([
            (1, entry(None, None)),
            (
                2,
                entry(Some(LogPosition(0x1_0000_0002)), Some(Identity::Default)),
            ),
            (3, entry(None, Some(Identity::Nothing))),
            (4, entry(None, Some(Identity::Index(77)))),
            (5, parted(Some(LogPosition(3)), "8/9,10")),
            (6, parted(None, ".")),
        ]));
        let comment = ledger.to_comment();
        assert_eq!(
            comment,
            "Tidegate: do not edit\n1 - -\n2 1/2 d\n3 - n\n4 - i77\n5 - - 0/3 8/9,10\n6 - - - .\n"
        );
        assert_eq!(Ledger::parse(&comment), ledger);
        assert_eq!(Ledger::parse("somebody's words"), Ledger::default());
    }
}
