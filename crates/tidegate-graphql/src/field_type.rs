//! The GraphQL types of columns.

use tidegate_catalog::model::{ColumnId, Relation};
use tidegate_values::{Type, TypeKind, base_type, is_hstore, is_spatial};

/// The GraphQL type of a column's values, without `!`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FieldType {
    /// The type of the value, or of each element if the value is a list.
    pub named: Named,
    /// Whether a value of the column is a list.
    pub list: bool,
}

/// The type of a value that is not a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Named {
    /// A scalar type, by its name.
    Scalar(&'static str),
    /// An object type, for a range or geometric value.
    Object(&'static ValueObject),
}

/// An object type for ranges and geometric values.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ValueObject {
    pub name: &'static str,
    pub description: &'static str,
    /// The fields of the type.
    pub members: &'static [ValueMember],
}

/// A field of a [`ValueObject`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ValueMember {
    pub name: &'static str,
    /// The type of the field, and where its value is in the JSON form.
    pub content: MemberContent,
    /// Whether the field is non-null.
    pub not_null: bool,
}

/// The content of a field of a [`ValueObject`]. Unless the content is [`MemberContent::Whole`], the
/// JSON form of the enclosing object has a member with the name of the field, and the value of this
/// member is the value of the field.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum MemberContent {
    /// A scalar of the type with this name.
    Scalar(&'static str),
    /// An object of this type.
    Object(&'static ValueObject),
    /// A list of objects of this type.
    List(&'static ValueObject),
    /// A list of objects of this type. The JSON form of the enclosing object, such as a polygon, is
    /// not an object but this list.
    Whole(&'static ValueObject),
}

const fn member(name: &'static str, content: MemberContent) -> ValueMember {
    ValueMember {
        name,
        content,
        not_null: true,
    }
}

const fn bound(name: &'static str, scalar: &'static str) -> ValueMember {
    ValueMember {
        name,
        content: MemberContent::Scalar(scalar),
        not_null: false,
    }
}

static POINT: ValueObject = ValueObject {
    name: "Point",
    description: "A point of the plane.",
    members: &[
        member("x", MemberContent::Scalar("Float")),
        member("y", MemberContent::Scalar("Float")),
    ],
};
static LINE: ValueObject = ValueObject {
    name: "Line",
    description: "The infinite line Ax + By + C = 0.",
    members: &[
        member("A", MemberContent::Scalar("Float")),
        member("B", MemberContent::Scalar("Float")),
        member("C", MemberContent::Scalar("Float")),
    ],
};
static LSEG: ValueObject = ValueObject {
    name: "Lseg",
    description: "A line segment.",
    members: &[
        member("start", MemberContent::Object(&POINT)),
        member("end", MemberContent::Object(&POINT)),
    ],
};
static BOX: ValueObject = ValueObject {
    name: "Box",
    description: "A rectangle by two opposite corners.",
    members: &[
        member("start", MemberContent::Object(&POINT)),
        member("end", MemberContent::Object(&POINT)),
    ],
};
static CIRCLE: ValueObject = ValueObject {
    name: "Circle",
    description: "A circle.",
    members: &[
        member("center", MemberContent::Object(&POINT)),
        member("radius", MemberContent::Scalar("Float")),
    ],
};
static PATH: ValueObject = ValueObject {
    name: "Path",
    description: "A path of points, open or closed.",
    members: &[
        member("open", MemberContent::Scalar("Boolean")),
        member("points", MemberContent::List(&POINT)),
    ],
};
static POLYGON: ValueObject = ValueObject {
    name: "Polygon",
    description: "A polygon by its corners.",
    members: &[member("points", MemberContent::Whole(&POINT))],
};

macro_rules! range {
    ($constant:ident, $name:literal, $of:literal, $scalar:literal) => {
        static $constant: ValueObject = ValueObject {
            name: $name,
            description: concat!(
                "A range of ",
                $of,
                "; a null bound means unbounded, an empty range has no bounds at all."
            ),
            members: &[
                bound("lower", $scalar),
                bound("upper", $scalar),
                member("lowerInclusive", MemberContent::Scalar("Boolean")),
                member("upperInclusive", MemberContent::Scalar("Boolean")),
                bound("empty", "Boolean"),
            ],
        };
    };
}

range!(INT4RANGE, "Int4range", "int4", "Int");
range!(INT8RANGE, "Int8range", "int8", "String");
range!(NUMRANGE, "Numrange", "numeric", "String");
range!(TSRANGE, "Tsrange", "timestamp", "DateTime");
range!(TSTZRANGE, "Tstzrange", "timestamptz", "DateTime");
range!(DATERANGE, "Daterange", "date", "Date");

/// All object types of values.
pub(crate) static VALUE_OBJECTS: [&ValueObject; 13] = [
    &POINT, &LINE, &LSEG, &BOX, &CIRCLE, &PATH, &POLYGON, &INT4RANGE, &INT8RANGE, &NUMRANGE,
    &TSRANGE, &TSTZRANGE, &DATERANGE,
];

#[derive(Debug)]
pub(crate) struct ScalarType {
    pub name: &'static str,
    pub description: &'static str,
    pub input: ScalarInput,
    /// The URL of the scalar's specification (GraphQL, section 3.13.4, "@specifiedBy").
    pub specified_by: Option<&'static str>,
}

/// The input that a scalar accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScalarInput {
    /// The input that GraphQL defines for this standard scalar.
    Standard,
    /// Any string.
    Strings,
    /// Any JSON value.
    AnyJson,
}

const fn scalar_type(
    name: &'static str,
    description: &'static str,
    input: ScalarInput,
) -> ScalarType {
    ScalarType {
        name,
        description,
        input,
        specified_by: None,
    }
}

pub(crate) static SCALARS: [ScalarType; 10] = [
    scalar_type("Boolean", "`true` or `false`.", ScalarInput::Standard),
    scalar_type(
        "Date",
        "A day, as `YYYY-MM-DD`; years before 1 end in ` BC`. Input takes every form that PostgreSQL reads.",
        ScalarInput::Strings,
    ),
    scalar_type(
        "DateTime",
        "A point in time, as `YYYY-MM-DDTHH:MM:SS`, with a `Z` where the column has a time zone. Input takes every form that PostgreSQL reads.",
        ScalarInput::Strings,
    ),
    scalar_type(
        "Float",
        "A number in double precision.",
        ScalarInput::Standard,
    ),
    ScalarType {
        name: "GeoJSON",
        description: "A GeoJSON geometry object. A reference system other than WGS 84 is in the member `crs`. Input also takes a string in every form that PostGIS reads.",
        input: ScalarInput::AnyJson,
        specified_by: Some("https://www.rfc-editor.org/rfc/rfc7946"),
    },
    scalar_type(
        "ID",
        "A key; input takes a string or a number.",
        ScalarInput::Standard,
    ),
    scalar_type("Int", "A whole number of 32 bits.", ScalarInput::Standard),
    scalar_type(
        "JSON",
        "Any JSON value: a json or jsonb document, or the JSON form of an interval, a composite, a multirange or an hstore.",
        ScalarInput::AnyJson,
    ),
    scalar_type("String", "Text.", ScalarInput::Standard),
    scalar_type(
        "Time",
        "A time of day, as `HH:MM:SS`. Input takes every form that PostgreSQL reads.",
        ScalarInput::Strings,
    ),
];

/// Whether the scalar with this name accepts any JSON value as input.
pub(crate) fn takes_any_json(name: &str) -> bool {
    let mut scalars = SCALARS.iter();
    scalars.any(|scalar| scalar.name == name && scalar.input == ScalarInput::AnyJson)
}

impl FieldType {
    /// The GraphQL type of a column. A primary key column is an `ID`, whatever its PostgreSQL type.
    pub(crate) fn of_column(relation: &Relation, id: ColumnId) -> Self {
        if relation.is_key(id) {
            return Self::scalar("ID");
        }
        Self::of_type(&relation.column(id).r#type)
    }

    /// Whether the column may contain the JSON value `null`, which is not NULL in SQL. If so, the
    /// field can be null even if the column is NOT NULL.
    pub(crate) fn may_be_json_null(relation: &Relation, id: ColumnId) -> bool {
        let r#type = base_type(&relation.column(id).r#type);
        !relation.is_key(id) && matches!(*r#type, Type::JSON | Type::JSONB)
    }

    /// The GraphQL type of a PostgreSQL type.
    pub(crate) fn of_type(r#type: &Type) -> Self {
        match r#type.kind() {
            TypeKind::Domain(base) => Self::of_type(base),
            TypeKind::Array(_) if matches!(*r#type, Type::INT2_VECTOR | Type::OID_VECTOR) => {
                Self::scalar("String")
            }
            TypeKind::Array(element) => {
                // A [`FieldType`] has at most one level of lists. If the elements of an array are
                // arrays themselves, because their type is a domain over an array, each element is
                // written as PostgreSQL's text.
                let element = match Self::of_type(element) {
                    Self { list: true, .. } => Self::scalar("String"),
                    one => one,
                };
                Self {
                    list: true,
                    ..element
                }
            }
            _ => Self {
                named: named(r#type),
                list: false,
            },
        }
    }

    const fn scalar(name: &'static str) -> Self {
        Self {
            named: Named::Scalar(name),
            list: false,
        }
    }

    /// The name of the type, without the list.
    pub(crate) fn name(self) -> &'static str {
        match self.named {
            Named::Scalar(name) => name,
            Named::Object(object) => object.name,
        }
    }
}

fn named(r#type: &Type) -> Named {
    let object = match *r#type {
        Type::POINT => &POINT,
        Type::LINE => &LINE,
        Type::LSEG => &LSEG,
        Type::BOX => &BOX,
        Type::CIRCLE => &CIRCLE,
        Type::PATH => &PATH,
        Type::POLYGON => &POLYGON,
        Type::INT4_RANGE => &INT4RANGE,
        Type::INT8_RANGE => &INT8RANGE,
        Type::NUM_RANGE => &NUMRANGE,
        Type::TS_RANGE => &TSRANGE,
        Type::TSTZ_RANGE => &TSTZRANGE,
        Type::DATE_RANGE => &DATERANGE,
        _ => return Named::Scalar(scalar(r#type)),
    };
    Named::Object(object)
}

fn scalar(r#type: &Type) -> &'static str {
    match *r#type {
        Type::INT2 | Type::INT4 => "Int",
        Type::FLOAT4 | Type::FLOAT8 => "Float",
        Type::BOOL => "Boolean",
        Type::JSON | Type::JSONB | Type::INTERVAL => "JSON",
        Type::DATE => "Date",
        Type::TIME | Type::TIMETZ => "Time",
        Type::TIMESTAMP | Type::TIMESTAMPTZ => "DateTime",
        _ if is_spatial(r#type) => "GeoJSON",
        _ if is_hstore(r#type) => "JSON",
        _ => match r#type.kind() {
            TypeKind::Composite(_) | TypeKind::Multirange(_) => "JSON",
            _ => "String",
        },
    }
}
