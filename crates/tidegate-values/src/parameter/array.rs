//! Writes JSON arrays as the text of PostgreSQL arrays (PostgreSQL, "Array Value Input").

use bytes::{BufMut, BytesMut};
use postgres_types::{Kind, Type};
use serde_json::value::RawValue;

use super::place::ValuePath;
use super::value::Value;
use crate::error::ValueError;
use crate::json::JsonKind;
use crate::type_property::array_delimiter;

/// PostgreSQL's limit on the dimensions of an array.
const MAX_DIMENSIONS: usize = 6;

/// Appends a JSON array as a PostgreSQL array of one or more dimensions.
pub(super) fn write(
    value: Value<'_>,
    element: &Type,
    out: &mut BytesMut,
) -> Result<(), ValueError> {
    let elements = value.elements()?;
    if matches!(*value.r#type, Type::INT2_VECTOR | Type::OID_VECTOR) {
        return write_vector(value, element, &elements, out);
    }
    let start = out.len();
    let mut shape = ArrayDimensions {
        delimiter: array_delimiter(element),
        sizes: Vec::new(),
        depth: None,
    };
    shape.write(value, element, &elements, out)?;
    if shape.sizes.contains(&0) {
        // Some versions of PostgreSQL reject `{{},{}}`, so an array without elements is written
        // `{}`.
        out.truncate(start);
        out.put_slice(b"{}");
    }
    Ok(())
}

/// The dimensions of an array, as far as they are known while it is written.
struct ArrayDimensions {
    delimiter: u8,
    /// The size of each dimension, the outermost first.
    sizes: Vec<usize>,
    /// The number of dimensions; `None` before the first element.
    depth: Option<usize>,
}

impl ArrayDimensions {
    fn write(
        &mut self,
        value: Value<'_>,
        element: &Type,
        elements: &[&RawValue],
        out: &mut BytesMut,
    ) -> Result<(), ValueError> {
        self.sizes.push(elements.len());
        self.level(value, 1, (element, elements), out)
    }

    /// Writes the elements of dimension `depth`, counted from 1. The size of the dimension is
    /// already in `sizes`.
    fn level(
        &mut self,
        value: Value<'_>,
        depth: usize,
        (element, elements): (&Type, &[&RawValue]),
        out: &mut BytesMut,
    ) -> Result<(), ValueError> {
        out.put_u8(b'{');
        for (index, raw) in elements.iter().enumerate() {
            if index > 0 {
                out.put_u8(self.delimiter);
            }
            let place = ValuePath::Element(value.place, index);
            let inner = Value::new(raw.get(), element, value.format, &place);
            if inner.kind == JsonKind::Array && !is_element(element, inner.json) {
                let inner = inner.of(value.r#type);
                let elements = inner.elements()?;
                self.enter(inner, depth + 1, elements.len())?;
                self.level(inner, depth + 1, (element, &elements), out)?;
                continue;
            }
            if *self.depth.get_or_insert(depth) != depth || self.sizes.len() != depth {
                return Err(
                    inner.invalid(format!("{}, expected an array as beside it", inner.kind))
                );
            }
            match inner.kind {
                JsonKind::Null => out.put_slice(b"NULL"),
                _ => inner.write_quoted(out)?,
            }
        }
        out.put_u8(b'}');
        Ok(())
    }

    /// Checks that a nested array has the size of the other arrays at its depth. Stores the size of
    /// the first array at each depth.
    fn enter(&mut self, value: Value<'_>, depth: usize, size: usize) -> Result<(), ValueError> {
        if depth > MAX_DIMENSIONS {
            return Err(value.invalid(format!("more than {MAX_DIMENSIONS} dimensions")));
        }
        if self.depth.is_some_and(|known| known < depth) {
            return Err(value.invalid("an array, expected none as beside it"));
        }
        match self.sizes.get(depth - 1) {
            None => self.sizes.push(size),
            Some(beside) if *beside == size => {}
            Some(beside) => {
                let problem =
                    format!("an array of {size} elements, expected {beside} as beside it");
                return Err(value.invalid(problem));
            }
        }
        Ok(())
    }
}

/// Whether a JSON array is the value of one element, and not a nested dimension. For JSON types and
/// domains over arrays, every array is a value. Polygons, paths and multiranges are JSON arrays
/// too. For these types the first item decides:
///
/// - An array that begins with a point is a polygon.
/// - An array that begins with a boolean, the flag of a path, is a path.
/// - An array that begins with a range is a multirange. An empty array is a multirange without
///   ranges.
/// - An array that begins with null is a dimension, because no value of these types begins with
///   null.
fn is_element(element: &Type, json: &str) -> bool {
    let first = || match json[1..].trim_ascii_start() {
        rest if rest.starts_with(']') => None,
        rest => Some(JsonKind::of(rest)),
    };
    match element.kind() {
        Kind::Domain(base) => is_element(base, json),
        // PostgreSQL has no arrays of arrays, but it has arrays of domains over arrays. So
        // `element` is an array only in the recursive call for the base type of a domain.
        Kind::Array(_) => true,
        Kind::Multirange(_) => !matches!(first(), Some(JsonKind::Array | JsonKind::Null)),
        _ => match *element {
            Type::JSON | Type::JSONB => true,
            Type::POLYGON => first() == Some(JsonKind::Object) && !begins_with_points(json),
            Type::PATH => first() == Some(JsonKind::Bool),
            _ => false,
        },
    }
}

/// Whether the first item of an array of objects is a polygon and not a point. A polygon that is
/// written as an object has only the member `points`.
fn begins_with_points(json: &str) -> bool {
    let object = json[1..].trim_ascii_start();
    let member = object.strip_prefix('{').map(str::trim_ascii_start);
    member.is_some_and(|member| member.starts_with("\"points\""))
}

/// Writes an `int2vector` or `oidvector`. In its text, spaces separate the elements.
fn write_vector(
    value: Value<'_>,
    element: &Type,
    elements: &[&RawValue],
    out: &mut BytesMut,
) -> Result<(), ValueError> {
    for (index, raw) in elements.iter().enumerate() {
        if index > 0 {
            out.put_u8(b' ');
        }
        let place = ValuePath::Element(value.place, index);
        Value::new(raw.get(), element, value.format, &place).write(out)?;
    }
    Ok(())
}
