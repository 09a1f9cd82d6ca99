//! Which JSON form the values of a type take, decided once per column.

use std::sync::Arc;

use bytes::BytesMut;
use postgres_types::{Field, Kind, Type};

use super::pg_geometric::Shape;
use crate::append::json;
use crate::datetime::{DateFormat, MomentType};
use crate::type_property::{array_delimiter, is_hstore, is_spatial};

/// PostgreSQL's limit (`MAXDIM`).
pub(super) const MOST_DIMENSIONS: usize = 6;

/// The JSON form of a type's values.
#[derive(Clone, Debug)]
pub(super) enum Form {
    Bool,
    Int2,
    Int4,
    Int8,
    Oid,
    Float4,
    Float8,
    Numeric,
    /// A string; the binary form is the text.
    Text,
    /// A string: the text form of a type whose binary form is not read here.
    Foreign,
    Json,
    Jsonb,
    Uuid,
    Bytea,
    Moment(MomentType, Option<Arc<DateFormat>>),
    Interval,
    Geometric(Shape),
    /// PostGIS `geometry` and `geography`.
    Geometry,
    /// `hstore`: its text as a string, or an object.
    Hstore {
        object: bool,
    },
    Array(Box<Array>),
    Range(Box<Form>),
    Multirange(Box<Form>),
    Composite(Box<[Attribute]>),
    /// An anonymous composite, whose attributes have neither names nor reliable types.
    Record,
    /// A number or a boolean in quotes.
    Quoted(Box<Form>),
}

/// An array's elements.
#[derive(Clone, Debug)]
pub(super) struct Array {
    pub(super) element: Form,
    /// What separates elements in the text form (`pg_type.typdelim`).
    pub(super) delimiter: u8,
}

/// An attribute of a composite.
#[derive(Clone, Debug)]
pub(super) struct Attribute {
    /// `{"name":` for the first attribute, `,"name":` for the others.
    pub(super) prefix: Box<[u8]>,
    pub(super) oid: u32,
    pub(super) form: Form,
}

impl Form {
    /// The form of a type; moments take `format`.
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
            Type::POINT => Self::Geometric(Shape::Point),
            Type::LINE => Self::Geometric(Shape::Line),
            Type::LSEG => Self::Geometric(Shape::Segment),
            Type::BOX => Self::Geometric(Shape::Box),
            Type::PATH => Self::Geometric(Shape::Path),
            Type::POLYGON => Self::Geometric(Shape::Polygon),
            Type::CIRCLE => Self::Geometric(Shape::Circle),
            Type::RECORD => Self::Record,
            // PostgreSQL counts it among the pseudo-types, not the arrays.
            Type::RECORD_ARRAY => Self::Array(Box::new(Array {
                element: Self::Record,
                delimiter: b',',
            })),
            _ => Self::constructed(r#type, format),
        }
    }

    /// The form of a type that is not one of the built-in scalars.
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

    /// The form with 64-bit integers and `oid` as strings, also in arrays and ranges, but not in
    /// composites and multiranges.
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

    /// The form with `hstore` as objects, also in arrays and composites.
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

    /// The form as a string.
    pub(super) fn quoted(self) -> Self {
        match self {
            Self::Bool | Self::Int2 | Self::Int4 | Self::Int8 | Self::Oid => {
                Self::Quoted(Box::new(self))
            }
            Self::Float4 | Self::Float8 => Self::Quoted(Box::new(self)),
            other => other,
        }
    }

    /// Whether the binary form can be read, down to the last attribute.
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

    /// Whether values may hold line breaks that a caller wrote between JSON tokens.
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
            form: Form::of(field.type_(), None),
        }
    }
}

/// What separates elements in an array's text form.
fn delimiter(array: &Type, element: &Type) -> u8 {
    match *array {
        Type::INT2_VECTOR | Type::OID_VECTOR => b' ',
        _ => array_delimiter(element),
    }
}
