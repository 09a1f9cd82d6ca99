//! Appends integers, floats and `numeric`.

use bytes::BytesMut;

use super::{Push, StackText};
use crate::error::{MalformedValue, Result};

#[inline]
pub(crate) fn integer<I: itoa::Integer>(value: I, out: &mut BytesMut) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// Appends a number, with zeros before it if it has fewer than `digits` digits. `digits` must be at
/// most 10.
pub(crate) fn padded(value: i64, digits: usize, out: &mut BytesMut) {
    let mut buffer = itoa::Buffer::new();
    let text = buffer.format(value.unsigned_abs());
    if value < 0 {
        out.extend_from_slice(b"-");
    }
    out.extend_from_slice(&b"0000000000"[..digits.saturating_sub(text.len()).min(10)]);
    out.extend_from_slice(text.as_bytes());
}

/// Appends the shortest text that reads back as the same number. NaN and the infinities have
/// PostgreSQL's names. Returns whether the text is a JSON number.
#[inline]
pub(crate) fn float<F: Float>(value: F, out: &mut BytesMut) -> bool {
    let Some(name) = value.name() else {
        let mut buffer = ryu::Buffer::new();
        let text = buffer.format_finite(value);
        out.extend_from_slice(text.strip_suffix(".0").unwrap_or(text).as_bytes());
        return true;
    };
    out.extend_from_slice(name.as_bytes());
    false
}

/// Appends a float as JSON: a number, or a string for NaN and the infinities.
#[inline]
pub(crate) fn float_json<F: Float>(value: F, out: &mut BytesMut) {
    let Some(name) = value.name() else {
        float(value, out);
        return;
    };
    out.extend_from_slice(b"\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\"");
}

/// The two float types.
pub(crate) trait Float: ryu::Float + Copy {
    /// PostgreSQL's name of NaN or an infinity; `None` for a finite number.
    fn name(self) -> Option<&'static str>;
}

macro_rules! float {
    ($type:ty) => {
        impl Float for $type {
            #[inline]
            fn name(self) -> Option<&'static str> {
                if self.is_finite() {
                    None
                } else if self.is_nan() {
                    Some("NaN")
                } else if self > 0.0 {
                    Some("Infinity")
                } else {
                    Some("-Infinity")
                }
            }
        }
    };
}

float!(f32);
float!(f64);

const NEGATIVE: u16 = 0x4000;
const NAN: u16 = 0xC000;
const INFINITY: u16 = 0xD000;
const NEGATIVE_INFINITY: u16 = 0xF000;

/// Appends the exact text of a `numeric` from its binary form (`numeric_send`). The form consists
/// of the number of base-10000 digits, the weight of the first digit, the sign, the number of
/// digits after the decimal point, and the digits.
#[inline]
pub(crate) fn numeric(raw: &[u8], out: &mut BytesMut) -> Result<()> {
    let (head, digits) = raw.split_first_chunk::<8>().ok_or(MalformedValue)?;
    let field = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
    let (count, weight, sign, scale) = (field(0), field(2).cast_signed(), field(4), field(6));
    let name: &[u8] = match sign {
        0 | NEGATIVE => b"",
        NAN => b"NaN",
        INFINITY => b"Infinity",
        NEGATIVE_INFINITY => b"-Infinity",
        _ => return Err(MalformedValue),
    };
    if !name.is_empty() {
        out.extend_from_slice(name);
        return Ok(());
    }
    let (digits, rest) = digits.as_chunks::<2>();
    if digits.len() != usize::from(count) || !rest.is_empty() {
        return Err(MalformedValue);
    }
    if digits.iter().any(|digit| u16::from_be_bytes(*digit) > 9999) {
        return Err(MalformedValue);
    }
    let decimal = Decimal {
        negative: sign == NEGATIVE,
        weight,
        scale,
        digits,
    };
    // The text has at most 58 characters (the sign, 8 groups of 4 digits, the point and 24
    // decimals), so it fits on the stack.
    if weight < 8 && scale <= 24 {
        let mut text = StackText::default();
        decimal.write(&mut text);
        out.extend_from_slice(text.as_bytes());
    } else {
        decimal.write(out);
    }
    Ok(())
}

/// A finite `numeric`.
struct Decimal<'a> {
    negative: bool,
    /// The exponent of the first digit: the digit is multiplied by 10000 to this power.
    weight: i16,
    /// The number of decimal digits after the decimal point.
    scale: u16,
    /// The base-10000 digits, the most significant first, each in big-endian byte order.
    digits: &'a [[u8; 2]],
}

impl Decimal<'_> {
    /// The base-10000 digit at the index `at`; zero if it is not stored. The first digit has the
    /// index 0.
    #[inline]
    fn digit(&self, at: i32) -> u16 {
        let digit = usize::try_from(at).ok().and_then(|at| self.digits.get(at));
        u16::from_be_bytes(digit.copied().unwrap_or_default())
    }

    #[inline]
    fn write(&self, out: &mut impl Push) {
        if self.negative {
            out.push(b"-");
        }
        if self.weight < 0 {
            out.push(b"0");
        } else {
            let digits = four(self.digit(0));
            let zeros = digits[..3]
                .iter()
                .take_while(|&&digit| digit == b'0')
                .count();
            out.push(&digits[zeros..]);
        }
        for at in 1..=i32::from(self.weight) {
            out.push(&four(self.digit(at)));
        }
        if self.scale == 0 {
            return;
        }
        out.push(b".");
        let first = i32::from(self.weight) + 1;
        let groups = i32::from(self.scale.div_ceil(4));
        for at in first..first + groups {
            out.push(&four(self.digit(at)));
        }
        out.cut(usize::from(self.scale.wrapping_neg() % 4));
    }
}

/// The four decimal digits of a base-10000 digit.
#[inline]
fn four(digit: u16) -> [u8; 4] {
    let [high, low] = [digit / 100, digit % 100].map(usize::from).map(two);
    [high[0], high[1], low[0], low[1]]
}

/// The two decimal digits of each number below 100.
const PAIRS: [[u8; 2]; 100] = {
    let digits = b"0123456789";
    let mut pairs = [[0; 2]; 100];
    let mut number = 0;
    while number < 100 {
        pairs[number] = [digits[number / 10], digits[number % 10]];
        number += 1;
    }
    pairs
};

/// The two decimal digits of a number below 100; `??` for a larger number.
#[inline]
pub(crate) fn two(number: usize) -> [u8; 2] {
    PAIRS.get(number).copied().unwrap_or(*b"??")
}
