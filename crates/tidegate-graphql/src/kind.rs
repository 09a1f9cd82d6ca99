//! Which GraphQL type the values of a column have.

use tidegate_catalog::model::{ColumnId, Relation};
use tidegate_sql::{Type, TypeKind};

/// The GraphQL type of a column's values, without `!`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    /// What one value is.
    pub named: Named,
    /// Whether the column holds lists of them.
    pub list: bool,
}

/// The named types of column values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Named {
    /// A scalar, by its name.
    Scalar(&'static str),
    /// An object that is the value of one column.
    Object(&'static ValueObject),
}

/// An object type for values that have parts: ranges and geometric values.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ValueObject {
    /// The type's name.
    pub name: &'static str,
    /// What it stands for.
    pub description: &'static str,
    /// Its fields.
    pub members: &'static [Member],
}

/// A field of a [`ValueObject`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Member {
    /// The name of the field.
    pub name: &'static str,
    /// What it holds.
    pub holds: Holds,
    /// Whether it is never null.
    pub not_null: bool,
}

/// What a member holds.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Holds {
    /// A scalar, which stands under the same name in the value's JSON form.
    Scalar(&'static str),
    /// An object, which stands under the same name.
    Object(&'static ValueObject),
    /// A list of objects, which stands under the same name.
    List(&'static ValueObject),
    /// The value's JSON form is itself the list of objects.
    Itself(&'static ValueObject),
}

const fn member(name: &'static str, holds: Holds) -> Member {
    Member {
        name,
        holds,
        not_null: true,
    }
}

const fn bound(name: &'static str, scalar: &'static str) -> Member {
    Member {
        name,
        holds: Holds::Scalar(scalar),
        not_null: false,
    }
}

static POINT: ValueObject = ValueObject {
    name: "Point",
    description: "A point of the plane.",
    members: &[
        member("x", Holds::Scalar("Float")),
        member("y", Holds::Scalar("Float")),
    ],
};
static LINE: ValueObject = ValueObject {
    name: "Line",
    description: "The endless line Ax + By + C = 0.",
    members: &[
        member("A", Holds::Scalar("Float")),
        member("B", Holds::Scalar("Float")),
        member("C", Holds::Scalar("Float")),
    ],
};
static LSEG: ValueObject = ValueObject {
    name: "Lseg",
    description: "A line segment.",
    members: &[
        member("start", Holds::Object(&POINT)),
        member("end", Holds::Object(&POINT)),
    ],
};
static BOX: ValueObject = ValueObject {
    name: "Box",
    description: "A rectangle by two opposite corners.",
    members: &[
        member("start", Holds::Object(&POINT)),
        member("end", Holds::Object(&POINT)),
    ],
};
static CIRCLE: ValueObject = ValueObject {
    name: "Circle",
    description: "A circle.",
    members: &[
        member("center", Holds::Object(&POINT)),
        member("radius", Holds::Scalar("Float")),
    ],
};
static PATH: ValueObject = ValueObject {
    name: "Path",
    description: "A path of points, open or closed.",
    members: &[
        member("open", Holds::Scalar("Boolean")),
        member("points", Holds::List(&POINT)),
    ],
};
static POLYGON: ValueObject = ValueObject {
    name: "Polygon",
    description: "A polygon by its corners.",
    members: &[member("points", Holds::Itself(&POINT))],
};

macro_rules! range {
    ($constant:ident, $name:literal, $of:literal, $scalar:literal) => {
        static $constant: ValueObject = ValueObject {
            name: $name,
            description: concat!(
                "A range of ",
                $of,
                "; a bound that is null is none, an empty range has no bounds at all."
            ),
            members: &[
                bound("lower", $scalar),
                bound("upper", $scalar),
                member("lowerInclusive", Holds::Scalar("Boolean")),
                member("upperInclusive", Holds::Scalar("Boolean")),
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

/// All object types for values, in the order of the specification.
pub(crate) static VALUE_OBJECTS: [&ValueObject; 13] = [
    &POINT, &LINE, &LSEG, &BOX, &CIRCLE, &PATH, &POLYGON, &INT4RANGE, &INT8RANGE, &NUMRANGE,
    &TSRANGE, &TSTZRANGE, &DATERANGE,
];

/// The scalars with their descriptions; `true` for those of GraphQL itself.
pub(crate) static SCALARS: [(&str, &str, bool); 9] = [
    ("Boolean", "`true` or `false`.", true),
    (
        "Date",
        "A day, as `YYYY-MM-DD`; years before 1 end in ` BC`. Input takes every form that PostgreSQL reads.",
        false,
    ),
    (
        "DateTime",
        "A point in time, as `YYYY-MM-DDTHH:MM:SS`, with a `Z` where the column knows its time zone. Input takes every form that PostgreSQL reads.",
        false,
    ),
    ("Float", "A number in double precision.", true),
    ("ID", "A key; input takes a string or a number.", true),
    ("Int", "A whole number of 32 bits.", true),
    ("JSON", "Any JSON value.", false),
    ("String", "Text.", true),
    (
        "Time",
        "A time of day, as `HH:MM:SS`. Input takes every form that PostgreSQL reads.",
        false,
    ),
];

impl Kind {
    /// The kind of a column: primary key columns are of type `ID`, whatever they are made of.
    pub(crate) fn of_column(relation: &Relation, id: ColumnId) -> Self {
        if relation.is_key(id) {
            return Self::scalar("ID");
        }
        Self::of_type(&relation.column(id).r#type)
    }

    /// The kind of a PostgreSQL type.
    pub(crate) fn of_type(r#type: &Type) -> Self {
        match r#type.kind() {
            TypeKind::Domain(base) => Self::of_type(base),
            TypeKind::Array(_) if matches!(*r#type, Type::INT2_VECTOR | Type::OID_VECTOR) => {
                Self::scalar("String")
            }
            TypeKind::Array(element) => {
                // Lists in a list, by a domain, are shown as PostgreSQL writes them.
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

    /// The name of the type of one value.
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
        Type::JSON | Type::JSONB => "JSON",
        Type::DATE => "Date",
        Type::TIME | Type::TIMETZ => "Time",
        Type::TIMESTAMP | Type::TIMESTAMPTZ => "DateTime",
        _ => "String",
    }
}
