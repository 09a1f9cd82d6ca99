//! Numbers of the type `numeric`, with any number of digits, as byte strings. The byte strings have
//! the order of the numbers.
//!
//! The first byte is the class: negative, zero, NaN and so on. For a finite number other than zero,
//! the exponent of the first base-10000 digit follows, and then the digits. For a negative number,
//! the bytes of the exponent and the digits are inverted, and two bytes 0xFF end the digits. Before
//! the inversion, 1 is added to each digit. Therefore every inverted digit is below 0xFFFF, and of
//! two negative numbers with the same first digits, the one with more digits is smaller.

/// The largest number of digits that is read. It is larger than the number of digits that a
/// `numeric` can have (131,072 before the decimal point and 16,383 after it).
const MAX_DIGITS: usize = 200_000;
/// The largest exponent that is read. Only a value of a request can have a larger exponent. A
/// filter with such a value is refused.
const MAX_EXPONENT: u32 = 10_000;

const NEGATIVE_INFINITY: u8 = 0;
const NEGATIVE: u8 = 1;
const ZERO: u8 = 2;
const POSITIVE: u8 = 3;
const INFINITY: u8 = 4;
const NAN: u8 = 5;

/// Reads the binary format (`numeric_send`): the number of base-10000 digits, the weight of the
/// first digit, the sign, the number of digits after the decimal point, the digits. `None` if the
/// bytes are malformed.
pub(super) fn binary(raw: &[u8]) -> Option<Vec<u8>> {
    let (head, digits) = raw.split_first_chunk::<8>()?;
    let field = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
    let negative = match field(4) {
        0 => false,
        0x4000 => true,
        0xC000 => return Some(vec![NAN]),
        0xD000 => return Some(vec![INFINITY]),
        0xF000 => return Some(vec![NEGATIVE_INFINITY]),
        _ => return None,
    };
    let (digits, rest) = digits.as_chunks::<2>();
    if digits.len() != usize::from(field(0)) || !rest.is_empty() {
        return None;
    }
    let digits: Vec<_> = digits
        .iter()
        .map(|digit| u16::from_be_bytes(*digit))
        .collect();
    let weight = i32::from(field(2).cast_signed());
    (!digits.iter().any(|digit| *digit > 9999)).then(|| key(negative, weight, &digits))
}

/// Reads a decimal number with or without an exponent, `NaN` or an infinity. `None` for any other
/// text.
pub(super) fn text(text: &str) -> Option<Vec<u8>> {
    let (negative, number) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    match &*number.to_ascii_lowercase() {
        "nan" if number.len() == text.len() => return Some(vec![NAN]),
        "inf" | "infinity" if negative => return Some(vec![NEGATIVE_INFINITY]),
        "inf" | "infinity" => return Some(vec![INFINITY]),
        _ => {}
    }
    let (number, exponent) = match number.split_once(['e', 'E']) {
        Some((number, exponent)) => (number, exponent.parse::<i32>().ok()?),
        None => (number, 0),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let length = whole.len() + fraction.len();
    if length == 0 || length > MAX_DIGITS || exponent.unsigned_abs() > MAX_EXPONENT {
        return None;
    }
    if !all_digits(whole) || !all_digits(fraction) {
        return None;
    }
    let last = exponent - i32::try_from(fraction.len()).ok()?;
    let digits: Vec<u8> = whole
        .bytes()
        .chain(fraction.bytes())
        .map(|byte| byte - b'0')
        .collect();
    Some(grouped(negative, digits, last))
}

/// The byte string of a number given as decimal digits. The unit of the last digit is 10 to the
/// power `last`.
fn grouped(negative: bool, mut digits: Vec<u8>, last: i32) -> Vec<u8> {
    let zeros = last.rem_euclid(4);
    digits.extend((0..zeros).map(|_| 0));
    let last = (last - zeros) / 4;
    let groups: Vec<u16> = digits
        .rchunks(4)
        .rev()
        .map(|group| {
            group
                .iter()
                .fold(0, |sum, digit| sum * 10 + u16::from(*digit))
        })
        .collect();
    let weight = last + i32::try_from(groups.len()).unwrap_or_default() - 1;
    key(negative, weight, &groups)
}

/// The byte string of a number given as base-10000 digits. The unit of the first digit is 10000 to
/// the power `weight`.
fn key(negative: bool, weight: i32, digits: &[u16]) -> Vec<u8> {
    let Some(first) = digits.iter().position(|digit| *digit != 0) else {
        return vec![ZERO];
    };
    let last = digits
        .iter()
        .rposition(|digit| *digit != 0)
        .unwrap_or(first);
    let weight = weight - i32::try_from(first).unwrap_or_default();
    let mut key = Vec::with_capacity(7 + 2 * (last - first + 1));
    key.push(if negative { NEGATIVE } else { POSITIVE });
    // With the sign bit inverted, the order of the bytes is the order of the exponents.
    let weight = (weight ^ i32::MIN).cast_unsigned();
    if negative {
        key.extend((!weight).to_be_bytes());
        key.extend(
            digits[first..=last]
                .iter()
                .flat_map(|digit| (!(digit + 1)).to_be_bytes()),
        );
        key.extend([0xFF, 0xFF]);
    } else {
        key.extend(weight.to_be_bytes());
        key.extend(
            digits[first..=last]
                .iter()
                .flat_map(|digit| digit.to_be_bytes()),
        );
    }
    key
}

#[cfg(test)]
mod tests {
    use super::text;

    #[test]
    fn keys_are_ordered_as_numbers_are() {
        let ordered = [
            "-Infinity",
            "-1e9000",
            "-10000.0001",
            "-10000",
            "-9999.5",
            "-9999",
            "-1.0001",
            "-1",
            "-0.5",
            "-0.0001",
            "-0.00001",
            "-1e-9000",
            "0",
            "1e-9000",
            "0.00001",
            "0.0001",
            "0.5",
            "1",
            "1.00000001",
            "1.0001",
            "9999",
            "9999.5",
            "10000",
            "10000.0001",
            "10001",
            "1e9000",
            "Infinity",
            "NaN",
        ];
        let keys: Vec<_> = ordered.iter().map(|number| text(number).unwrap()).collect();
        for (at, one) in keys.iter().enumerate() {
            for (beside, other) in keys.iter().enumerate() {
                assert_eq!(
                    one.cmp(other),
                    at.cmp(&beside),
                    "{} {}",
                    ordered[at],
                    ordered[beside]
                );
            }
        }
    }

    #[test]
    fn equal_numbers_have_equal_keys() {
        for (one, other) in [
            ("0", "-0.000"),
            ("1", "1.000"),
            ("+1", "01"),
            ("1e3", "1000"),
            ("12.5e-1", "1.25"),
            ("0.00012", "12e-5"),
            ("123456789e4", "1234567890000"),
            (".5", "0.50"),
            ("5.", "5"),
        ] {
            assert_eq!(text(one), text(other), "{one} {other}");
        }
        for none in [
            "", "-", ".", "1e", "1e+", "0x10", "1_0", "--1", "-nan", "1 2", "1e99999",
        ] {
            assert_eq!(text(none), None, "{none}");
        }
    }
}
