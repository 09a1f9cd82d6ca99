//! Places in the feed that a client can come back to.

use std::fmt::{self, Write as _};
use std::str::FromStr;

use tidegate_sql::log::{LogIdentity, LogPosition};

/// A place in a database's feed: behind one change. It means the same on every node, and later
/// places of the same log compare greater, as values and as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Cursor {
    log: u32,
    pub(crate) place: Place,
}

/// A change inside a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Place {
    /// The transaction's commit.
    pub(crate) commit: LogPosition,
    /// Which change of the transaction, from 1; 0 is before the first.
    pub(crate) index: u32,
}

impl Place {
    /// Behind everything that committed before `position`.
    pub(crate) fn before(position: LogPosition) -> Self {
        Self {
            commit: position,
            index: 0,
        }
    }
}

/// The form of the text.
const VERSION: char = '1';
/// The length of the text.
const LENGTH: usize = 1 + 8 + 16 + 8;

/// The text is no cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is no cursor: expected the text that came with an event")]
pub struct NoCursor;

impl Cursor {
    pub(crate) fn new(log: LogIdentity, place: Place) -> Self {
        Self { log: log.0, place }
    }

    /// A place before this one, behind which it comes first.
    #[must_use]
    pub fn before(self) -> Self {
        let mut before = self;
        before.place.index = before.place.index.saturating_sub(1);
        before
    }

    /// Whether it is a place in this log.
    pub(crate) fn is_in(self, log: LogIdentity) -> bool {
        self.log == log.0
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char(VERSION)?;
        let Place { commit, index } = self.place;
        write!(f, "{:08x}{:016x}{index:08x}", self.log, commit.0)
    }
}

impl FromStr for Cursor {
    type Err = NoCursor;

    fn from_str(text: &str) -> Result<Self, NoCursor> {
        let digits = text.strip_prefix(VERSION).ok_or(NoCursor)?;
        let lower = |c: u8| c.is_ascii_digit() || (b'a'..=b'f').contains(&c);
        if text.len() != LENGTH || !digits.bytes().all(lower) {
            return Err(NoCursor);
        }
        let number = |from: usize, to: usize| {
            u64::from_str_radix(&digits[from..to], 16).map_err(|_| NoCursor)
        };
        let half = |from| u32::try_from(number(from, from + 8)?).map_err(|_| NoCursor);
        Ok(Self {
            log: half(0)?,
            place: Place {
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
        Cursor::new(LogIdentity(0xab), Place { commit, index })
    }

    #[test]
    fn texts_are_ordered_as_places_are() {
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
    fn other_texts_are_no_cursors() {
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
            assert_eq!(text.parse::<Cursor>(), Err(NoCursor), "{text}");
        }
    }
}
