//! Positions in the feed after which a client can resume.

use std::fmt::{self, Write as _};
use std::str::FromStr;

use tidegate_changelog::{Lineage, LogIdentity, LogPosition};

/// A position in a database's feed, after which a client can resume. It is valid on every node. Of
/// two cursors of the same change log, the later cursor compares greater, both as a value and as
/// text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Cursor {
    /// The identity of the change log.
    log: u32,
    pub(crate) position: EventPosition,
}

/// The position of a change in a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct EventPosition {
    /// The position of the transaction's commit.
    pub(crate) commit: LogPosition,
    /// The number of the change in its transaction, from 1. The number 0 stands for the position
    /// before the first change.
    pub(crate) index: u32,
}

impl EventPosition {
    /// The position after everything that committed before `position`.
    pub(crate) fn before(position: LogPosition) -> Self {
        Self {
            commit: position,
            index: 0,
        }
    }

    /// The position in the log directly after the commit; `commit` itself if `index` is 0.
    pub(crate) fn end(self) -> LogPosition {
        LogPosition(self.commit.0.saturating_add(u64::from(self.index > 0)))
    }

    /// Whether all changes of `log` up to this position are also in the log of `lineage`.
    pub(crate) fn is_in(self, lineage: &Lineage, log: LogIdentity) -> bool {
        lineage.contains(log, self.end())
    }
}

/// The version of the text format.
const VERSION: char = '1';
/// The length of the text in characters: version, log, commit, index.
const LENGTH: usize = 1 + 8 + 16 + 8;

/// The error for a text that is not a cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid cursor: expected the `cursor` of an earlier event")]
pub struct InvalidCursor;

impl Cursor {
    pub(crate) fn new(log: LogIdentity, position: EventPosition) -> Self {
        Self {
            log: log.0,
            position,
        }
    }

    /// The cursor directly before the change at this cursor. A client that resumes after the
    /// returned cursor gets the change again.
    #[must_use]
    pub fn before(self) -> Self {
        let mut before = self;
        before.position.index = before.position.index.saturating_sub(1);
        before
    }

    /// The position in the log directly after the commit of the transaction to which the cursor
    /// belongs. If the cursor is before the first change of the transaction, it is the position of
    /// the commit itself.
    pub fn end(self) -> LogPosition {
        self.position.end()
    }

    /// Whether the cursor is a position in the log of `lineage`. A position in an older log also
    /// counts, if the log of `lineage` continues the older log, and both logs have the same
    /// contents before the position.
    pub(crate) fn is_in(self, lineage: &Lineage) -> bool {
        self.position.is_in(lineage, LogIdentity(self.log))
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char(VERSION)?;
        let EventPosition { commit, index } = self.position;
        write!(f, "{:08x}{:016x}{index:08x}", self.log, commit.0)
    }
}

impl FromStr for Cursor {
    type Err = InvalidCursor;

    fn from_str(text: &str) -> Result<Self, InvalidCursor> {
        let digits = text.strip_prefix(VERSION).ok_or(InvalidCursor)?;
        let lower = |c: u8| c.is_ascii_digit() || (b'a'..=b'f').contains(&c);
        if text.len() != LENGTH || !digits.bytes().all(lower) {
            return Err(InvalidCursor);
        }
        let number = |from: usize, to: usize| {
            u64::from_str_radix(&digits[from..to], 16).map_err(|_| InvalidCursor)
        };
        let half = |from| u32::try_from(number(from, from + 8)?).map_err(|_| InvalidCursor);
        Ok(Self {
            log: half(0)?,
            position: EventPosition {
                commit: LogPosition(number(8, 24)?),
                index: half(24)?,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cursor(commit: u64, index: u32) -> Cursor {
        let commit = LogPosition(commit);
        Cursor::new(LogIdentity(0xab), EventPosition { commit, index })
    }

    #[test]
    fn texts_are_ordered_like_positions() {
        let cursors = [
            cursor(9, 9),
            cursor(10, 1),
            cursor(10, 16),
            cursor(0x1_0000_0000, 0),
        ];
        for pair in cursors.windows(2) {
            assert!(pair[0] < pair[1] && pair[0].to_string() < pair[1].to_string());
        }
        for cursor in cursors {
            assert_eq!(cursor.to_string().parse(), Ok(cursor));
        }
    }

    #[test]
    fn other_texts_are_rejected() {
        let good = cursor(1, 1).to_string();
        let upper = good.to_uppercase();
        for text in [
            "",
            "1",
            "x",
            &good[1..],
            &format!("{good}0"),
            &format!("2{}", &good[1..]),
            &upper,
            "1é",
        ] {
            assert_eq!(text.parse::<Cursor>(), Err(InvalidCursor), "{text}");
        }
    }
}
