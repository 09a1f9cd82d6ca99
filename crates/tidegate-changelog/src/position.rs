//! Positions in a change log.

use std::fmt;
use std::str::FromStr;

/// A position in the log: an LSN (PostgreSQL, "`pg_lsn` Type"), or a number with the same order in
/// a log without LSNs.
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

/// Identifies a log. Positions of another log cannot be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LogIdentity(pub u32);

#[cfg(test)]
mod tests {
    use super::*;

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
