//! Whether JetStream keeps what the reader sends. JetStream acknowledges no message to the bus, so the
//! reader looks at the last message that JetStream has.

use tidegate_changelog::LogPosition;

/// After how many looks without the messages JetStream counts as broken. One look may fall into the
/// time after an interruption.
const MISSES: u32 = 2;

/// What JetStream is known to have of the messages of this node's reader.
#[derive(Debug, Default)]
pub(crate) struct Stored {
    /// JetStream has had all messages up to here, or they were not sent by this reader.
    to: LogPosition,
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

    /// Notes whether JetStream has the messages up to `mark`. Returns whether it counts as broken.
    pub(crate) fn note(&mut self, mark: LogPosition, has: bool) -> bool {
        // Messages that JetStream had may have expired.
        let has = has || mark <= self.to;
        self.misses = if has { 0 } else { self.misses + 1 };
        self.to = if has { self.to.max(mark) } else { self.to };
        self.misses >= MISSES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_that_are_missing_twice_are_a_problem_until_they_are_there() {
        let mut stored = Stored::at(LogPosition(10));
        let looks = [
            // Nothing was sent.
            (10, false, false),
            (10, false, false),
            (10, false, false),
            (20, false, false),
            (30, false, true),
            (40, true, false),
            // What was there has expired.
            (40, false, false),
            (40, false, false),
            (50, false, false),
            (60, true, false),
            (70, false, false),
        ];
        for (mark, has, is_broken) in looks {
            assert_eq!(stored.note(LogPosition(mark), has), is_broken, "{mark}");
        }
    }
}
