//! Decodes the text format: the text that the type's output function returns under the settings of
//! new sessions (`DateStyle ISO`, `IntervalStyle postgres`). A date, time or interval under other
//! settings is written unchanged, as a JSON string.

use bytes::BytesMut;

use super::json_form::{Array, Attribute, JsonForm, MAX_DIMENSIONS};
use super::token::{Tokens, parse};
use super::{bytea, hstore, interval, postgis, range};
use crate::append::{json, number};
use crate::error::{MalformedValue, Result};

/// Appends a value as JSON.
pub(super) fn json(form: &JsonForm, raw: &[u8], out: &mut BytesMut) -> Result<()> {
    match form {
        JsonForm::Bool => boolean(raw, out)?,
        JsonForm::Int2 | JsonForm::Int4 | JsonForm::Int8 | JsonForm::Oid => integer(raw, out)?,
        JsonForm::Float4 => number::float_json(parse::<f32>(raw)?, out),
        JsonForm::Float8 => number::float_json(parse::<f64>(raw)?, out),
        JsonForm::Hstore { object: true } => hstore::text(raw, out)?,
        JsonForm::Text
        | JsonForm::Foreign
        | JsonForm::Hstore { .. }
        | JsonForm::Numeric
        | JsonForm::Uuid => {
            json::string(raw, out);
        }
        JsonForm::Json | JsonForm::Jsonb => json::raw_text(raw, out),
        JsonForm::Bytea => {
            out.extend_from_slice(b"\"");
            json::base64(&bytea::from_text(raw).ok_or(MalformedValue)?, out);
            out.extend_from_slice(b"\"");
        }
        JsonForm::Moment(moment, format) => match (moment.text(raw), format) {
            (Some(moment), Some(format)) => format.json(moment, out)?,
            (Some(moment), None) => {
                out.extend_from_slice(b"\"");
                moment.write(out)?;
                out.extend_from_slice(b"\"");
            }
            (None, _) => json::string(raw, out),
        },
        JsonForm::Interval => interval::text(raw, out).unwrap_or_else(|| json::string(raw, out)),
        JsonForm::Geometric(shape) => shape.text(raw, out)?,
        JsonForm::Geometry => postgis::json(&bytea::from_hex(raw).ok_or(MalformedValue)?, out)?,
        JsonForm::Array(inner) => array(inner, raw, out)?,
        JsonForm::Range(inner) => whole(raw, |tokens| {
            range::text(tokens, |raw, out| value(inner, raw, out), out)
        })?,
        JsonForm::Multirange(inner) => whole(raw, |tokens| multirange(inner, tokens, out))?,
        JsonForm::Composite(attributes) => whole(raw, |tokens| composite(attributes, tokens, out))?,
        JsonForm::Record => whole(raw, |tokens| record(tokens, out))?,
        JsonForm::Quoted(inner) => {
            out.extend_from_slice(b"\"");
            plain(inner, raw, out)?;
            out.extend_from_slice(b"\"");
        }
    }
    Ok(())
}

/// Appends a value as plain text, such as a CSV field. The text is that of the JSON form, but
/// strings have no quotes and no escapes.
pub(super) fn plain(form: &JsonForm, raw: &[u8], out: &mut BytesMut) -> Result<()> {
    match form {
        JsonForm::Text
        | JsonForm::Foreign
        | JsonForm::Hstore { object: false }
        | JsonForm::Numeric
        | JsonForm::Uuid => json::raw_text(raw, out),
        JsonForm::Float4 => drop(number::float(parse::<f32>(raw)?, out)),
        JsonForm::Float8 => drop(number::float(parse::<f64>(raw)?, out)),
        JsonForm::Bytea => json::base64(&bytea::from_text(raw).ok_or(MalformedValue)?, out),
        JsonForm::Quoted(inner) => plain(inner, raw, out)?,
        JsonForm::Moment(moment, format) => match (moment.text(raw), format) {
            (Some(moment), Some(format)) => format.write(moment, out)?,
            (Some(moment), None) => moment.write(out)?,
            (None, _) => json::raw_text(raw, out),
        },
        _ => json(form, raw, out)?,
    }
    Ok(())
}

/// Appends a value, or `null` if `raw` is `None`.
pub(super) fn value(form: &JsonForm, raw: Option<&[u8]>, out: &mut BytesMut) -> Result<()> {
    let Some(raw) = raw else {
        out.extend_from_slice(b"null");
        return Ok(());
    };
    json(form, raw, out)
}

