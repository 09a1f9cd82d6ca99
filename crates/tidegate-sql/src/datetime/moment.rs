//! A value of a date or time type, read from PostgreSQL's binary or text form and written as
//! ISO 8601 (PostgreSQL, "Date/Time Types").

use bytes::BytesMut;
use postgres_types::{Kind, Type};

use super::calendar::{Civil, DAY, POSTGRES_DAY_ZERO, SECOND};
use super::scan::Scanner;
use crate::codec::number::{self, two};
use crate::codec::{exact, malformed};
use crate::error::Result;

/// The types whose values are moments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MomentType {
    Date,
    Time,
    TimeTz,
    Timestamp,
    TimestampTz,
}

/// A moment, in PostgreSQL's numbers: days or microseconds from 2000-01-01, microseconds from
/// midnight; the extremes are the infinities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    Date(i32),
    Time(i64),
    /// The second number is the offset in seconds east of UTC.
    TimeTz(i64, i32),
    Timestamp(i64),
    TimestampTz(i64),
}

impl MomentType {
    /// The moment type that values of `type` are made of: under arrays, ranges and domains.
    pub(crate) fn of(r#type: &Type) -> Option<Self> {
        Some(match *r#type {
            Type::DATE => Self::Date,
            Type::TIME => Self::Time,
            Type::TIMETZ => Self::TimeTz,
            Type::TIMESTAMP => Self::Timestamp,
            Type::TIMESTAMPTZ => Self::TimestampTz,
            _ => match r#type.kind() {
                Kind::Array(inner)
                | Kind::Range(inner)
                | Kind::Multirange(inner)
                | Kind::Domain(inner) => {
                    return Self::of(inner);
                }
                _ => return None,
            },
        })
    }

    /// Reads the binary form.
    #[inline]
    pub(crate) fn binary(self, raw: &[u8]) -> Result<Moment> {
        Ok(match self {
            Self::Date => Moment::Date(i32::from_be_bytes(exact(raw)?)),
            Self::Time => Moment::Time(i64::from_be_bytes(exact(raw)?)),
            Self::Timestamp => Moment::Timestamp(i64::from_be_bytes(exact(raw)?)),
            Self::TimestampTz => Moment::TimestampTz(i64::from_be_bytes(exact(raw)?)),
            Self::TimeTz => {
                let raw: [u8; 12] = exact(raw)?;
                let (time, west) = raw.split_first_chunk::<8>().ok_or_else(malformed)?;
                let west = i32::from_be_bytes(exact(west)?);
                Moment::TimeTz(
                    i64::from_be_bytes(*time),
                    west.checked_neg().ok_or_else(malformed)?,
                )
            }
        })
    }

    /// Reads the text form under `DateStyle ISO`; `None` for any other text.
    pub(crate) fn text(self, text: &[u8]) -> Option<Moment> {
        let mut scanner = Scanner::new(text);
        let moment = match self {
            Self::Date => match infinity(text) {
                Some(true) => return Some(Moment::Date(i32::MAX)),
                Some(false) => return Some(Moment::Date(i32::MIN)),
                None => Moment::Date(
                    i32::try_from(scanner.iso_date()?.days() - POSTGRES_DAY_ZERO).ok()?,
                ),
            },
            Self::Time => Moment::Time(scanner.iso_time()?),
            Self::TimeTz => Moment::TimeTz(scanner.iso_time()?, scanner.offset()?),
            Self::Timestamp | Self::TimestampTz => self.timestamp(infinity(text), &mut scanner)?,
        };
        scanner.is_empty().then_some(moment)
    }

    /// Reads a timestamp: day, time, offset, era.
    fn timestamp(self, infinity: Option<bool>, scanner: &mut Scanner<'_>) -> Option<Moment> {
        let micros = match infinity {
            Some(positive) => {
                *scanner = Scanner::new(b"");
                if positive { i64::MAX } else { i64::MIN }
            }
            None => {
                let day = scanner.iso_day()?;
                scanner.literal(b' ')?;
                let time = scanner.iso_time()?;
                let offset = if self == Self::TimestampTz {
                    scanner.offset()?
                } else {
                    0
                };
                let days = scanner.iso_era(day)?.days() - POSTGRES_DAY_ZERO;
                let time = time - i64::from(offset) * SECOND;
                days.checked_mul(DAY)?.checked_add(time)?
            }
        };
        Some(if self == Self::TimestampTz {
            Moment::TimestampTz(micros)
        } else {
            Moment::Timestamp(micros)
        })
    }
}

/// Whether the text is `infinity` (true) or `-infinity` (false).
fn infinity(text: &[u8]) -> Option<bool> {
    match text {
        b"infinity" => Some(true),
        b"-infinity" => Some(false),
        _ => None,
    }
}

