//! GeoJSON geometries (RFC 7946, section 3.1), written as PostGIS' extended well-known text.
//! PostGIS' own input functions cannot be used: they assign no coordinate system to a GeoJSON
//! `geometry`, and read no GeoJSON for `geography`.

use std::borrow::Cow;

use bytes::{BufMut, BytesMut};
use serde_json::value::RawValue;

use super::place::ValuePath;
use super::value::Value;
use crate::error::ValueError;
use crate::json::{self, JsonKind};

/// The deepest nesting of collections that is accepted.
const MAX_DEPTH: usize = 32;

/// The SRID of WGS 84, the default of GeoJSON (RFC 7946, section 4).
const WGS_84: &str = "4326";

/// Appends a geometry from a GeoJSON object.
pub(super) fn write(value: Value<'_>, out: &mut BytesMut) -> Result<(), ValueError> {
    geometry(value, 0, out)
}

fn geometry(value: Value<'_>, depth: usize, out: &mut BytesMut) -> Result<(), ValueError> {
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
    if depth == 0 {
        out.put_slice(b"SRID=");
        reference_system(value, member("crs"), out)?;
        out.put_u8(b';');
    }
    let (levels, inner) = match &*name {
        "Point" => (0, "coordinates"),
        "LineString" | "MultiPoint" => (1, "coordinates"),
        "Polygon" | "MultiLineString" => (2, "coordinates"),
        "MultiPolygon" => (3, "coordinates"),
        "GeometryCollection" => (1, "geometries"),
        _ => {
            let place = ValuePath::Member(value.place, "type");
            return Err(place.invalid(value.r#type, "not the name of a GeoJSON geometry"));
        }
    };
    let place = ValuePath::Member(value.place, inner);
    let raw = member(inner).ok_or_else(|| place.invalid(value.r#type, "missing"))?;
    let inner = Value::new(raw.get(), value.r#type, None, &place);
    out.put_slice(name.as_bytes());
    if &*name == "Point" && inner.kind == JsonKind::Array && inner.elements()?.is_empty() {
        out.put_slice(b" EMPTY");
        return Ok(());
    }
    if &*name != "GeometryCollection" {
        return coordinates(inner, levels, levels == 0, out);
    }
    list(inner, out, |element, out| geometry(element, depth + 1, out))
}

/// Appends the SRID that the member `crs` names, or that of WGS 84 if there is none. Accepts names
/// such as `EPSG:3857`, as this crate and PostGIS write them, and URNs that end in an SRID (GeoJSON
/// 2008, section 3.1).
fn reference_system(
    value: Value<'_>,
    named: Option<&RawValue>,
    out: &mut BytesMut,
) -> Result<(), ValueError> {
    let Some(named) = named.filter(|named| JsonKind::of(named.get()) != JsonKind::Null) else {
        out.put_slice(WGS_84.as_bytes());
        return Ok(());
    };
    let name = json::members(named.get()).ok().and_then(|members| {
        let properties = members.into_iter().find(|(name, _)| name == "properties")?;
        let properties = json::members(properties.1.get()).ok()?;
        let name = properties.into_iter().find(|(name, _)| name == "name")?;
        json::string(name.1.get()).ok().map(Cow::into_owned)
    });
    let name = name.unwrap_or_default();
    let srid = match &*name {
        "urn:ogc:def:crs:OGC:1.3:CRS84" => Some(WGS_84),
        name => name
            .strip_prefix("EPSG:")
            .or_else(|| {
                name.strip_prefix("urn:ogc:def:crs:EPSG:")?
                    .split_once(':')
                    .map(|(_, number)| number)
            })
            .filter(|number| number.parse::<u32>().is_ok()),
    };
    let Some(srid) = srid else {
        let place = ValuePath::Member(value.place, "crs");
        return Err(place.invalid(
            value.r#type,
            "not the name of a reference system such as `EPSG:3857`",
        ));
    };
    out.put_slice(srid.as_bytes());
    Ok(())
}

/// Appends lists of positions, nested `levels` deep, or one position if `levels` is 0. If `levels`
/// is 0 and `enclosed` is true, the position is put into parentheses.
fn coordinates(
    value: Value<'_>,
    levels: usize,
    enclosed: bool,
    out: &mut BytesMut,
) -> Result<(), ValueError> {
    if levels > 0 {
        return list(value, out, |element, out| {
            coordinates(element, levels - 1, false, out)
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
    mut write: impl FnMut(Value<'_>, &mut BytesMut) -> Result<(), ValueError>,
) -> Result<(), ValueError> {
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
        let place = ValuePath::Element(value.place, index);
        write(Value::new(raw.get(), value.r#type, None, &place), out)?;
    }
    out.put_u8(b')');
    Ok(())
}
