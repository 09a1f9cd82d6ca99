//! GeoJSON geometries (RFC 7946, section 3.1) as PostGIS' extended well-known text. PostGIS' own
//! input functions give a GeoJSON `geometry` no coordinate system, and read no GeoJSON for
//! `geography`.

use bytes::{BufMut, BytesMut};
use serde_json::value::RawValue;

use super::place::Place;
use super::value::Value;
use crate::error::InputError;
use crate::json::{self, JsonKind};

/// Collections inside each other.
const MAX_DEPTH: usize = 32;

/// GeoJSON coordinates are WGS 84 (RFC 7946, section 4).
const REFERENCE_SYSTEM: &[u8] = b"SRID=4326;";

/// Appends a geometry object.
pub(super) fn write(value: Value<'_>, out: &mut BytesMut) -> Result<(), InputError> {
    out.put_slice(REFERENCE_SYSTEM);
    geometry(value, 0, out)
}

fn geometry(value: Value<'_>, depth: usize, out: &mut BytesMut) -> Result<(), InputError> {
    if depth > MAX_DEPTH {
        return Err(value.invalid(format!(
            "more than {MAX_DEPTH} collections inside each other"
        )));
    }
    if value.kind != JsonKind::Object {
        return Err(value.invalid(format!("{}, expected a GeoJSON geometry", value.kind)));
    }
    let members =
        json::members(value.json).map_err(|error| value.invalid(json::problem(&error)))?;
    let member = |wanted: &str| {
        members
            .iter()
            .find(|(name, _)| name == wanted)
            .map(|(_, raw)| *raw)
    };
    let name = member("type")
        .and_then(|raw| json::string(raw.get()).ok())
        .unwrap_or_default();
    let (levels, inner) = match &*name {
        "Point" => (0, "coordinates"),
        "LineString" | "MultiPoint" => (1, "coordinates"),
        "Polygon" | "MultiLineString" => (2, "coordinates"),
        "MultiPolygon" => (3, "coordinates"),
        "GeometryCollection" => (1, "geometries"),
        _ => {
            let place = Place::Member(value.place, "type");
            return Err(place.invalid(value.r#type, "not the name of a GeoJSON geometry"));
        }
    };
    let place = Place::Member(value.place, inner);
    let raw = member(inner).ok_or_else(|| place.invalid(value.r#type, "missing"))?;
    let inner = Value::new(raw.get(), value.r#type, None, &place);
    out.put_slice(name.as_bytes());
    if &*name != "GeometryCollection" {
        return coordinates(inner, levels, (levels == 0, out));
    }
    list(inner, out, |element, out| geometry(element, depth + 1, out))
}

/// Lists of lists of positions, `levels` deep.
fn coordinates(
    value: Value<'_>,
    levels: usize,
    (enclosed, out): (bool, &mut BytesMut),
) -> Result<(), InputError> {
    if levels > 0 {
        return list(value, out, |element, out| {
            coordinates(element, levels - 1, (false, out))
        });
    }
    let numbers: Vec<&RawValue> = match value.kind {
        JsonKind::Array => value.elements()?,
        _ => Vec::new(),
    };
    let is_number = |raw: &&RawValue| JsonKind::of(raw.get()) == JsonKind::Number;
    if !(2..=4).contains(&numbers.len()) || !numbers.iter().all(is_number) {
        return Err(value.invalid("not a GeoJSON position, which is an array of 2 to 4 numbers"));
    }
    if enclosed {
        out.put_u8(b'(');
    }
    for (index, number) in numbers.iter().enumerate() {
        if index > 0 {
            out.put_u8(b' ');
        }
        out.put_slice(number.get().as_bytes());
    }
    if enclosed {
        out.put_u8(b')');
    }
    Ok(())
}

fn list(
    value: Value<'_>,
    out: &mut BytesMut,
    mut write: impl FnMut(Value<'_>, &mut BytesMut) -> Result<(), InputError>,
) -> Result<(), InputError> {
    if value.kind != JsonKind::Array {
        return Err(value.invalid(format!("{}, expected an array", value.kind)));
    }
    let elements = value.elements()?;
    if elements.is_empty() {
        out.put_slice(b" EMPTY");
        return Ok(());
    }
    out.put_u8(b'(');
    for (index, raw) in elements.into_iter().enumerate() {
        if index > 0 {
            out.put_u8(b',');
        }
        let place = Place::Element(value.place, index);
        write(Value::new(raw.get(), value.r#type, None, &place), out)?;
    }
    out.put_u8(b')');
    Ok(())
}
