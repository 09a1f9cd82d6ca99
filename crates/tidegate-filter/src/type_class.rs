//! The classes of PostgreSQL's types, and the operators of each class.

use tidegate_catalog::model::{Column, Comparisons};
use tidegate_values::{Type, TypeField as Field, TypeKind, base_type, is_spatial};

use crate::operator::Operator;

/// A class of types that accept the same kinds of JSON values. The class determines which operators
/// a filter may use on a column. An operator that PostgreSQL does not define for the column's type
/// is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TypeClass {
    Boolean,
    /// An integer type, with its smallest and its largest value.
    Integer(i64, i64),
    Float,
    Numeric,
    Money,
    /// The types `text`, `varchar`, `char(n)`, `name` and `citext`.
    Text,
    Enum,
    Uuid,
    Bytes,
    Interval,
    /// The types of dates and times.
    Moment,
    Jsonb,
    Array,
    Range,
    Multirange,
    Composite,
    /// A geometric type, with the operator that compares its values for equality, if there is one.
    Geometric(Option<&'static str>),
    /// A type without `=`, such as `json`, `xml` or `jsonpath`.
    Incomparable,
    /// Any other type, built in or from an extension.
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

impl TypeClass {
    /// The class of a type. A domain has the class of its base type.
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
            // `oidin` also accepts negative numbers and wraps them around.
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
            | Type::PG_NODE_TREE
            | Type::GTS_VECTOR
            | Type::PG_NDISTINCT
            | Type::PG_DEPENDENCIES
            | Type::PG_MCV_LIST
            | Type::PG_BRIN_BLOOM_SUMMARY
            | Type::PG_BRIN_MINMAX_MULTI_SUMMARY => Self::Incomparable,
            Type::JSONB => Self::Jsonb,
            // `=` is not used for boxes, circles and paths, because it compares their areas or
            // their numbers of points.
            Type::POINT | Type::BOX | Type::POLYGON | Type::CIRCLE => Self::Geometric(Some("~=")),
            Type::LINE | Type::LSEG => Self::Geometric(Some("=")),
            Type::PATH => Self::Geometric(None),
            _ if is_citext(r#type) => Self::Text,
            _ => Self::Other,
        }
    }

    /// The operators that a request can use on a column, in the order in which errors list them.
    pub(crate) fn operators(column: &Column) -> impl Iterator<Item = Operator> {
        let r#type = &column.r#type;
        let has_equality = has_symbol(column, "=");
        let order = ORDER.iter().filter(|operator| {
            let symbol = match operator {
                Operator::Gt => ">",
                Operator::Gte => ">=",
                Operator::Lt => "<",
                _ => "<=",
            };
            has_symbol(column, symbol)
        });
        let (equality, more): (&[Operator], &[Operator]) = match Self::of(r#type) {
            Self::Text => (EQUALITY, TEXT),
            Self::Array | Self::Range | Self::Multirange if has_equality => (EQUALITY, CONTAINMENT),
            Self::Jsonb => (EQUALITY, CONTAINMENT),
            _ if has_equality => (EQUALITY, &[]),
            _ => (NULL, &[]),
        };
        equality.iter().chain(order).chain(more).copied()
    }
}

/// The catalog's entry on how values of a type can be compared. `None` if there is no entry, as for
/// all built-in types.
fn comparisons<'c>(column: &'c Column, r#type: &Type) -> Option<&'c Comparisons> {
    let mut all = column.comparisons.iter();
    all.find(|known| known.r#type == r#type.oid())
}

