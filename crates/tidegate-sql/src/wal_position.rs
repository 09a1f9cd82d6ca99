//! Positions in the WAL of the primary, and the servers that a statement may read from.

use std::fmt;
use std::str::FromStr;

/// A position in the WAL (PostgreSQL, `pg_lsn`). If a server has replayed the WAL up to the
/// position that follows a commit, reads from this server see the committed changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct WalPosition(pub u64);

/// The error for a text that is no position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid position: expected two hexadecimal numbers such as 16/B374D848")]
pub struct InvalidWalPosition;

impl fmt::Display for WalPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:X}/{:X}", self.0 >> 32, self.0 & 0xffff_ffff)
    }
}

impl FromStr for WalPosition {
    type Err = InvalidWalPosition;

    fn from_str(text: &str) -> Result<Self, InvalidWalPosition> {
        let (high, low) = text.split_once('/').ok_or(InvalidWalPosition)?;
        let half = |digits: &str| {
            // `from_str_radix` accepts a sign, which is refused here.
            let is_number = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
            let number = u32::from_str_radix(digits, 16).ok().filter(|_| is_number);
            number.ok_or(InvalidWalPosition)
        };
        Ok(Self(u64::from(half(high)?) << 32 | u64::from(half(low)?)))
    }
}

/// The servers that a statement may read from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadFrom {
    /// Only the primary.
    #[default]
    Primary,
    /// The primary, or a replica that has replayed the WAL up to `after`. An executor without
    /// replicas uses the primary.
    Replica {
        /// A position that follows all changes that the statement must see.
        after: WalPosition,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_read_as_postgresql_writes_it() {
        for (text, position) in [("0/0", 0), ("16/B374D848", 0x16_B374_D848), ("0/1F", 31)] {
            assert_eq!(text.parse(), Ok(WalPosition(position)));
            assert_eq!(WalPosition(position).to_string(), text);
        }
        for wrong in [
            "",
            "/",
            "0",
            "0/",
            "0/+1",
            "0/G",
            "0/100000000",
            "0/0/0",
            " 0/0",
        ] {
            assert_eq!(
                wrong.parse::<WalPosition>(),
                Err(InvalidWalPosition),
                "{wrong}"
            );
        }
    }
}
