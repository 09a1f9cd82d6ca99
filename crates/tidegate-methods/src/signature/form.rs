//! The JSON form of a type's values.

use serde::{Deserialize, Serialize};
use tidegate_values::{Type, TypeKind};

/// The form that the values of a type have in JSON, as [`tidegate_values::codec`] writes them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ValueForm {
    /// `true` or `false`.
    Boolean,
    /// A number, for integers, `oid` and floats. NaN and the infinities are strings.
    Number,
    /// A string, for text, `numeric`, dates and times in any format, `bytea`, and every type that
    /// has no form of its own.
    Text,
    /// Any JSON value, for `json` and `jsonb`.
    Json,
    /// An object of numbers, for `interval`.
    Interval,
    /// An object, for `point`.
    Point,
    /// An object, for `line`.
    Line,
    /// An object, for `lseg` and `box`.
    Segment,
    /// An object, for `path`.
    Path,
    /// An array of points, for `polygon`.
    Polygon,
    /// An object, for `circle`.
    Circle,
    /// A `GeoJSON` geometry, for the types of `PostGIS`.
    Geometry,
    /// An array of values of this form.
    Array(Box<ValueForm>),
    /// An object, for a range over values of this form.
    Range(Box<ValueForm>),
    /// An array of ranges over values of this form.
    Multirange(Box<ValueForm>),
    /// An object with a member for each attribute, for a composite.
    Composite(Vec<(String, ValueForm)>),
    /// An object of strings, for an anonymous composite (type `record`).
    Record,
}

impl ValueForm {
    /// The form that the values of a type have in JSON.
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

impl ValueForm {
    /// Calls `visit` with this form, and with every form that it contains.
    pub(crate) fn walk(&self, visit: &mut dyn FnMut(&Self)) {
        visit(self);
        match self {
            Self::Array(inner) | Self::Range(inner) | Self::Multirange(inner) => inner.walk(visit),
            Self::Composite(attributes) => attributes.iter().for_each(|(_, form)| form.walk(visit)),
            _ => {}
        }
    }
}
