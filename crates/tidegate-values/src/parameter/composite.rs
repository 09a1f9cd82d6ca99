//! Composite values (PostgreSQL, "Composite Type Input and Output Syntax").

use bytes::{BufMut, BytesMut};
use postgres_types::Field;

use super::place::ValuePath;
use super::value::Value;
use crate::error::ValueError;
use crate::json::{self, JsonKind};

/// Appends a composite from an object with a member for each attribute. A missing member is NULL.
pub(super) fn write(
    value: Value<'_>,
    fields: &[Field],
    out: &mut BytesMut,
) -> Result<(), ValueError> {
    let members =
        json::members(value.json).map_err(|error| value.invalid(json::problem(&error)))?;
    if let Some(name) = json::repeated(&members) {
        return Err(ValuePath::Member(value.place, name).invalid(value.r#type, "given twice"));
    }
    if let Some((name, _)) = members
        .iter()
        .find(|(name, _)| !fields.iter().any(|field| field.name() == name))
    {
        let place = ValuePath::Member(value.place, name);
        return Err(place.invalid(value.r#type, "not an attribute of the type"));
    }
    out.put_u8(b'(');
    for (index, field) in fields.iter().enumerate() {
        if index > 0 {
            out.put_u8(b',');
        }
        let member = members.iter().find(|(name, _)| name == field.name());
        let Some((_, raw)) = member else { continue };
        let place = ValuePath::Member(value.place, field.name());
        let inner = Value::new(raw.get(), field.type_(), None, &place);
        if inner.kind != JsonKind::Null {
            inner.write_quoted(out)?;
        }
    }
    out.put_u8(b')');
    Ok(())
}
