//! Finds values that exceed the length or precision of their column. PostgreSQL reports the limit
//! that is exceeded, but not the value (PostgreSQL, "Character Types", "Numeric Types").

use bytes::BytesMut;
use tidegate_catalog::model::Column;
use tidegate_filter::Json;
use tidegate_sql::DatabaseError;
use tidegate_values::parameter::{self, IsNull};
use tidegate_values::{Type, base_type};

/// The size in bytes of the header of variable-length types. `pg_attribute.atttypmod` includes it
/// for some types.
const HEADER: i32 = 4;

/// The kind of a column's limit that a value exceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Overflow {
    Length,
    Precision,
}

impl Overflow {
    /// The kind of limit that an error reports; `None` for any other error.
    pub(super) fn of(rejection: &DatabaseError) -> Option<Self> {
        match (&rejection.place, &*rejection.sqlstate) {
            (None, "22001" | "22026") => Some(Self::Length),
            (None, "22003") => Some(Self::Precision),
            _ => None,
        }
    }

    /// Whether a value exceeds the column's limit of this kind.
    pub(super) fn is_in(self, column: &Column, value: &Json<'_>) -> bool {
        let Some(modifier) = column.modifier else {
            return false;
        };
        let text = || column_text(column, value).unwrap_or_default();
        match (self, base_type(&column.r#type)) {
            (Self::Length, &(Type::VARCHAR | Type::BPCHAR)) => {
                is_longer(&text(), modifier - HEADER)
            }
            (Self::Length, &Type::VARBIT) => bits(&text()) > modifier,
            (Self::Length, &Type::BIT) => {
                let bits = bits(&text());
                bits > 0 && bits != modifier
            }
            (Self::Precision, &Type::NUMERIC) => is_larger(&text(), modifier - HEADER),
            _ => false,
        }
    }
}

/// Whether a text has more than `most` characters. Blanks at the end do not count, because
/// PostgreSQL truncates them.
fn is_longer(text: &str, most: i32) -> bool {
    let most = usize::try_from(most).unwrap_or_default();
    text.chars().skip(most).any(|character| character != ' ')
}

/// The number of bits of a bit string, which is written in binary or hexadecimal digits.
fn bits(text: &str) -> i32 {
    let (digits, each) = match text.as_bytes() {
        [b'x' | b'X', digits @ ..] => (digits, 4),
        [b'b' | b'B', digits @ ..] | digits => (digits, 1),
    };
    i32::try_from(digits.len() * each).unwrap_or(i32::MAX)
}

/// Whether a number has more digits than the precision allows, after rounding to the scale. The
/// upper 16 bits of `modifier` are the precision, and the lowest eleven bits are the signed scale.
fn is_larger(text: &str, modifier: i32) -> bool {
    let precision = modifier >> 16;
    let scale = ((modifier & 0x7ff) ^ 0x400) - 0x400;
    let text = text.trim().trim_start_matches(['+', '-']);
    if text.to_ascii_lowercase().starts_with("inf") {
        return true;
    }
    let (number, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let all = [whole, fraction].concat();
    let digits = all.trim_start_matches('0');
    let (Ok(exponent), false) = (exponent.parse::<i32>(), digits.is_empty()) else {
        return false;
    };
    if !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return false;
    }
    // `here` is the number of digits before the decimal point. `room` is the largest number of such
    // digits that the column allows.
    let zeros = narrow(all.len() - digits.len());
    let here = narrow(whole.len())
        .saturating_sub(zeros)
        .saturating_add(exponent);
    let room = precision - scale;
    here > room || here == room && rounds_up(digits, precision)
}

/// Whether rounding to `precision` digits adds a digit. It does so if all these digits are nines
/// and the next digit rounds up.
fn rounds_up(digits: &str, precision: i32) -> bool {
    let kept = usize::try_from(precision).unwrap_or_default();
    let mut digits = digits.bytes();
    let nines = digits.by_ref().take(kept).all(|digit| digit == b'9');
    nines && digits.next().is_some_and(|digit| digit >= b'5')
}

fn narrow(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

/// The text that is sent to PostgreSQL for a value; `None` for null and for a value that does not
/// fit the column's type.
pub(super) fn column_text(column: &Column, value: &Json<'_>) -> Option<String> {
    let mut text = BytesMut::new();
    let nowhere = String::new;
    let shown = parameter::encode(
        &value.parameter(),
        &column.r#type,
        None,
        &nowhere,
        &mut text,
    );
    (shown == Ok(IsNull::No)).then(|| String::from_utf8_lossy(&text).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn modifier(precision: i32, scale: i32) -> i32 {
        precision << 16 | scale & 0x7ff
    }

    #[test]
    fn numbers_are_rounded_before_they_are_measured() {
        let five_two = modifier(5, 2);
        for fits in [
            "0", "999.99", "-999.994", "0.001e5", "00999", "99999e-2", "NaN", "1e-400", "x",
        ] {
            assert!(!is_larger(fits, five_two), "{fits}");
        }
        for beyond in ["1000", "-1000.00", "999.995", "1e3", "0.01e5", "infinity"] {
            assert!(is_larger(beyond, five_two), "{beyond}");
        }
        // The columns are numeric(2, -3) and numeric(3, 5).
        assert!(!is_larger("99499", modifier(2, -3)));
        assert!(is_larger("99500", modifier(2, -3)));
        assert!(!is_larger("0.00999", modifier(3, 5)));
        assert!(is_larger("0.01", modifier(3, 5)));
    }

    #[test]
    fn blanks_beyond_the_length_are_cut_off() {
        assert!(!is_longer("äöü  ", 3));
        assert!(is_longer("äöü x", 3));
        assert_eq!((bits("101"), bits("b101"), bits("xF")), (3, 3, 4));
    }
}
