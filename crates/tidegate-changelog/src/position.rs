//! Positions in a change log.

use std::fmt;
use std::str::FromStr;

/// A position in a change log: an LSN (PostgreSQL, "`pg_lsn` Type"), or in a log without LSNs a
/// number that increases in the same way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LogPosition(pub u64);

impl fmt::Display for LogPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:X}/{:X}", self.0 >> 32, self.0 & 0xffff_ffff)
    }
}

impl FromStr for LogPosition {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (high, low) = text.split_once('/').ok_or(())?;
        let half = |digits: &str| u32::from_str_radix(digits, 16).map_err(|_| ());
        Ok(Self(u64::from(half(high)?) << 32 | u64::from(half(low)?)))
    }
}

/// Identifies a change log. Positions of different logs cannot be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LogIdentity(pub u32);

/// A change log, with the logs that it continues. After a standby was promoted, its log continues
/// the log of the former primary. Changes before the promotion are in both logs, at the same
/// positions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lineage {
    /// The log.
    pub log: LogIdentity,
    /// The logs that this log continues, each with the position up to which both logs have the same
    /// contents.
    pub ancestors: Vec<(LogIdentity, LogPosition)>,
}

impl Lineage {
    /// The lineage of a log that continues no other log.
    pub fn new(log: LogIdentity) -> Self {
        Self {
            log,
            ancestors: Vec::new(),
        }
    }

    /// Whether everything that `log` contains before `position` is in this log too.
    pub fn contains(&self, log: LogIdentity, position: LogPosition) -> bool {
        let mut ancestors = self.ancestors.iter();
        log == self.log || ancestors.any(|(ancestor, end)| *ancestor == log && position <= *end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_contains_its_ancestors_up_to_where_they_part() {
        let (first, second) = (LogIdentity(1), LogIdentity(2));
        let mut lineage = Lineage::new(LogIdentity(3));
        lineage.ancestors = vec![(first, LogPosition(10)), (second, LogPosition(20))];
        for (log, position, contained) in [
            (first, 10, true),
            (first, 11, false),
            (second, 20, true),
            (second, 21, false),
            (LogIdentity(3), 30, true),
            (LogIdentity(4), 0, false),
        ] {
            let position = LogPosition(position);
            assert_eq!(
                lineage.contains(log, position),
                contained,
                "{log:?} {position}"
            );
        }
    }

    #[test]
    fn a_position_reads_what_it_writes() {
        let position = LogPosition(0x16_B374_D848);
        assert_eq!(position.to_string(), "16/B374D848");
        assert_eq!("16/B374D848".parse(), Ok(position));
        for wrong in ["", "16", "16/", "/1", "16/G", "1/123456789"] {
            assert_eq!(LogPosition::from_str(wrong), Err(()), "{wrong}");
        }
    }
}
