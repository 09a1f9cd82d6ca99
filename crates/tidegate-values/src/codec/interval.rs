//! Intervals, which have months, days and microseconds, each with its own sign.

use bytes::BytesMut;

use crate::append::number;
use crate::binary_reader::BinaryReader;
use crate::datetime::{Scanner, fraction};
use crate::error::Result;

const SECOND: i64 = 1_000_000;

/// An interval as PostgreSQL stores it. The interval is infinite if all three fields have the
/// lowest value of their type, or all have the highest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interval {
    /// The number of months, which may be negative.
    pub months: i32,
    /// The number of days, which may be negative.
    pub days: i32,
    /// The number of microseconds, which may be negative.
    pub micros: i64,
}

/// Appends the JSON form of a binary value (`interval_send`).
pub(super) fn binary(raw: &[u8], out: &mut BytesMut) -> Result<()> {
    Interval::binary(raw)?.write(out);
    Ok(())
}

/// Appends the JSON form of a text in `IntervalStyle postgres`. Returns `None` for any other text.
pub(super) fn text(text: &[u8], out: &mut BytesMut) -> Option<()> {
    Interval::text(text)?.write(out);
    Some(())
}

impl Interval {
    /// Reads the binary form (`interval_send`).
    ///
    /// # Errors
    /// [`MalformedValue`](crate::MalformedValue) if the bytes are not an interval.
    pub fn binary(raw: &[u8]) -> Result<Self> {
        let mut reader = BinaryReader::new(raw);
        let micros = reader.i64()?;
        let (days, months) = (reader.i32()?, reader.i32()?);
        reader.end()?;
        Ok(Self {
            months,
            days,
            micros,
        })
    }

    /// Reads a text in `IntervalStyle postgres`; `None` for any other text.
    pub fn text(text: &[u8]) -> Option<Self> {
        match text {
            b"infinity" => Some(Self {
                months: i32::MAX,
                days: i32::MAX,
                micros: i64::MAX,
            }),
            b"-infinity" => Some(Self {
                months: i32::MIN,
                days: i32::MIN,
                micros: i64::MIN,
            }),
            _ => parse(text),
        }
    }

    fn write(self, out: &mut BytesMut) {
        match self {
            Self {
                months: i32::MAX,
                days: i32::MAX,
                micros: i64::MAX,
            } => {
                out.extend_from_slice(b"\"infinity\"");
                return;
            }
            Self {
                months: i32::MIN,
                days: i32::MIN,
                micros: i64::MIN,
            } => {
                out.extend_from_slice(b"\"-infinity\"");
                return;
            }
            _ => {}
        }
        let seconds = self.micros / SECOND;
        for (prefix, value) in [
            (&b"{\"y\":"[..], i64::from(self.months / 12)),
            (b",\"m\":", i64::from(self.months % 12)),
            (b",\"d\":", i64::from(self.days)),
            (b",\"h\":", seconds / 3600),
            (b",\"i\":", seconds / 60 % 60),
        ] {
            out.extend_from_slice(prefix);
            number::integer(value, out);
        }
        out.extend_from_slice(b",\"s\":");
        if self.micros < 0 && self.micros % (60 * SECOND) != 0 {
            out.extend_from_slice(b"-");
        }
        number::integer((seconds % 60).unsigned_abs(), out);
        fraction((self.micros % SECOND).abs(), out);
        out.extend_from_slice(b"}");
    }
}

/// Parses a text such as `1 year -2 mons 3 days -04:05:06.789`; `None` for any other text.
fn parse(text: &[u8]) -> Option<Interval> {
    let mut interval = Interval::default();
    let mut scanner = Scanner::new(text);
    while !scanner.is_empty() {
        let sign = scanner.sign().unwrap_or(1);
        let (number, _) = scanner.digits(1, 18)?;
        if scanner.literal(b':').is_some() {
            let (minutes, _) = scanner.digits(2, 2)?;
            scanner.literal(b':')?;
            let (seconds, _) = scanner.digits(2, 2)?;
            let seconds = number
                .checked_mul(3600)?
                .checked_add(minutes * 60 + seconds)?;
            let micros = seconds
                .checked_mul(SECOND)?
                .checked_add(scanner.fraction())?;
            interval.micros = micros * sign;
            return scanner.is_empty().then_some(interval);
        }
        scanner.literal(b' ')?;
        let number = i32::try_from(number * sign).ok()?;
        match scanner.run(|byte| byte.is_ascii_alphabetic()) {
            b"year" | b"years" => {
                interval.months = interval.months.checked_add(number.checked_mul(12)?)?;
            }
            b"mon" | b"mons" => interval.months = interval.months.checked_add(number)?,
            b"day" | b"days" => interval.days = number,
            _ => return None,
        }
        let _ = scanner.literal(b' ');
    }
    Some(interval)
}
