//! Intervals (PostgreSQL, "Interval Input", the ISO 8601 format, which reads the same under
//! every `IntervalStyle`).

use bytes::{BufMut, BytesMut};

use super::place::Place;
use super::value::Value;
use crate::error::ValueError;
use crate::json::JsonKind;

const NAMES: [&str; 6] = ["y", "m", "d", "h", "i", "s"];
const BEFORE: [&[u8]; 6] = [b"P", b"", b"", b"T", b"", b""];
const BEHIND: [u8; 6] = *b"YMDHMS";

/// Appends `{"y","m","d","h","i","s"}`; a member that is not there is 0.
pub(super) fn write(value: Value<'_>, out: &mut BytesMut) -> Result<(), ValueError> {
    let parts = value.members(NAMES)?;
    for (index, part) in parts.into_iter().enumerate() {
        let number = part.unwrap_or("0");
        let kind = JsonKind::of(number);
        if kind != JsonKind::Number {
            let place = Place::Member(value.place, NAMES[index]);
            return Err(place.invalid(value.r#type, format!("{kind}, expected a number")));
        }
        out.put_slice(BEFORE[index]);
        out.put_slice(number.as_bytes());
        out.put_u8(BEHIND[index]);
    }
    Ok(())
}
