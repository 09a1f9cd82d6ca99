//! Intervals (PostgreSQL, "Interval Input"). They are written in the ISO 8601 format, which does
//! not depend on `IntervalStyle`.

use bytes::{BufMut, BytesMut};

use super::place::ValuePath;
use super::value::Value;
use crate::error::ValueError;
use crate::json::JsonKind;

const NAMES: [&str; 6] = ["y", "m", "d", "h", "i", "s"];
const PREFIXES: [&[u8]; 6] = [b"P", b"", b"", b"T", b"", b""];
const SUFFIXES: [u8; 6] = *b"YMDHMS";

/// Appends an interval from an object with the members `y`, `m`, `d`, `h`, `i` and `s`. A missing
/// member is 0.
pub(super) fn write(value: Value<'_>, out: &mut BytesMut) -> Result<(), ValueError> {
    let parts = value.members(NAMES)?;
    for (index, part) in parts.into_iter().enumerate() {
        let number = part.unwrap_or("0");
        let kind = JsonKind::of(number);
        if kind != JsonKind::Number {
            let place = ValuePath::Member(value.place, NAMES[index]);
            return Err(place.invalid(value.r#type, format!("{kind}, expected a number")));
        }
        out.put_slice(PREFIXES[index]);
        out.put_slice(number.as_bytes());
        out.put_u8(SUFFIXES[index]);
    }
    Ok(())
}