fn boolean(raw: &[u8], out: &mut BytesMut) -> Result<()> {
    out.extend_from_slice(match raw {
        b"t" => b"true",
        b"f" => b"false",
        _ => return Err(MalformedValue),
    });
    Ok(())
}

fn integer(raw: &[u8], out: &mut BytesMut) -> Result<()> {
    let digits = raw.strip_prefix(b"-").unwrap_or(raw);
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(MalformedValue);
    }
    out.extend_from_slice(raw);
    Ok(())
}

/// Reads a text with `read`, and checks that `read` has consumed all of it.
fn whole(raw: &[u8], read: impl FnOnce(&mut Tokens<'_>) -> Result<()>) -> Result<()> {
    let mut tokens = Tokens::new(raw);
    read(&mut tokens)?;
    tokens.end()
}

/// Appends an array from its text `{…}`. If a lower bound is not 1, the text begins with `[l:u]=`,
/// which is skipped. In the text of an `int2vector` or `oidvector`, spaces separate the elements.
fn array(array: &Array, raw: &[u8], out: &mut BytesMut) -> Result<()> {
    if array.delimiter == b' ' {
        out.extend_from_slice(b"[");
        for (at, word) in raw
            .split(|&byte| byte == b' ')
            .filter(|word| !word.is_empty())
            .enumerate()
        {
            if at > 0 {
                out.extend_from_slice(b",");
            }
            json(&array.element, word, out)?;
        }
        out.extend_from_slice(b"]");
        return Ok(());
    }
    whole(raw, |tokens| {
        if tokens.peek() == Some(b'[') {
            tokens.skip_to(b'{');
        }
        dimension(array, tokens, MAX_DIMENSIONS, out)
    })
}

/// Appends the elements of one dimension; `depth` is the nesting that is still allowed.
fn dimension(
    array: &Array,
    tokens: &mut Tokens<'_>,
    depth: usize,
    out: &mut BytesMut,
) -> Result<()> {
    let depth = depth.checked_sub(1).ok_or(MalformedValue)?;
    tokens.expect(b'{')?;
    out.extend_from_slice(b"[");
    if tokens.word(b"}") {
        out.extend_from_slice(b"]");
        return Ok(());
    }
    loop {
        if tokens.peek() == Some(b'{') {
            dimension(array, tokens, depth, out)?;
        } else {
            let element = tokens.token(&[array.delimiter, b'}']).element();
            value(&array.element, element.as_deref(), out)?;
        }
        match tokens.next() {
            Some(b'}') => break,
            Some(byte) if byte == array.delimiter => out.extend_from_slice(b","),
            _ => return Err(MalformedValue),
        }
    }
    out.extend_from_slice(b"]");
    Ok(())
}

fn multirange(form: &JsonForm, tokens: &mut Tokens<'_>, out: &mut BytesMut) -> Result<()> {
    tokens.expect(b'{')?;
    out.extend_from_slice(b"[");
    if !tokens.word(b"}") {
        loop {
            range::text(tokens, |raw, out| value(form, raw, out), out)?;
            match tokens.next() {
                Some(b'}') => break,
                Some(b',') => out.extend_from_slice(b","),
                _ => return Err(MalformedValue),
            }
        }
    }
    out.extend_from_slice(b"]");
    Ok(())
}

fn composite(attributes: &[Attribute], tokens: &mut Tokens<'_>, out: &mut BytesMut) -> Result<()> {
    tokens.expect(b'(')?;
    for (at, attribute) in attributes.iter().enumerate() {
        if at > 0 {
            tokens.expect(b',')?;
        }
        out.extend_from_slice(&attribute.prefix);
        value(&attribute.form, tokens.token(b",)").given().as_deref(), out)?;
    }
    out.extend_from_slice(if attributes.is_empty() { b"{}" } else { b"}" });
    tokens.expect(b')')
}

/// Appends an anonymous composite as an object with the members `f1`, `f2` and so on. The value of
/// a member is the text of the attribute, or null.
fn record(tokens: &mut Tokens<'_>, out: &mut BytesMut) -> Result<()> {
    tokens.expect(b'(')?;
    let mut number = 0_u32;
    while !tokens.word(b")") {
        if number > 0 {
            tokens.expect(b',')?;
        }
        number += 1;
        out.extend_from_slice(if number == 1 { b"{\"f" } else { b",\"f" });
        number::integer(number, out);
        out.extend_from_slice(b"\":");
        let text = tokens.token(b",)").given();
        value(&JsonForm::Text, text.as_deref(), out)?;
        if tokens.peek().is_none() {
            return Err(MalformedValue);
        }
    }
    out.extend_from_slice(if number == 0 { b"{}" } else { b"}" });
    Ok(())
}
