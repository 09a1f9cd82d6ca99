//! Geometric types (PostgreSQL, "Geometric Types").

use bytes::{BufMut, BytesMut};

use super::place::ValuePath;
use super::value::Value;
use crate::error::ValueError;
use crate::json::{self, JsonKind};

type WriteResult = Result<(), ValueError>;

/// Writes a point from an object with the members `x` and `y`.
pub(super) fn point(value: Value<'_>, out: &mut BytesMut) -> WriteResult {
    let [x, y] = value.members(["x", "y"])?;
    out.put_u8(b'(');
    number(value, "x", x, out)?;
    out.put_u8(b',');
    number(value, "y", y, out)?;
    out.put_u8(b')');
    Ok(())
}

/// Writes a line from an object with the members `A`, `B` and `C`.
pub(super) fn line(value: Value<'_>, out: &mut BytesMut) -> WriteResult {
    let [a, b, c] = value.members(["A", "B", "C"])?;
    out.put_u8(b'{');
    number(value, "A", a, out)?;
    out.put_u8(b',');
    number(value, "B", b, out)?;
    out.put_u8(b',');
    number(value, "C", c, out)?;
    out.put_u8(b'}');
    Ok(())
}

/// Writes a line segment from an object with the members `start` and `end`.
pub(super) fn segment(value: Value<'_>, out: &mut BytesMut) -> WriteResult {
    out.put_u8(b'[');
    corners(value, out)?;
    out.put_u8(b']');
    Ok(())
}

/// Writes a box from an object with the members `start` and `end`.
pub(super) fn r#box(value: Value<'_>, out: &mut BytesMut) -> WriteResult {
    corners(value, out)
}

/// Writes a path from an object with the members `open` and `points`, or from an array of a boolean
/// (true for open) and points.
pub(super) fn path(value: Value<'_>, out: &mut BytesMut) -> WriteResult {
    if value.kind == JsonKind::Object {
        let [open, list] = value.members(["open", "points"])?;
        let open = is_open(
            member(value, "open", open)?,
            &ValuePath::Member(value.place, "open"),
        )?;
        return enclosed(open, out, |out| list_member(value, list, out));
    }
    let elements = value.elements()?;
    let Some((open, list)) = elements.split_first() else {
        return Err(value.invalid("an empty array, expected a boolean and points"));
    };
    let place = ValuePath::Element(value.place, 0);
    let open = is_open(
        Value::new(open.get(), value.r#type, value.format, &place),
        &place,
    )?;
    enclosed(open, out, |out| points(value, 1, list, out))
}

/// Writes a polygon from an array of points, or from an object with the member `points`, the form
/// in GraphQL.
pub(super) fn polygon(value: Value<'_>, out: &mut BytesMut) -> WriteResult {
    if value.kind == JsonKind::Object {
        let [list] = value.members(["points"])?;
        return enclosed(false, out, |out| list_member(value, list, out));
    }
    if value.kind != JsonKind::Array {
        return Err(value.invalid(format!("{}, expected an array of points", value.kind)));
    }
    let list = value.elements()?;
    enclosed(false, out, |out| points(value, 0, &list, out))
}

/// Writes a circle from an object with the members `center` and `radius`.
pub(super) fn circle(value: Value<'_>, out: &mut BytesMut) -> WriteResult {
    let [center, radius] = value.members(["center", "radius"])?;
    out.put_u8(b'<');
    point_member(value, "center", center, out)?;
    out.put_u8(b',');
    number(value, "radius", radius, out)?;
    out.put_u8(b'>');
    Ok(())
}

fn corners(value: Value<'_>, out: &mut BytesMut) -> WriteResult {
    let [start, end] = value.members(["start", "end"])?;
    point_member(value, "start", start, out)?;
    out.put_u8(b',');
    point_member(value, "end", end, out)
}

fn enclosed(
    open: bool,
    out: &mut BytesMut,
    write: impl FnOnce(&mut BytesMut) -> WriteResult,
) -> WriteResult {
    out.put_u8(if open { b'[' } else { b'(' });
    write(out)?;
    out.put_u8(if open { b']' } else { b')' });
    Ok(())
}

/// Writes points separated by commas. In errors, the first point has the index `first`.
fn points(
    value: Value<'_>,
    first: usize,
    list: &[&serde_json::value::RawValue],
    out: &mut BytesMut,
) -> WriteResult {
    for (index, raw) in list.iter().enumerate() {
        if index > 0 {
            out.put_u8(b',');
        }
        let place = ValuePath::Element(value.place, first + index);
        point(
            Value::new(raw.get(), value.r#type, value.format, &place),
            out,
        )?;
    }
    Ok(())
}

/// Writes the points of the member `points`, which must be an array.
fn list_member(value: Value<'_>, json: Option<&str>, out: &mut BytesMut) -> WriteResult {
    let place = ValuePath::Member(value.place, "points");
    let list = Value {
        place: &place,
        ..member(value, "points", json)?
    };
    if list.kind != JsonKind::Array {
        return Err(list.invalid(format!("{}, expected an array of points", list.kind)));
    }
    points(list, 0, &list.elements()?, out)
}

fn point_member(
    value: Value<'_>,
    name: &str,
    json: Option<&str>,
    out: &mut BytesMut,
) -> WriteResult {
    let place = ValuePath::Member(value.place, name);
    point(member(value, name, json)?.at(&place), out)
}

/// The value of a required member. If the member is missing, the error has the path of the member.
/// The returned value has the path of the enclosing object, not the path of the member. So a caller
/// that reports an error about the value must set the path of the member.
fn member<'a>(
    value: Value<'a>,
    name: &str,
    json: Option<&'a str>,
) -> Result<Value<'a>, ValueError> {
    let missing = || ValuePath::Member(value.place, name).invalid(value.r#type, "missing");
    let json = json.ok_or_else(missing)?;
    Ok(Value::new(json, value.r#type, value.format, value.place))
}

fn is_open(value: Value<'_>, place: &ValuePath<'_>) -> Result<bool, ValueError> {
    match value.json {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => {
            let problem = format!("{}, expected a boolean, true for an open path", value.kind);
            Err(place.invalid(value.r#type, problem))
        }
    }
}

/// Writes a number of a geometric value. Accepts a JSON number, or a string with a number, NaN or
/// an infinity.
fn number(value: Value<'_>, name: &str, json: Option<&str>, out: &mut BytesMut) -> WriteResult {
    let json = member(value, name, json)?.json;
    let text = match JsonKind::of(json) {
        JsonKind::Number => json.into(),
        JsonKind::String => json::string(json).unwrap_or_default(),
        _ => "".into(),
    };
    if text.parse::<f64>().is_err() {
        let problem = format!("{}, expected a number", JsonKind::of(json));
        return Err(ValuePath::Member(value.place, name).invalid(value.r#type, problem));
    }
    out.put_slice(text.as_bytes());
    Ok(())
}
