//! Compares integers with decimal numbers that may be fractional or beyond 64 bits.

use std::cmp::Ordering;
use std::collections::HashSet;

use super::datum::Datum;
use super::{List, MatchNode, Operand};
use crate::operator::Operator;

/// The largest number of digits that is read. A filter is refused if a number has more digits, or
/// an exponent above [`MAX_EXPONENT`].
const MAX_DIGITS: usize = 5_000;
const MAX_EXPONENT: usize = 10_000;
/// The number of digits of the largest 64-bit integer.
const I64_DIGITS: usize = 19;

/// The integers around a decimal number: the largest integer not above it, and the smallest integer
/// not below it. For a number beyond 64 bits, the fields only show whether the number is above or
/// below all 64-bit integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    floor: i128,
    ceiling: i128,
}

impl Bounds {
    /// Reads a decimal number with or without an exponent. `None` for any other text.
    pub(super) fn of(text: &str) -> Option<Self> {
        let (negative, number) = match text.as_bytes().first()? {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (false, text),
        };
        let (number, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
        let exponent: i32 = exponent.parse().ok()?;
        let shift = usize::try_from(exponent.unsigned_abs()).ok()?;
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let digits = format!("{whole}{fraction}");
        let fits = (1..=MAX_DIGITS).contains(&digits.len()) && shift <= MAX_EXPONENT;
        if !fits || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
            return None;
        }
        // The number of digits before the decimal point. `None` if zeros are missing between the
        // point and the first digit, as in `1e-3`.
        let point = if exponent < 0 {
            whole.len().checked_sub(shift)
        } else {
            Some(whole.len() + shift)
        };
        let split = point.unwrap_or_default();
        let front: String = digits
            .bytes()
            .chain(std::iter::repeat(b'0'))
            .take(split)
            .map(char::from)
            .collect();
        let fraction = digits.get(split.min(digits.len())..).unwrap_or_default();
        let is_whole = fraction.bytes().all(|digit| digit == b'0');
        let front = front.trim_start_matches('0');
        let magnitude = match front.len() {
            0 => 0,
            1..=I64_DIGITS => front.parse::<i128>().ok()?,
            _ => i128::MAX / 2,
        };
        let outer = magnitude + i128::from(!is_whole);
        Some(if negative {
            Self {
                floor: -outer,
                ceiling: -magnitude,
            }
        } else {
            Self {
                floor: magnitude,
                ceiling: outer,
            }
        })
    }

    /// The number itself if it is a 64-bit integer; otherwise `None`.
    pub(super) fn integer(self) -> Option<i64> {
        i64::try_from(self.floor)
            .ok()
            .filter(|_| self.floor == self.ceiling)
    }

    /// Compiles the comparison of an integer column with the number.
    pub(super) fn compare(self, operand: Operand, operator: Operator) -> MatchNode {
        // Each comparison becomes a test of the column against the integer `last`. If `above` is
        // true, the test is whether the column is greater than `last`, otherwise whether it is at
        // most `last`.
        let (last, above) = match operator {
            Operator::Gt => (self.floor, true),
            Operator::Gte => (self.ceiling - 1, true),
            Operator::Lt => (self.ceiling - 1, false),
            _ => (self.floor, false),
        };
        let operator = if above { Operator::Gt } else { Operator::Lte };
        match i64::try_from(last) {
            Ok(last) => MatchNode::Compare(operand, operator, Datum::Int(last)),
            Err(_) => always(operand, above == (last.cmp(&0) == Ordering::Less)),
        }
    }
}

/// A node whose result is the boolean `negated` for every value of the column, and unknown for
/// NULL.
fn always(operand: Operand, negated: bool) -> MatchNode {
    let list = List {
        values: HashSet::new(),
        has_null: false,
        negated,
    };
    MatchNode::In(operand, Box::new(list))
}

#[cfg(test)]
mod tests {
    use super::Bounds;

    #[test]
    fn bounds_are_the_whole_numbers_around() {
        for (text, floor, ceiling) in [
            ("4.5", 4, 5),
            ("-4.5", -5, -4),
            ("4.0", 4, 4),
            ("0.5", 0, 1),
            (".5", 0, 1),
            ("-.5", -1, 0),
            ("5.", 5, 5),
            ("-0.0", 0, 0),
            ("1.5e1", 15, 15),
            ("1.25e1", 12, 13),
            ("125e-1", 12, 13),
            ("1e-3", 0, 1),
            ("0e-3", 0, 0),
            ("007", 7, 7),
            ("+7", 7, 7),
            ("9223372036854775808", 1 << 63, 1 << 63),
        ] {
            let expected = Bounds { floor, ceiling };
            assert_eq!(Bounds::of(text), Some(expected), "{text}");
        }
        assert!(Bounds::of("1e400").unwrap().floor > i128::from(i64::MAX));
        for text in ["", ".", "x", "1x", "1e", "NaN", "1e99999"] {
            assert_eq!(Bounds::of(text), None, "{text}");
        }
    }
}
