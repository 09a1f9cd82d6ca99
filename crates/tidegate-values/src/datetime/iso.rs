//! Writes ISO 8601 texts. They are built on the stack and appended in one piece.

use bytes::BytesMut;

use super::calendar::{Civil, DAY, POSTGRES_DAY_ZERO, SECOND};
use crate::append::number::two;
use crate::append::{Push as _, StackText};
use crate::error::{MalformedValue, Result};

/// An ISO 8601 text that is being built on the stack.
#[derive(Debug, Default)]
pub(super) struct Text(StackText);

impl Text {
    #[inline]
    pub(super) fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    #[inline]
    fn push(&mut self, text: &[u8]) {
        self.0.push(text);
    }

    /// Appends a date as `YYYY-MM-DD`. A year before 1 is written as a year BC (the year 0 as
    /// `0001`), and [`era`](Self::era) appends ` BC`.
    #[inline]
    pub(super) fn date(&mut self, civil: Civil) {
        let year = if civil.year > 0 {
            civil.year
        } else {
            1 - civil.year
        };
        let [month, day] = [civil.month, civil.day].map(pair);
        match usize::try_from(year) {
            Ok(year @ 0..10_000) => {
                let [high, low] = [year / 100, year % 100].map(two);
                self.push(&[high[0], high[1], low[0], low[1]]);
            }
            _ => self.push(itoa::Buffer::new().format(year).as_bytes()),
        }
        self.push(&[b'-', month[0], month[1], b'-', day[0], day[1]]);
    }

    /// Appends ` BC` to a date with a year before 1.
    #[inline]
    pub(super) fn era(&mut self, civil: Civil) {
        if civil.year <= 0 {
            self.push(b" BC");
        }
    }

    /// Appends a time, given in microseconds since midnight, as `HH:MM:SS[.f…]`. PostgreSQL allows
    /// 24:00:00 as the end of a day. Fails for a later time.
    #[inline]
    pub(super) fn time(&mut self, micros: i64) -> Result<()> {
        let micros = u64::try_from(micros)
            .ok()
            .filter(|micros| *micros <= DAY.unsigned_abs());
        let micros = micros.ok_or(MalformedValue)?;
        let (seconds, micros) = (
            micros / SECOND.unsigned_abs(),
            micros % SECOND.unsigned_abs(),
        );
        let [hour, minute, second] = [seconds / 3600, seconds / 60 % 60, seconds % 60]
            .map(u64::cast_signed)
            .map(pair);
        self.push(&[
            hour[0], hour[1], b':', minute[0], minute[1], b':', second[0], second[1],
        ]);
        if micros > 0 {
            let (digits, length) = digits(micros.cast_signed());
            self.push(&digits[..length]);
        }
        Ok(())
    }

    /// Appends a timestamp, given in microseconds since 2000-01-01, as
    /// `YYYY-MM-DDTHH:MM:SS[.f…][Z][ BC]`, with `Z` if `utc` is true.
    #[inline]
    pub(super) fn timestamp(&mut self, micros: i64, utc: bool) -> Result<()> {
        let civil = Civil::from_days(micros.div_euclid(DAY) + POSTGRES_DAY_ZERO);
        self.date(civil);
        self.push(b"T");
        self.time(micros.rem_euclid(DAY))?;
        if utc {
            self.push(b"Z");
        }
        self.era(civil);
        Ok(())
    }

    /// Appends an offset, given in seconds east of UTC, as `±HH:MM[:SS]`.
    pub(super) fn offset(&mut self, east: i32) {
        self.push(if east < 0 { b"-" } else { b"+" });
        let seconds = i64::from(east.unsigned_abs());
        self.push(&pair(seconds / 3600));
        self.push(b":");
        self.push(&pair(seconds / 60 % 60));
        if seconds % 60 != 0 {
            self.push(b":");
            self.push(&pair(seconds % 60));
        }
    }
}

/// Appends the fraction of a second, given in microseconds, with a decimal point and without
/// trailing zeros. Appends nothing if it is 0.
pub(crate) fn fraction(micros: i64, out: &mut BytesMut) {
    if micros != 0 {
        let (digits, length) = digits(micros);
        out.extend_from_slice(&digits[..length]);
    }
}

/// A decimal point and the six digits of `micros`, and the length of this text without trailing
/// zeros.
#[inline]
fn digits(micros: i64) -> ([u8; 7], usize) {
    let [high, middle, low] = [micros / 10_000, micros / 100 % 100, micros % 100].map(pair);
    let digits = [b'.', high[0], high[1], middle[0], middle[1], low[0], low[1]];
    let length = digits
        .iter()
        .rposition(|&digit| digit != b'0')
        .map_or(0, |last| last + 1);
    (digits, length)
}

/// The two digits of a number below 100.
#[inline]
pub(super) fn pair(number: i64) -> [u8; 2] {
    two(usize::try_from(number).unwrap_or(usize::MAX))
}
