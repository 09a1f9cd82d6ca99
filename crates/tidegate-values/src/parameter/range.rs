//! Ranges and multiranges (PostgreSQL, "Range Types").

use bytes::{BufMut, BytesMut};
use postgres_types::{Kind, Type};

use super::place::ValuePath;
use super::value::Value;
use crate::error::ValueError;
use crate::json::JsonKind;

/// Appends a range from an object with the members `lower`, `upper`, `lowerInclusive` and
/// `upperInclusive`, or from `{"empty":true}`. The defaults of missing members are, in this order,
/// null, null, true and false.
pub(super) fn write(value: Value<'_>, bound: &Type, out: &mut BytesMut) -> Result<(), ValueError> {
    let [lower, upper, lower_inclusive, upper_inclusive, empty] = value.members([
        "lower",
        "upper",
        "lowerInclusive",
        "upperInclusive",
        "empty",
    ])?;
    if flag(value, "empty", empty, false)? {
        let bounded = |bound: Option<&str>| bound.is_some_and(|json| json != "null");
        if bounded(lower) || bounded(upper) {
            return Err(value.invalid("empty, but with a bound"));
        }
        out.put_slice(b"empty");
        return Ok(());
    }
    let closed = flag(value, "lowerInclusive", lower_inclusive, true)?;
    out.put_u8(if closed { b'[' } else { b'(' });
    write_bound(value, "lower", lower, bound, out)?;
    out.put_u8(b',');
    write_bound(value, "upper", upper, bound, out)?;
    let closed = flag(value, "upperInclusive", upper_inclusive, false)?;
    out.put_u8(if closed { b']' } else { b')' });
    Ok(())
}

/// Appends a multirange from an array of ranges. `part` is the type that `Kind::Multirange`
/// contains: the type of the ranges, or the type of their bounds.
pub(super) fn write_many(
    value: Value<'_>,
    part: &Type,
    out: &mut BytesMut,
) -> Result<(), ValueError> {
    out.put_u8(b'{');
    for (index, raw) in value.elements()?.into_iter().enumerate() {
        if index > 0 {
            out.put_u8(b',');
        }
        let place = ValuePath::Element(value.place, index);
        let range = Value::new(raw.get(), value.r#type, value.format, &place);
        match (range.kind, part.kind()) {
            (JsonKind::Object, Kind::Range(bound)) => write(range, bound, out)?,
            (JsonKind::Object, _) => write(range, part, out)?,
            (JsonKind::String, _) if range.format.is_none() => {
                out.put_slice(range.text()?.as_bytes());
            }
            (kind, _) => return Err(range.invalid(format!("{kind}, expected a range"))),
        }
    }
    out.put_u8(b'}');
    Ok(())
}

fn flag(
    value: Value<'_>,
    name: &str,
    json: Option<&str>,
    default: bool,
) -> Result<bool, ValueError> {
    match json {
        None => Ok(default),
        Some("true") => Ok(true),
        Some("false") => Ok(false),
        Some(other) => {
            let problem = format!("{}, expected a boolean", JsonKind::of(other));
            Err(ValuePath::Member(value.place, name).invalid(value.r#type, problem))
        }
    }
}

fn write_bound(
    value: Value<'_>,
    name: &str,
    json: Option<&str>,
    r#type: &Type,
    out: &mut BytesMut,
) -> Result<(), ValueError> {
    let Some(json) = json else { return Ok(()) };
    let place = ValuePath::Member(value.place, name);
    let bound = Value::new(json, r#type, value.format, &place);
    match bound.kind {
        JsonKind::Null => Ok(()),
        _ => bound.write_quoted(out),
    }
}