/// Whether PostgreSQL can compare two values of the column by `symbol`: `=`, `<`, `<=`, `>` or
/// `>=`. For arrays and composites, this depends on the default operator classes of the element or
/// attribute types.
fn has_symbol(column: &Column, symbol: &str) -> bool {
    let r#type = base_type(&column.r#type);
    if let Some(known) = comparisons(column, r#type) {
        return known.operators.iter().any(|own| **own == *symbol);
    }
    match (r#type.kind(), symbol) {
        (TypeKind::Array(_) | TypeKind::Composite(_), "=") => groups(column, r#type),
        (_, "=") => !matches!(
            TypeClass::of(r#type),
            TypeClass::Incomparable | TypeClass::Geometric(None)
        ),
        _ => sorts(column, r#type),
    }
}

/// Whether the type has the operator `<>`. If it does not, `not (a = b)` is used instead.
pub(crate) fn has_inequality(column: &Column) -> bool {
    let r#type = base_type(&column.r#type);
    match comparisons(column, r#type) {
        Some(known) => known.operators.iter().any(|own| **own == *"<>"),
        None => !matches!(*r#type, Type::CID | Type::ACLITEM),
    }
}

/// The member names of JSON objects that are values of the type. The list is empty if no object is
/// a value, or if the members can have any name.
pub(crate) fn value_members(r#type: &Type) -> Vec<&str> {
    let r#type = base_type(r#type);
    match r#type.kind() {
        TypeKind::Range(_) | TypeKind::Multirange(_) => {
            return vec![
                "lower",
                "upper",
                "lowerInclusive",
                "upperInclusive",
                "empty",
            ];
        }
        TypeKind::Composite(fields) => return fields.iter().map(Field::name).collect(),
        _ => {}
    }
    match *r#type {
        Type::INTERVAL => vec!["y", "m", "d", "h", "i", "s"],
        Type::POINT => vec!["x", "y"],
        Type::LINE => vec!["A", "B", "C"],
        Type::LSEG | Type::BOX => vec!["start", "end"],
        Type::PATH => vec!["open", "points"],
        Type::POLYGON => vec!["points"],
        Type::CIRCLE => vec!["center", "radius"],
        _ if is_spatial(r#type) => vec!["type", "coordinates", "geometries", "bbox", "crs"],
        _ => Vec::new(),
    }
}

/// Whether PostgreSQL can sort by the column. It can sort arrays and composites if it can sort by
/// all their elements and attributes.
pub fn is_sortable(column: &Column) -> bool {
    sorts(column, &column.r#type)
}

fn sorts(column: &Column, r#type: &Type) -> bool {
    match r#type.kind() {
        TypeKind::Domain(inner) | TypeKind::Array(inner) => sorts(column, inner),
        TypeKind::Composite(fields) => fields.iter().all(|field| sorts(column, field.type_())),
        _ => match comparisons(column, r#type) {
            Some(known) => known.sorts,
            None if matches!(*r#type, Type::XID | Type::CID | Type::ACLITEM) => false,
            None => groups(column, r#type),
        },
    }
}

/// Whether PostgreSQL can group by the column. It can group arrays and composites if it can group
/// by all their elements and attributes.
pub fn is_groupable(column: &Column) -> bool {
    groups(column, &column.r#type)
}

fn groups(column: &Column, r#type: &Type) -> bool {
    match r#type.kind() {
        TypeKind::Domain(inner) | TypeKind::Array(inner) => groups(column, inner),
        TypeKind::Composite(fields) => fields.iter().all(|field| groups(column, field.type_())),
        _ => match comparisons(column, r#type) {
            Some(known) => known.groups,
            None => !matches!(
                TypeClass::of(r#type),
                TypeClass::Incomparable | TypeClass::Geometric(_)
            ),
        },
    }
}

/// The type to which a column must be cast for a comparison; `None` if no cast is needed. Only a
/// domain over an enum is cast, because the polymorphic operators of enums do not accept it.
pub(crate) fn cast_to_compare(r#type: &Type) -> Option<&Type> {
    let is_domain = matches!(r#type.kind(), TypeKind::Domain(_));
    Some(base_type(r#type)).filter(|base| is_domain && matches!(base.kind(), TypeKind::Enum(_)))
}

/// The type to which PostgreSQL converts both operands to compare a column with an unquoted number
/// (PostgreSQL, "Operators", type resolution). An integer column is converted only if the number is
/// not a value of the column's type.
pub(crate) fn number_type(r#type: &Type) -> &Type {
    match base_type(r#type) {
        &Type::FLOAT4 => &Type::FLOAT8,
        &Type::INT2 | &Type::INT4 | &Type::INT8 => &Type::NUMERIC,
        base => base,
    }
}

/// Whether the type is the case-insensitive text of the extension `citext`.
pub(crate) fn is_citext(r#type: &Type) -> bool {
    r#type.name() == "citext" && r#type.schema() != "pg_catalog"
}

/// The name of the type in SQL.
pub(crate) fn written(r#type: &Type) -> String {
    match r#type.kind() {
        TypeKind::Array(element) => format!("{}[]", written(element)),
        _ => r#type.name().to_owned(),
    }
}
