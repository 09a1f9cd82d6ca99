//! The JSON form of a type's values, determined once for each column.

use std::sync::Arc;

use bytes::BytesMut;
use postgres_types::{Field, Kind, Type};

use super::pg_geometric::GeometricType;
use crate::append::json;
use crate::datetime::{DateFormat, MomentType};
use crate::type_property::{array_delimiter, is_hstore, is_spatial};

/// PostgreSQL's limit on the dimensions of an array (`MAXDIM`).
pub(super) const MAX_DIMENSIONS: usize = 6;

/// The JSON form of a type's values.
#[derive(Clone, Debug)]
pub(super) enum JsonForm {
    Bool,
    Int2,
    Int4,
    Int8,
    Oid,
    Float4,
    Float8,
    Numeric,
    /// A string whose binary format is the text itself.
    Text,
    /// The text of a type whose binary format this crate does not decode, as a string.
    Foreign,
    Json,
    Jsonb,
    Uuid,
    Bytea,
    Moment(MomentType, Option<Arc<DateFormat>>),
    Interval,
    Geometric(GeometricType),
    /// A value of PostGIS `geometry` or `geography`.
    Geometry,
    /// A value of `hstore`, as an object if `object` is true, otherwise as a string with
    /// PostgreSQL's text.
    Hstore {
        object: bool,
    },
    Array(Box<Array>),
    Range(Box<JsonForm>),
    Multirange(Box<JsonForm>),
    Composite(Box<[Attribute]>),
    /// An anonymous composite. Its attributes have no names and no reliable types.
    Record,
    /// A number or boolean, written as a string.
    Quoted(Box<JsonForm>),
}

#[derive(Clone, Debug)]
pub(super) struct Array {
    pub(super) element: JsonForm,
    /// The separator of the elements in the text format (`pg_type.typdelim`).
    pub(super) delimiter: u8,
}

/// The form of an attribute of a composite.
#[derive(Clone, Debug)]
pub(super) struct Attribute {
    /// The text before the attribute: `{"name":` for the first one, `,"name":` for the others.
    pub(super) prefix: Box<[u8]>,
    pub(super) oid: u32,
    pub(super) form: JsonForm,
}

impl JsonForm {
    /// The form of a type. If `format` is given, dates and times have this format, except in
    /// composites.
    pub(super) fn of(r#type: &Type, format: Option<&Arc<DateFormat>>) -> Self {
        match *r#type {
            Type::BOOL => Self::Bool,
            Type::INT2 => Self::Int2,
            Type::INT4 => Self::Int4,
            Type::INT8 => Self::Int8,
            Type::OID => Self::Oid,
            Type::FLOAT4 => Self::Float4,
            Type::FLOAT8 => Self::Float8,
            Type::NUMERIC => Self::Numeric,
            Type::TEXT | Type::VARCHAR | Type::BPCHAR | Type::NAME | Type::UNKNOWN => Self::Text,
            Type::JSON => Self::Json,
            Type::JSONB => Self::Jsonb,
            Type::UUID => Self::Uuid,
            Type::BYTEA => Self::Bytea,
            Type::INTERVAL => Self::Interval,
            Type::POINT => Self::Geometric(GeometricType::Point),
            Type::LINE => Self::Geometric(GeometricType::Line),
            Type::LSEG => Self::Geometric(GeometricType::Segment),
            Type::BOX => Self::Geometric(GeometricType::Box),
            Type::PATH => Self::Geometric(GeometricType::Path),
            Type::POLYGON => Self::Geometric(GeometricType::Polygon),
            Type::CIRCLE => Self::Geometric(GeometricType::Circle),
            Type::RECORD => Self::Record,
            // PostgreSQL classifies `record[]` as a pseudo-type, not as an array.
            Type::RECORD_ARRAY => Self::Array(Box::new(Array {
                element: Self::Record,
                delimiter: b',',
            })),
            _ => Self::constructed(r#type, format),
        }
    }

