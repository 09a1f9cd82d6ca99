//! What the where language knows of PostgreSQL's types.

use tidegate_sql::{Type, TypeKind};

use crate::operator::Operator;

/// Types that take the same values and have the same operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    Boolean,
    /// An integer from the first number to the second.
    Integer(i64, i64),
    Float,
    Numeric,
    Money,
    /// `text`, `varchar`, `char(n)`, `name`, `citext`.
    Text,
    Enum,
    Uuid,
    Bytes,
    Interval,
    /// Dates and times.
    Moment,
    Jsonb,
    Array,
    Range,
    Multirange,
    Composite,
    /// A geometric type whose rows can be told apart by this operator, if there is one.
    Geometric(Option<&'static str>),
    /// A type without `=`, such as `json`, `xml` and `jsonpath`.
    Incomparable,
    /// Any other type, built in or of an extension.
    Other,
}

const EQUALITY: &[Operator] = &[
    Operator::Eq,
    Operator::Neq,
    Operator::In,
    Operator::NotIn,
    Operator::IsNull,
];
const ORDER: &[Operator] = &[Operator::Gt, Operator::Gte, Operator::Lt, Operator::Lte];
const TEXT: &[Operator] = &[
    Operator::Like,
    Operator::ILike,
    Operator::StartsWith,
    Operator::EndsWith,
    Operator::Contains,
    Operator::Regex,
    Operator::IRegex,
];
const CONTAINMENT: &[Operator] = &[
    Operator::Contains,
    Operator::ContainedBy,
    Operator::Overlaps,
];
const NULL: &[Operator] = &[Operator::IsNull];

impl Family {
    /// The family of a type; a domain's is that of its base.
    pub(crate) fn of(r#type: &Type) -> Self {
        match r#type.kind() {
            TypeKind::Domain(base) => Self::of(base),
            TypeKind::Enum(_) => Self::Enum,
            TypeKind::Array(_) => Self::Array,
            TypeKind::Range(_) => Self::Range,
            TypeKind::Multirange(_) => Self::Multirange,
            TypeKind::Composite(_) => Self::Composite,
            _ => Self::of_simple(r#type),
        }
    }

    fn of_simple(r#type: &Type) -> Self {
        match *r#type {
            Type::BOOL => Self::Boolean,
            Type::INT2 => Self::Integer(i16::MIN.into(), i16::MAX.into()),
            Type::INT4 => Self::Integer(i32::MIN.into(), i32::MAX.into()),
            Type::INT8 => Self::Integer(i64::MIN, i64::MAX),
            // `oidin` takes negative numbers for large ones.
            Type::OID => Self::Integer(i32::MIN.into(), u32::MAX.into()),
            Type::FLOAT4 | Type::FLOAT8 => Self::Float,
            Type::NUMERIC => Self::Numeric,
            Type::MONEY => Self::Money,
            Type::TEXT | Type::VARCHAR | Type::BPCHAR | Type::NAME => Self::Text,
            Type::UUID => Self::Uuid,
            Type::BYTEA => Self::Bytes,
            Type::INTERVAL => Self::Interval,
            Type::DATE | Type::TIME | Type::TIMETZ | Type::TIMESTAMP | Type::TIMESTAMPTZ => {
                Self::Moment
            }
            Type::JSON
            | Type::XML
            | Type::JSONPATH
            | Type::REFCURSOR
            | Type::TXID_SNAPSHOT
            | Type::PG_SNAPSHOT
            | Type::PG_NODE_TREE => Self::Incomparable,
            Type::JSONB => Self::Jsonb,
            // `=` of boxes and circles compares areas, that of paths numbers of points.
            Type::POINT | Type::BOX | Type::POLYGON | Type::CIRCLE => Self::Geometric(Some("~=")),
            Type::LINE | Type::LSEG => Self::Geometric(Some("=")),
            Type::PATH => Self::Geometric(None),
            _ if is_citext(r#type) => Self::Text,
            _ => Self::Other,
        }
    }

