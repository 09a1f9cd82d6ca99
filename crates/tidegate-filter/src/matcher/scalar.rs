//! The types whose values can be compared outside PostgreSQL, and the reading of their values.

use std::borrow::Cow;
use std::sync::Arc;

use tidegate_catalog::model::{Collation, Column};
use tidegate_sql::Error;
use tidegate_values::codec::{Interval, bytea};
use tidegate_values::datetime::{Moment, MomentType};
use tidegate_values::{Type, TypeKind, base_type};

use super::RowValue;
use super::datum::Datum;
use super::decimal;

/// The error for bytes that are not a value of their column's type. It has no fields, so that the
/// results of an evaluation are small.
#[derive(Clone, Copy, Debug)]
pub(super) struct Malformed;

impl From<Malformed> for Error {
    fn from(_: Malformed) -> Self {
        Self::internal("an image holds bytes that are not a value of the column's type")
    }
}

/// A type, by the representation of its values.
#[derive(Clone, Debug)]
pub(super) enum Scalar {
    Bool,
    Int2,
    Int4,
    Int8,
    Oid,
    Float4,
    Float8,
    Numeric,
    Text,
    /// The type `char(n)`, whose trailing blanks are not significant.
    Padded,
    Bytea,
    Uuid,
    Moment(MomentType),
    Interval,
    /// An enum. The first field has its labels in order. The second field has the names of the
    /// labels before they were renamed, at the same positions. It is empty if no label was renamed.
    Enum(Arc<[String]>, Arc<[String]>),
}

impl Scalar {
    /// Whether texts with different bytes are different values, which depends on the column's
    /// collation. Always true for types other than text.
    pub(super) fn distinguishes_bytes(&self, column: &Column) -> bool {
        !matches!(self, Self::Text | Self::Padded)
            || matches!(
                column.collation,
                Some(Collation::Bytes | Collation::Deterministic)
            )
    }

    /// The representation of a type. `None` if a comparison outside PostgreSQL would not be exact.
    pub(super) fn of(r#type: &Type) -> Option<Self> {
        let r#type = base_type(r#type);
        Some(match *r#type {
            Type::BOOL => Self::Bool,
            Type::INT2 => Self::Int2,
            Type::INT4 => Self::Int4,
            Type::INT8 => Self::Int8,
            Type::OID => Self::Oid,
            Type::FLOAT4 => Self::Float4,
            Type::FLOAT8 => Self::Float8,
            Type::NUMERIC => Self::Numeric,
            Type::TEXT | Type::VARCHAR | Type::NAME => Self::Text,
            Type::BPCHAR => Self::Padded,
            Type::BYTEA => Self::Bytea,
            Type::UUID => Self::Uuid,
            Type::INTERVAL => Self::Interval,
            _ => match r#type.kind() {
                TypeKind::Simple => Self::Moment(MomentType::of(r#type)?),
                TypeKind::Enum(labels) => Self::Enum(labels.as_slice().into(), Arc::default()),
                _ => return None,
            },
        })
    }

