//! Tracks whether JetStream keeps the messages that the reader sends. JetStream acknowledges no
//! message to the bus, so the reader requests the last message that JetStream has.

use tidegate_changelog::LogPosition;

/// The number of checks in a row that must find messages missing before JetStream counts as broken.
/// A single check may come too early after an interruption.
const MISSES: u32 = 2;

/// How far JetStream has stored the messages of this node's reader. Messages that have expired
/// since then count as stored.
#[derive(Debug, Default)]
pub(crate) struct Stored {
    /// JetStream has stored all messages of this reader up to this position.
    to: LogPosition,
    /// The number of checks since JetStream last had all messages.
    misses: u32,
}

impl Stored {
    /// The state of a reader that begins at `start`.
    pub(crate) const fn at(start: LogPosition) -> Self {
        Self {
            to: start,
            misses: 0,
        }
    }

    /// Records whether JetStream has the messages up to `mark`. Returns whether JetStream counts as
    /// broken.
    pub(crate) fn note(&mut self, mark: LogPosition, has: bool) -> bool {
        // Messages up to `self.to` do not count as missing, because JetStream has stored them. They
        // may have expired since then.
        let has = has || mark <= self.to;
        self.misses = if has { 0 } else { self.misses + 1 };
        self.to = if has { self.to.max(mark) } else { self.to };
        self.misses >= MISSES
    }

    /// Whether messages were missing at the last check.
    pub(crate) const fn has_missed(&self) -> bool {
        self.misses > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_that_are_missing_twice_are_a_problem_until_they_are_there() {
        let mut stored = Stored::at(LogPosition(10));
        let looks = [
            // The reader has sent nothing since it began at position 10.
            (10, false, false),
            (10, false, false),
            (10, false, false),
            (20, false, false),
            (30, false, true),
            (40, true, false),
            // The messages were there, and have expired since.
            (40, false, false),
            (40, false, false),
            (50, false, false),
            (60, true, false),
            (70, false, false),
            (70, true, false),
        ];
        for (mark, has, is_broken) in looks {
            assert_eq!(stored.note(LogPosition(mark), has), is_broken, "{mark}");
            assert!(stored.has_missed() || !is_broken, "{mark}");
        }
        assert!(!stored.has_missed());
    }
}
