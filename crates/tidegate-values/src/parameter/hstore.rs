//! `hstore` values (PostgreSQL, "hstore", "External Representation").

use bytes::{BufMut, BytesMut};

use super::place::ValuePath;
use super::value::{Value, escape};
use crate::error::ValueError;
use crate::json::{self, JsonKind};

/// Appends an `hstore` from an object of strings and nulls.
pub(super) fn write(value: Value<'_>, out: &mut BytesMut) -> Result<(), ValueError> {
    let members =
        json::members(value.json).map_err(|error| value.invalid(json::problem(&error)))?;
    if let Some(name) = json::repeated(&members) {
        return Err(ValuePath::Member(value.place, name).invalid(value.r#type, "given twice"));
    }
    for (index, (name, raw)) in members.iter().enumerate() {
        let place = ValuePath::Member(value.place, name);
        if name.contains('\0') {
            return Err(place.invalid(value.r#type, "a key with the character U+0000"));
        }
        let member = Value::new(raw.get(), value.r#type, None, &place);
        out.put_slice(if index == 0 { b"" } else { b"," });
        quoted(name, out);
        out.put_slice(b"=>");
        match member.kind {
            JsonKind::Null => out.put_slice(b"NULL"),
            JsonKind::String => quoted(&member.text()?, out),
            kind => return Err(member.invalid(format!("{kind}, expected a string or null"))),
        }
    }
    Ok(())
}

fn quoted(text: &str, out: &mut BytesMut) {
    out.put_u8(b'"');
    let mark = out.len();
    out.put_slice(text.as_bytes());
    escape(out, mark);
    out.put_u8(b'"');
}