    /// Reads a value. `None` for NULL or a missing value.
    #[inline]
    pub(super) fn read<'a>(&self, image: RowValue<'a>) -> Result<Option<Datum<'a>>, Malformed> {
        let datum = match image {
            RowValue::Null | RowValue::Missing => return Ok(None),
            RowValue::Binary(raw) => self.binary(raw),
            RowValue::Text(raw) => self.text(raw),
        };
        datum.map(Some).ok_or(Malformed)
    }

    fn binary<'a>(&self, raw: &'a [u8]) -> Option<Datum<'a>> {
        Some(match self {
            Self::Bool => match raw {
                [value] => Datum::Int(i64::from(*value != 0)),
                _ => return None,
            },
            Self::Int2 => Datum::Int(i16::from_be_bytes(raw.try_into().ok()?).into()),
            Self::Int4 => Datum::Int(i32::from_be_bytes(raw.try_into().ok()?).into()),
            Self::Int8 => Datum::Int(i64::from_be_bytes(raw.try_into().ok()?)),
            Self::Oid => Datum::Int(u32::from_be_bytes(raw.try_into().ok()?).into()),
            Self::Float4 => Datum::float(f32::from_be_bytes(raw.try_into().ok()?).into()),
            Self::Float8 => Datum::float(f64::from_be_bytes(raw.try_into().ok()?)),
            Self::Numeric => Datum::Bytes(Cow::Owned(decimal::binary(raw)?)),
            Self::Uuid if raw.len() != 16 => return None,
            Self::Bytea | Self::Uuid => Datum::Bytes(Cow::Borrowed(raw)),
            Self::Moment(moment) => Datum::moment(moment.binary(raw).ok()?),
            Self::Interval => Datum::interval(Interval::binary(raw).ok()?),
            Self::Text | Self::Padded | Self::Enum(..) => return self.text(raw),
        })
    }

    /// Reads the text form of a value, as the output function writes it; `None` for any other text.
    pub(super) fn text<'a>(&self, raw: &'a [u8]) -> Option<Datum<'a>> {
        let text = || std::str::from_utf8(raw).ok();
        Some(match self {
            Self::Bool => match raw {
                b"t" | b"true" => Datum::Int(1),
                b"f" | b"false" => Datum::Int(0),
                _ => return None,
            },
            Self::Int2 | Self::Int4 | Self::Int8 | Self::Oid => Datum::Int(text()?.parse().ok()?),
            Self::Float4 => Datum::float(float::<f32>(text()?)?.into()),
            Self::Float8 => Datum::float(float::<f64>(text()?)?),
            Self::Numeric => Datum::Bytes(Cow::Owned(decimal::text(text()?)?)),
            Self::Text => Datum::Bytes(Cow::Borrowed(raw)),
            Self::Padded => Datum::Bytes(Cow::Borrowed(unpadded(raw))),
            Self::Bytea => Datum::Bytes(Cow::Owned(bytea::from_text(raw)?)),
            Self::Uuid => Datum::Bytes(Cow::Owned(uuid(raw)?)),
            Self::Moment(moment) => Datum::moment(moment.text(raw)?),
            Self::Interval => Datum::interval(Interval::text(raw)?),
            Self::Enum(labels, former) => {
                let place =
                    |labels: &[String]| labels.iter().position(|label| label.as_bytes() == raw);
                match place(labels).or_else(|| place(former)) {
                    Some(place) => Datum::Int(i64::try_from(place).ok()?),
                    None => Datum::UnknownLabel(Cow::Borrowed(raw)),
                }
            }
        })
    }
}

impl Datum<'_> {
    fn moment(moment: Moment) -> Self {
        match moment {
            Moment::Date(days) => Self::Int(days.into()),
            Moment::Time(micros) | Moment::Timestamp(micros) | Moment::TimestampTz(micros) => {
                Self::Int(micros)
            }
            // PostgreSQL orders values of `timetz` by the time in UTC, and then by the offset from
            // east to west.
            Moment::TimeTz(micros, east) => {
                let utc = i128::from(micros) - i128::from(east) * 1_000_000;
                Self::Wide((utc << 32) - i128::from(east))
            }
        }
    }

    /// The datum of an interval. PostgreSQL compares intervals with 30 days in a month and 24 hours
    /// in a day.
    fn interval(interval: Interval) -> Self {
        let days = i128::from(interval.months) * 30 + i128::from(interval.days);
        Self::Wide(days * 86_400_000_000 + i128::from(interval.micros))
    }
}

/// The text without trailing blanks.
fn unpadded(text: &[u8]) -> &[u8] {
    let length = text.iter().rposition(|byte| *byte != b' ');
    &text[..length.map_or(0, |last| last + 1)]
}

/// The Rust types for `float4` and `float8`.
pub(super) trait Float: std::str::FromStr + Copy + PartialEq + Default {
    fn is_infinite(self) -> bool;
}

impl Float for f32 {
    fn is_infinite(self) -> bool {
        Self::is_infinite(self)
    }
}

impl Float for f64 {
    fn is_infinite(self) -> bool {
        Self::is_infinite(self)
    }
}

/// Reads a float as PostgreSQL's `float4in` and `float8in` do; `None` for any other text and for a
/// number out of range.
pub(super) fn float<F: Float>(text: &str) -> Option<F> {
    let word = text.trim_start_matches(['-', '+']);
    let named = word.starts_with(['i', 'I', 'n', 'N']);
    let value: F = text.parse().ok()?;
    let mantissa = word.split(['e', 'E']).next().unwrap_or_default();
    let underflow = value == F::default() && mantissa.contains(|digit| matches!(digit, '1'..='9'));
    (named || !(value.is_infinite() || underflow)).then_some(value)
}

/// Reads a UUID: 32 hexadecimal digits, with or without the usual hyphens and enclosing braces.
/// `None` for any other text.
fn uuid(raw: &[u8]) -> Option<Vec<u8>> {
    let raw = raw
        .strip_prefix(b"{")
        .and_then(|inner| inner.strip_suffix(b"}"))
        .unwrap_or(raw);
    let hyphens: Vec<_> = (0..raw.len()).filter(|at| raw[*at] == b'-').collect();
    if !matches!(hyphens[..], [] | [8, 13, 18, 23]) {
        return None;
    }
    let digits: Vec<u8> = raw.iter().copied().filter(|byte| *byte != b'-').collect();
    bytea::from_hex(&digits).filter(|bytes| bytes.len() == 16)
}
