//! Values of date and time types: read from PostgreSQL's binary or text format and written as ISO
//! 8601 (PostgreSQL, "Date/Time Types").

use bytes::BytesMut;
use postgres_types::{Kind, Type};

use super::calendar::{Civil, DAY, POSTGRES_DAY_ZERO, SECOND};
use super::iso::Text;
use super::scan::Scanner;
use crate::binary_reader::exact;
use crate::error::{MalformedValue, Result};

/// The limit of an offset from UTC, in seconds. PostgreSQL accepts only offsets below 16 hours.
pub(super) const MAX_OFFSET: i32 = 16 * 3600;

/// The date and time types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MomentType {
    /// `date`
    Date,
    /// `time`
    Time,
    /// `timetz`
    TimeTz,
    /// `timestamp`
    Timestamp,
    /// `timestamptz`
    TimestampTz,
}

/// A value of a date or time type in PostgreSQL's representation. Dates are days and timestamps are
/// microseconds since 2000-01-01; times are microseconds since midnight. The lowest and the highest
/// number of a date or timestamp are the infinities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// The days since 2000-01-01.
    Date(i32),
    /// The microseconds since midnight.
    Time(i64),
    /// The microseconds since midnight, and the offset in seconds east of UTC.
    TimeTz(i64, i32),
    /// The microseconds since 2000-01-01, without a zone.
    Timestamp(i64),
    /// The microseconds since 2000-01-01 in UTC.
    TimestampTz(i64),
}

impl MomentType {
    /// The date or time type for `type`. An array, range, multirange or domain has the type of its
    /// elements, bounds or base type. `None` for other types.
    pub fn of(r#type: &Type) -> Option<Self> {
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

    /// Reads a value in the binary format.
    ///
    /// # Errors
    /// [`MalformedValue`] if the bytes are not a value of the type.
    #[inline]
    pub fn binary(self, raw: &[u8]) -> Result<Moment> {
        Ok(match self {
            Self::Date => Moment::Date(i32::from_be_bytes(exact(raw)?)),
            Self::Time => Moment::Time(i64::from_be_bytes(exact(raw)?)),
            Self::Timestamp => Moment::Timestamp(i64::from_be_bytes(exact(raw)?)),
            Self::TimestampTz => Moment::TimestampTz(i64::from_be_bytes(exact(raw)?)),
            Self::TimeTz => {
                let raw: [u8; 12] = exact(raw)?;
                let (time, west) = raw.split_first_chunk::<8>().ok_or(MalformedValue)?;
                let west = i32::from_be_bytes(exact(west)?);
                if west.unsigned_abs() >= MAX_OFFSET.unsigned_abs() {
                    return Err(MalformedValue);
                }
                Moment::TimeTz(i64::from_be_bytes(*time), -west)
            }
        })
    }

    /// Reads a text in `DateStyle ISO`; `None` for any other text.
    pub fn text(self, text: &[u8]) -> Option<Moment> {
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
            Self::TimeTz => {
                let (time, east) = (scanner.iso_time()?, scanner.offset()?);
                Some(Moment::TimeTz(time, east)).filter(|_| east.abs() < MAX_OFFSET)?
            }
            Self::Timestamp | Self::TimestampTz => self.timestamp(infinity(text), &mut scanner)?,
        };
        scanner.is_empty().then_some(moment)
    }

    /// Reads a timestamp: a date, a time, an offset for `timestamptz`, and perhaps ` BC`.
    /// `infinity` is the result of the function [`infinity`] for the text. `None` for any other
    /// text.
    fn timestamp(self, infinity: Option<bool>, scanner: &mut Scanner<'_>) -> Option<Moment> {
        let micros = if let Some(positive) = infinity {
            *scanner = Scanner::new(b"");
            if positive { i64::MAX } else { i64::MIN }
        } else {
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
        };
        Some(if self == Self::TimestampTz {
            Moment::TimestampTz(micros)
        } else {
            Moment::Timestamp(micros)
        })
    }
}

/// `true` for the text `infinity`, `false` for `-infinity`, `None` for any other text.
fn infinity(text: &[u8]) -> Option<bool> {
    match text {
        b"infinity" => Some(true),
        b"-infinity" => Some(false),
        _ => None,
    }
}

impl Moment {
    /// Appends the value as the content of a JSON string, without the quotes.
    #[inline]
    pub(crate) fn write(self, out: &mut BytesMut) -> Result<()> {
        let mut text = Text::default();
        match (self.infinity(), self) {
            (Some(name), _) => {
                out.extend_from_slice(name.as_bytes());
                return Ok(());
            }
            (None, Self::Date(days)) => {
                let civil = Civil::from_days(i64::from(days) + POSTGRES_DAY_ZERO);
                text.date(civil);
                text.era(civil);
            }
            (None, Self::Time(micros)) => text.time(micros)?,
            (None, Self::TimeTz(micros, east)) => {
                text.time(micros)?;
                text.offset(east);
            }
            (None, Self::Timestamp(micros)) => text.timestamp(micros, false)?,
            (None, Self::TimestampTz(micros)) => text.timestamp(micros, true)?,
        }
        out.extend_from_slice(text.as_bytes());
        Ok(())
    }

    /// The name of an infinity; `None` for any other value.
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