impl Moment {
    /// Appends the text that JSON shows, without quotes.
    #[inline]
    pub(crate) fn write(self, out: &mut BytesMut) -> Result<()> {
        if let Some(name) = self.infinity() {
            out.extend_from_slice(name.as_bytes());
            return Ok(());
        }
        match self {
            Self::Date(days) => {
                let civil = Civil::from_days(i64::from(days) + POSTGRES_DAY_ZERO);
                date(civil, out);
                era(civil, out);
            }
            Self::Time(micros) => time(micros, out)?,
            Self::TimeTz(micros, east) => {
                time(micros, out)?;
                offset(east, out);
            }
            Self::Timestamp(micros) => timestamp(micros, b"", out)?,
            Self::TimestampTz(micros) => timestamp(micros, b"Z", out)?,
        }
        Ok(())
    }

    /// The name of a moment that is no point in time.
    #[inline]
    pub(crate) fn infinity(self) -> Option<&'static str> {
        match self {
            Self::Date(i32::MAX) | Self::Timestamp(i64::MAX) | Self::TimestampTz(i64::MAX) => {
                Some("infinity")
            }
            Self::Date(i32::MIN) | Self::Timestamp(i64::MIN) | Self::TimestampTz(i64::MIN) => {
                Some("-infinity")
            }
            _ => None,
        }
    }
}

/// Appends `YYYY-MM-DD`; years before 1 count backwards from 1 BC.
#[inline]
fn date(civil: Civil, out: &mut BytesMut) {
    let year = if civil.year > 0 {
        civil.year
    } else {
        1 - civil.year
    };
    match u16::try_from(year) {
        Ok(year @ 0..10_000) => {
            let [high, low] = [year / 100, year % 100].map(two);
            out.extend_from_slice(&[high[0], high[1], low[0], low[1]]);
        }
        _ => number::integer(year, out),
    }
    let [month, day] = [civil.month, civil.day].map(pair);
    out.extend_from_slice(&[b'-', month[0], month[1], b'-', day[0], day[1]]);
}

/// Appends the era of a year before 1.
#[inline]
fn era(civil: Civil, out: &mut BytesMut) {
    if civil.year <= 0 {
        out.extend_from_slice(b" BC");
    }
}

/// Appends `HH:MM:SS[.f…]`; PostgreSQL's day may end with 24:00:00.
#[inline]
fn time(micros: i64, out: &mut BytesMut) -> Result<()> {
    if !(0..=DAY).contains(&micros) {
        return Err(malformed());
    }
    let seconds = micros / SECOND;
    let [hour, minute, second] = [seconds / 3600, seconds / 60 % 60, seconds % 60].map(pair);
    out.extend_from_slice(&[
        hour[0], hour[1], b':', minute[0], minute[1], b':', second[0], second[1],
    ]);
    fraction(micros % SECOND, out);
    Ok(())
}

/// Appends a point and the digits of so many microseconds, without trailing zeros; nothing for 0.
#[inline]
pub(crate) fn fraction(micros: i64, out: &mut BytesMut) {
    if micros == 0 {
        return;
    }
    let [high, middle, low] = [micros / 10_000, micros / 100 % 100, micros % 100].map(pair);
    let digits = [b'.', high[0], high[1], middle[0], middle[1], low[0], low[1]];
    let length = digits
        .iter()
        .rposition(|&digit| digit != b'0')
        .map_or(0, |last| last + 1);
    out.extend_from_slice(&digits[..length]);
}

/// Appends `YYYY-MM-DDTHH:MM:SS[.f…]`, the zone and the era.
#[inline]
fn timestamp(micros: i64, zone: &[u8], out: &mut BytesMut) -> Result<()> {
    let civil = Civil::from_days(micros.div_euclid(DAY) + POSTGRES_DAY_ZERO);
    date(civil, out);
    out.extend_from_slice(b"T");
    time(micros.rem_euclid(DAY), out)?;
    out.extend_from_slice(zone);
    era(civil, out);
    Ok(())
}

/// Appends `±HH:MM[:SS]`.
fn offset(east: i32, out: &mut BytesMut) {
    out.extend_from_slice(if east < 0 { b"-" } else { b"+" });
    let seconds = i64::from(east.unsigned_abs());
    number::padded(seconds / 3600, 2, out);
    out.extend_from_slice(b":");
    out.extend_from_slice(&pair(seconds / 60 % 60));
    if seconds % 60 != 0 {
        out.extend_from_slice(b":");
        out.extend_from_slice(&pair(seconds % 60));
    }
}

/// The two digits of a number below 100.
#[inline]
pub(crate) fn pair(number: i64) -> [u8; 2] {
    two(u16::try_from(number).unwrap_or_default())
}