    /// The operators that a request can name for a type, in the order in which errors list them.
    pub(crate) fn operators(r#type: &Type) -> impl Iterator<Item = Operator> {
        let family = Self::of(r#type);
        let has_equality = has_equality(r#type);
        let order = if has_order(r#type) && !is_hstore(r#type) {
            ORDER
        } else {
            &[]
        };
        let own: [&[Operator]; 3] = match family {
            Self::Text => [EQUALITY, order, TEXT],
            Self::Array | Self::Range | Self::Multirange if has_equality => {
                [EQUALITY, order, CONTAINMENT]
            }
            Self::Jsonb => [EQUALITY, order, CONTAINMENT],
            _ if has_equality => [EQUALITY, order, &[]],
            _ => [NULL, &[], &[]],
        };
        own.into_iter().flatten().copied()
    }

    /// Whether the JSON form of its values can be an object.
    pub(crate) fn takes_objects(self) -> bool {
        matches!(
            self,
            Self::Interval
                | Self::Jsonb
                | Self::Range
                | Self::Multirange
                | Self::Composite
                | Self::Geometric(_)
                | Self::Other
        )
    }
}

/// Whether PostgreSQL can tell two values of the type apart, down to elements and attributes.
fn has_equality(r#type: &Type) -> bool {
    match r#type.kind() {
        TypeKind::Domain(inner) => has_equality(inner),
        // Arrays and composites go by the types' default operator classes, which these lack.
        TypeKind::Array(inner) => has_equality(inner) && !is_geometric(inner),
        TypeKind::Composite(fields) => fields
            .iter()
            .all(|field| has_equality(field.type_()) && !is_geometric(field.type_())),
        _ => !matches!(
            Family::of(r#type),
            Family::Incomparable | Family::Geometric(None)
        ),
    }
}

/// Whether PostgreSQL can sort by values of the type, down to elements and attributes.
pub fn has_order(r#type: &Type) -> bool {
    match r#type.kind() {
        TypeKind::Domain(inner) | TypeKind::Array(inner) => has_order(inner),
        TypeKind::Composite(fields) => fields.iter().all(|field| has_order(field.type_())),
        _ => {
            let has_none = matches!(*r#type, Type::XID | Type::CID | Type::ACLITEM);
            !has_none && has_groups(r#type)
        }
    }
}

/// Whether PostgreSQL can make groups of equal values of the type, down to elements and attributes.
pub fn has_groups(r#type: &Type) -> bool {
    match r#type.kind() {
        TypeKind::Domain(inner) | TypeKind::Array(inner) => has_groups(inner),
        TypeKind::Composite(fields) => fields.iter().all(|field| has_groups(field.type_())),
        _ => !matches!(
            Family::of(r#type),
            Family::Incomparable | Family::Geometric(_)
        ),
    }
}

fn is_geometric(r#type: &Type) -> bool {
    matches!(Family::of(r#type), Family::Geometric(_))
}

/// The type below all domains.
pub(crate) fn base(r#type: &Type) -> &Type {
    match r#type.kind() {
        TypeKind::Domain(inner) => base(inner),
        _ => r#type,
    }
}

/// The type as which a column has to be cast before PostgreSQL compares it: it does not take a
/// domain over an enum for the enum that its operators are made for.
pub(crate) fn cast_to_compare(r#type: &Type) -> Option<&Type> {
    let is_domain = matches!(r#type.kind(), TypeKind::Domain(_));
    Some(base(r#type)).filter(|base| is_domain && matches!(base.kind(), TypeKind::Enum(_)))
}

/// The type as which PostgreSQL compares a column with a number of an SQL text that is none of the
/// column's own type (PostgreSQL, "Operators", type resolution).
pub(crate) fn number_type(r#type: &Type) -> &Type {
    match base(r#type) {
        &Type::FLOAT4 => &Type::FLOAT8,
        &Type::INT2 | &Type::INT4 | &Type::INT8 => &Type::NUMERIC,
        base => base,
    }
}

/// Whether it is the extension's text type that ignores letter case.
pub(crate) fn is_citext(r#type: &Type) -> bool {
    r#type.name() == "citext" && r#type.schema() != "pg_catalog"
}

/// Whether it is the extension's type of pairs, which can be sorted but has no `<`.
fn is_hstore(r#type: &Type) -> bool {
    let r#type = base(r#type);
    r#type.name() == "hstore" && r#type.schema() != "pg_catalog"
}

/// The schema of the type's operators. Those of built-in types, and the polymorphic ones of
/// enums, arrays, ranges and composites, are in `pg_catalog`; an extension makes its own beside
/// its types, and moves them together.
pub(crate) fn operator_schema(r#type: &Type) -> &str {
    let r#type = base(r#type);
    match r#type.kind() {
        TypeKind::Simple => r#type.schema(),
        _ => "pg_catalog",
    }
}

/// A type's name as SQL writes it.
pub(crate) fn written(r#type: &Type) -> String {
    match r#type.kind() {
        TypeKind::Array(element) => format!("{}[]", written(element)),
        _ => r#type.name().to_owned(),
    }
}
