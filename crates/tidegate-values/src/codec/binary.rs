//! Decodes the binary format: the bytes of a type's send function.

use bytes::BytesMut;

use super::json_form::{Array, Attribute, JsonForm, MAX_DIMENSIONS};
use super::{interval, postgis, range};
use crate::append::{json, number};
use crate::binary_reader::BinaryReader;
use crate::binary_reader::exact;
use crate::error::{MalformedValue, Result};

/// Appends a value as JSON.
#[inline]
pub(super) fn json(form: &JsonForm, raw: &[u8], out: &mut BytesMut) -> Result<()> {
    match form {
        JsonForm::Bool => boolean(raw, out)?,
        JsonForm::Int2 => number::integer(i16::from_be_bytes(exact(raw)?), out),
        JsonForm::Int4 => number::integer(i32::from_be_bytes(exact(raw)?), out),
        JsonForm::Int8 => number::integer(i64::from_be_bytes(exact(raw)?), out),
        JsonForm::Oid => number::integer(u32::from_be_bytes(exact(raw)?), out),
        JsonForm::Float4 => number::float_json(f32::from_be_bytes(exact(raw)?), out),
        JsonForm::Float8 => number::float_json(f64::from_be_bytes(exact(raw)?), out),
        JsonForm::Text | JsonForm::Foreign | JsonForm::Hstore { .. } | JsonForm::Record => {
            json::string(raw, out);
        }
        JsonForm::Json => json::raw_text(raw, out),
        JsonForm::Jsonb => json::raw_text(document(raw)?, out),
        JsonForm::Interval => interval::binary(raw, out)?,
        JsonForm::Geometric(shape) => shape.binary(raw, out)?,
        JsonForm::Geometry => postgis::json(raw, out)?,
        JsonForm::Array(inner) => array(inner, raw, out)?,
        JsonForm::Range(inner) => range::binary(raw, |raw, out| value(inner, raw, out), out)?,
        JsonForm::Multirange(inner) => multirange(inner, raw, out)?,
        JsonForm::Composite(attributes) => composite(attributes, raw, out)?,
        JsonForm::Moment(moment, Some(format)) => format.json(moment.binary(raw)?, out)?,
        JsonForm::Numeric | JsonForm::Uuid | JsonForm::Bytea | JsonForm::Moment(_, None) => {
            quoted(form, raw, out)?;
        }
        JsonForm::Quoted(inner) => quoted(inner, raw, out)?,
    }
    Ok(())
}

/// Appends a value as a JSON string, for types whose values need no escapes. Integers, the most
/// frequent case, are written here, which saves a call of [`plain`].
#[inline]
fn quoted(form: &JsonForm, raw: &[u8], out: &mut BytesMut) -> Result<()> {
    out.extend_from_slice(b"\"");
    match form {
        JsonForm::Int4 => number::integer(i32::from_be_bytes(exact(raw)?), out),
        JsonForm::Int8 => number::integer(i64::from_be_bytes(exact(raw)?), out),
        _ => plain(form, raw, out)?,
    }
    out.extend_from_slice(b"\"");
    Ok(())
}

/// Appends a value as plain text, such as a CSV field. The text is that of the JSON form, but
/// strings have no quotes and no escapes.
pub(super) fn plain(form: &JsonForm, raw: &[u8], out: &mut BytesMut) -> Result<()> {
    match form {
        JsonForm::Numeric => number::numeric(raw, out)?,
        JsonForm::Uuid => uuid(raw, out)?,
        JsonForm::Bytea => json::base64(raw, out),
        JsonForm::Moment(moment, None) => moment.binary(raw)?.write(out)?,
        JsonForm::Moment(moment, Some(format)) => format.write(moment.binary(raw)?, out)?,
        JsonForm::Text | JsonForm::Foreign | JsonForm::Hstore { .. } | JsonForm::Record => {
            json::raw_text(raw, out);
        }
        JsonForm::Float4 => drop(number::float(f32::from_be_bytes(exact(raw)?), out)),
        JsonForm::Float8 => drop(number::float(f64::from_be_bytes(exact(raw)?), out)),
        JsonForm::Quoted(inner) => plain(inner, raw, out)?,
        _ => json(form, raw, out)?,
    }
    Ok(())
}