    /// The form of a type that [`JsonForm::of`] does not list.
    fn constructed(r#type: &Type, format: Option<&Arc<DateFormat>>) -> Self {
        match r#type.kind() {
            Kind::Simple => match (MomentType::of(r#type), r#type.name()) {
                (Some(moment), _) => Self::Moment(moment, format.cloned()),
                (None, "citext") => Self::Text,
                (None, _) if is_spatial(r#type) => Self::Geometry,
                (None, _) if is_hstore(r#type) => Self::Hstore { object: false },
                (None, _) => Self::Foreign,
            },
            Kind::Enum(_) => Self::Text,
            Kind::Domain(base) => Self::of(base, format),
            Kind::Array(element) => Self::Array(Box::new(Array {
                element: Self::of(element, format),
                delimiter: delimiter(r#type, element),
            })),
            Kind::Range(subtype) => Self::Range(Box::new(Self::of(subtype, format))),
            Kind::Multirange(subtype) => Self::Multirange(Box::new(Self::of(subtype, format))),
            Kind::Composite(fields) => Self::Composite(
                fields
                    .iter()
                    .enumerate()
                    .map(|(at, field)| Attribute::of(at, field))
                    .collect(),
            ),
            _ => Self::Foreign,
        }
    }

    /// The form with 64-bit integers and `oid` written as strings, also in arrays and ranges.
    /// Composites and multiranges are unchanged.
    pub(super) fn exact(self) -> Self {
        match self {
            Self::Int8 | Self::Oid => Self::Quoted(Box::new(self)),
            Self::Array(array) => Self::Array(Box::new(Array {
                element: array.element.exact(),
                delimiter: array.delimiter,
            })),
            Self::Range(bound) => Self::Range(Box::new(bound.exact())),
            other => other,
        }
    }

    /// The form with `hstore` written as objects, also in arrays and composites.
    pub(super) fn with_hstore_objects(self) -> Self {
        match self {
            Self::Hstore { .. } => Self::Hstore { object: true },
            Self::Array(array) => Self::Array(Box::new(Array {
                element: array.element.with_hstore_objects(),
                delimiter: array.delimiter,
            })),
            Self::Composite(attributes) => {
                let attributes = attributes.into_iter().map(|attribute| Attribute {
                    form: attribute.form.with_hstore_objects(),
                    ..attribute
                });
                Self::Composite(attributes.collect())
            }
            other => other,
        }
    }

    /// The form with numbers and booleans written as strings. Arrays, ranges and composites are
    /// unchanged.
    pub(super) fn quoted(self) -> Self {
        match self {
            Self::Bool | Self::Int2 | Self::Int4 | Self::Int8 | Self::Oid => {
                Self::Quoted(Box::new(self))
            }
            Self::Float4 | Self::Float8 => Self::Quoted(Box::new(self)),
            other => other,
        }
    }

    /// Whether the binary format can be decoded, including all elements and attributes.
    pub(super) fn is_binary(&self) -> bool {
        match self {
            Self::Foreign | Self::Hstore { .. } | Self::Record => false,
            Self::Array(array) => array.element.is_binary(),
            Self::Range(inner) | Self::Multirange(inner) | Self::Quoted(inner) => inner.is_binary(),
            Self::Composite(attributes) => attributes
                .iter()
                .all(|attribute| attribute.form.is_binary()),
            _ => true,
        }
    }

    /// Whether values may contain `json` documents, which may have line breaks between tokens. A
    /// `jsonb` document has none.
    pub(super) fn holds_json(&self) -> bool {
        match self {
            Self::Json => true,
            Self::Array(array) => array.element.holds_json(),
            Self::Composite(attributes) => attributes
                .iter()
                .any(|attribute| attribute.form.holds_json()),
            _ => false,
        }
    }
}

impl Attribute {
    fn of(at: usize, field: &Field) -> Self {
        let mut prefix = BytesMut::from(if at == 0 { &b"{"[..] } else { b"," });
        json::string(field.name().as_bytes(), &mut prefix);
        prefix.extend_from_slice(b":");
        Self {
            prefix: prefix[..].into(),
            oid: field.type_().oid(),
            form: JsonForm::of(field.type_(), None),
        }
    }
}

/// The separator of elements in an array's text format.
fn delimiter(array: &Type, element: &Type) -> u8 {
    match *array {
        Type::INT2_VECTOR | Type::OID_VECTOR => b' ',
        _ => array_delimiter(element),
    }
}
