//! Writes one value of a row in its GraphQL form.

use bytes::BytesMut;
use tidegate_sql::Result;
use tidegate_values::codec::ValueWriter;
use tidegate_values::{Column, Type, TypeKind, WireFormat, base_type, is_spatial, json};

use super::program::OutputForm;
use super::projection::{Inner, NO_NUMBER, has_parts};
use super::subfields;
use crate::PathSegment;

const DIMENSIONS: &str = "the array has more than one dimension, which GraphQL cannot show";

/// Writes the values of one column.
#[derive(Debug)]
pub(super) struct Cell {
    writer: ValueWriter,
    check: Check,
    binary: bool,
    is_plain: bool,
}

/// The reason why values of a column may have no GraphQL form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Check {
    /// All values have a GraphQL form.
    None,
    /// A value may be a float that JSON cannot represent.
    Float,
    /// A value is a geometric value or a value of PostGIS. It may contain a float that JSON cannot
    /// represent.
    Shape,
    /// A value may be an array with more than one dimension.
    Array,
    /// A value may be an array with more than one dimension, or with an element that JSON cannot
    /// represent.
    Numbers,
}

impl Cell {
    /// A writer for a column of a result.
    pub(super) fn new(column: &Column, form: &OutputForm) -> Self {
        let writer = ValueWriter::new(column);
        let (writer, check) = match form {
            OutputForm::Count => (writer, Check::None),
            OutputForm::Id => (writer.quoted(), Check::None),
            OutputForm::Value => {
                let writer = writer.exact().with_hstore_objects();
                (writer, Check::of(&column.r#type))
            }
            // The floats are checked when the subfields are written.
            OutputForm::Parts(_) => (
                writer.exact(),
                match Check::of(&column.r#type) {
                    Check::Array | Check::Numbers => Check::Array,
                    _ => Check::None,
                },
            ),
        };
        Self {
            writer,
            check,
            binary: column.format == WireFormat::Binary,
            is_plain: check == Check::None && !matches!(form, OutputForm::Parts(_)),
        }
    }

    /// The writer of the values, if all of them have a GraphQL form; `None` if [`Cell::write`] must
    /// check and write each of them.
    #[inline]
    pub(super) fn plain(&self) -> Option<&ValueWriter> {
        self.is_plain.then_some(&self.writer)
    }

    /// Appends a value. Returns whether GraphQL can represent the value; if not, the caller must
    /// discard the appended text. Adds to `field_errors` an error for each part that GraphQL cannot
    /// represent: the value itself, an element of an array, or a subfield.
    pub(super) fn write(
        &self,
        raw: &[u8],
        form: &OutputForm,
        out: &mut BytesMut,
        field_errors: &mut Vec<Inner>,
    ) -> Result<bool> {
        let array = matches!(self.check, Check::Array | Check::Numbers);
        if array && has_dimensions(raw, self.binary) {
            field_errors.push((Vec::new(), DIMENSIONS));
            return Ok(false);
        }
        if let OutputForm::Parts(wanted) = form {
            let mut whole = BytesMut::new();
            self.writer.json(raw, &mut whole)?;
            let whole = std::str::from_utf8(&whole).unwrap_or("null");
            return Ok(subfields::write(whole, wanted, array, out, field_errors));
        }
        let start = out.len();
        self.writer.json(raw, out)?;
        let odd = match self.check {
            Check::None | Check::Array => false,
            Check::Float => out.get(start) == Some(&b'"'),
            Check::Shape | Check::Numbers => has_non_finite(&out[start..]),
        };
        if !odd {
            return Ok(true);
        }
        if self.check == Check::Numbers {
            null_invalid_elements(start, out, field_errors);
            return Ok(true);
        }
        field_errors.push((Vec::new(), NO_NUMBER));
        Ok(false)
    }
}

impl Check {
    fn of(r#type: &Type) -> Self {
        let r#type = base_type(r#type);
        match r#type.kind() {
            TypeKind::Array(element) => match Self::of(element) {
                Self::Float | Self::Shape => Self::Numbers,
                _ => Self::Array,
            },
            _ if matches!(*r#type, Type::FLOAT4 | Type::FLOAT8) => Self::Float,
            _ if has_parts(r#type) || is_spatial(r#type) => Self::Shape,
            _ => Self::None,
        }
    }
}

/// Whether the JSON contains `NaN` or `Infinity`. The rest of the JSON must not contain the letters
/// `N` and `I`. This is true of numbers, geometric values and GeoJSON.
pub(super) fn has_non_finite(json: &[u8]) -> bool {
    memchr::memchr2(b'N', b'I', json).is_some()
}

/// Replaces elements by null in the array that begins at `start`, if JSON cannot represent them.
fn null_invalid_elements(start: usize, out: &mut BytesMut, field_errors: &mut Vec<Inner>) {
    let whole = out.split_off(start);
    let text = std::str::from_utf8(&whole).unwrap_or("[]");
    out.extend_from_slice(b"[");
    for (at, element) in json::elements(text).unwrap_or_default().iter().enumerate() {
        if at > 0 {
            out.extend_from_slice(b",");
        }
        let element = element.get().as_bytes();
        if has_non_finite(element) {
            field_errors.push((vec![PathSegment::Index(at)], NO_NUMBER));
            out.extend_from_slice(b"null");
        } else {
            out.extend_from_slice(element);
        }
    }
    out.extend_from_slice(b"]");
}

/// Whether an array has more than one dimension. The array is in the format of `array_send` if
/// `binary` is true, and of `array_out` otherwise.
fn has_dimensions(raw: &[u8], binary: bool) -> bool {
    if binary {
        let count = raw.first_chunk().map(|raw| i32::from_be_bytes(*raw));
        return count.is_some_and(|count| count > 1);
    }
    // If a lower bound is not 1, the text begins with the bounds, as in `[0:1][1:1]={{a},{b}}`.
    let raw = match (raw.first(), memchr::memchr(b'=', raw)) {
        (Some(b'['), Some(at)) => &raw[at + 1..],
        _ => raw,
    };
    raw.starts_with(b"{{")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dimensions_are_counted_in_both_formats() {
        assert!(has_dimensions(b"{{1},{2}}", false));
        assert!(has_dimensions(b"[0:1][1:1]={{1},{2}}", false));
        assert!(!has_dimensions(b"[0:1]={1,2}", false));
        assert!(!has_dimensions(b"{\"{{\"}", false));
        assert!(has_dimensions(&[0, 0, 0, 2, 0], true));
        assert!(!has_dimensions(&[0, 0, 0, 1, 0], true));
        assert!(!has_dimensions(&[0, 0, 0, 0], true));
    }
}