fn boolean(raw: &[u8], out: &mut BytesMut) -> Result<()> {
    let [value] = exact(raw)?;
    out.extend_from_slice(if value == 0 { b"false" } else { b"true" });
    Ok(())
}

/// The JSON text in a binary `jsonb`. The first byte of the value is a version number, which must
/// be 1.
fn document(raw: &[u8]) -> Result<&[u8]> {
    match raw.split_first() {
        Some((1, document)) => Ok(document),
        _ => Err(MalformedValue),
    }
}

fn uuid(raw: &[u8], out: &mut BytesMut) -> Result<()> {
    let raw: [u8; 16] = exact(raw)?;
    for (at, part) in [0..4, 4..6, 6..8, 8..10, 10..16].into_iter().enumerate() {
        if at > 0 {
            out.extend_from_slice(b"-");
        }
        json::hex(&raw[part], out);
    }
    Ok(())
}

/// Appends an array in the format of `array_send`: the number of dimensions, a flag for NULLs, the
/// element type, the length and lower bound of each dimension, the elements.
fn array(array: &Array, raw: &[u8], out: &mut BytesMut) -> Result<()> {
    let mut reader = BinaryReader::new(raw);
    let dimensions = reader.count()?;
    let (_nulls, _element) = (reader.i32()?, reader.u32()?);
    let mut lengths = [0; MAX_DIMENSIONS];
    let lengths = lengths.get_mut(..dimensions).ok_or(MalformedValue)?;
    for length in &mut *lengths {
        *length = reader.count()?;
        let _lower_bound = reader.i32()?;
    }
    // An empty array has no dimension, but an empty `int2vector` or `oidvector` has one of length
    // 0.
    if lengths.is_empty() || lengths.contains(&0) {
        out.extend_from_slice(b"[]");
    } else {
        elements(&array.element, lengths, &mut reader, out)?;
    }
    reader.end()
}

/// Appends the elements as nested JSON arrays. `lengths` contains the length of each dimension.
fn elements(
    form: &JsonForm,
    lengths: &[usize],
    reader: &mut BinaryReader<'_>,
    out: &mut BytesMut,
) -> Result<()> {
    let Some((&length, inner)) = lengths.split_first() else {
        return value(form, reader.value()?, out);
    };
    for at in 0..length {
        out.extend_from_slice(if at == 0 { b"[" } else { b"," });
        elements(form, inner, reader, out)?;
    }
    out.extend_from_slice(b"]");
    Ok(())
}

/// Appends a value, or `null` if `raw` is `None`.
#[inline]
pub(super) fn value(form: &JsonForm, raw: Option<&[u8]>, out: &mut BytesMut) -> Result<()> {
    let Some(raw) = raw else {
        out.extend_from_slice(b"null");
        return Ok(());
    };
    json(form, raw, out)
}

/// Appends a multirange in the format of `multirange_send`: the number of ranges, and each range
/// with its length.
fn multirange(form: &JsonForm, raw: &[u8], out: &mut BytesMut) -> Result<()> {
    let mut reader = BinaryReader::new(raw);
    let count = reader.count()?;
    out.extend_from_slice(b"[");
    for at in 0..count {
        if at > 0 {
            out.extend_from_slice(b",");
        }
        let raw = reader.value()?.ok_or(MalformedValue)?;
        range::binary(raw, |raw, out| value(form, raw, out), out)?;
    }
    out.extend_from_slice(b"]");
    reader.end()
}

/// Appends a composite in the format of `record_send`: the number of attributes, and each attribute
/// with its type.
fn composite(attributes: &[Attribute], raw: &[u8], out: &mut BytesMut) -> Result<()> {
    let mut reader = BinaryReader::new(raw);
    if reader.count()? != attributes.len() {
        return Err(MalformedValue);
    }
    for attribute in attributes {
        if reader.u32()? != attribute.oid {
            return Err(MalformedValue);
        }
        out.extend_from_slice(&attribute.prefix);
        value(&attribute.form, reader.value()?, out)?;
    }
    out.extend_from_slice(if attributes.is_empty() { b"{}" } else { b"}" });
    reader.end()
}
