//! The JSON form of a type's values.

use serde::{Deserialize, Serialize};
use tidegate_values::{Type, TypeKind};

/// Which JSON form the values of a type take: what [`tidegate_values::codec`] writes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// `true` and `false`.
    Boolean,
    /// A number: the integers, `oid`, and the floats, whose NaN and infinities are strings.
    Number,
    /// A string: texts, `numeric`, moments however formatted, `bytea`, and every other type.
    Text,
    /// Any JSON: `json` and `jsonb`.
    Json,
    /// `interval` as an object of numbers.
    Interval,
    /// `point`.
    Point,
    /// `line`.
    Line,
    /// `lseg` and `box`.
    Segment,
    /// `path`.
    Path,
    /// `polygon`.
    Polygon,
    /// `circle`.
    Circle,
    /// `PostGIS`: a `GeoJSON` geometry.
    Geometry,
    /// An array of this.
    Array(Box<Form>),
    /// A range over this.
    Range(Box<Form>),
    /// An array of ranges over this.
    Multirange(Box<Form>),
    /// An object by attribute.
    Composite(Vec<(String, Form)>),
    /// An object of strings: an anonymous composite.
    Record,
}

impl Form {
    /// The form of a type.
    pub fn of(r#type: &Type) -> Self {
        match *r#type {
            Type::BOOL => Self::Boolean,
            Type::INT2 | Type::INT4 | Type::INT8 | Type::OID | Type::FLOAT4 | Type::FLOAT8 => {
                Self::Number
            }
            Type::JSON | Type::JSONB => Self::Json,
            Type::INTERVAL => Self::Interval,
            Type::POINT => Self::Point,
            Type::LINE => Self::Line,
            Type::LSEG | Type::BOX => Self::Segment,
            Type::PATH => Self::Path,
            Type::POLYGON => Self::Polygon,
            Type::CIRCLE => Self::Circle,
            Type::RECORD => Self::Record,
            _ => Self::constructed(r#type),
        }
    }

    fn constructed(r#type: &Type) -> Self {
        match r#type.kind() {
            TypeKind::Simple if matches!(r#type.name(), "geometry" | "geography") => Self::Geometry,
            TypeKind::Domain(base) => Self::of(base),
            TypeKind::Array(element) => Self::Array(Box::new(Self::of(element))),
            TypeKind::Range(bound) => Self::Range(Box::new(Self::of(bound))),
            TypeKind::Multirange(bound) => Self::Multirange(Box::new(Self::of(bound))),
            TypeKind::Composite(attributes) => Self::Composite(
                attributes
                    .iter()
                    .map(|attribute| (attribute.name().to_owned(), Self::of(attribute.type_())))
                    .collect(),
            ),
            _ => Self::Text,
        }
    }
}

impl Form {
    /// Shows this form and every form inside it.
    pub(crate) fn walk(&self, see: &mut dyn FnMut(&Self)) {
        see(self);
        match self {
            Self::Array(inner) | Self::Range(inner) | Self::Multirange(inner) => inner.walk(see),
            Self::Composite(attributes) => attributes.iter().for_each(|(_, form)| form.walk(see)),
            _ => {}
        }
    }
}
