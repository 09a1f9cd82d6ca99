//! Properties of types. The types of extensions are recognised by name, because they have different
//! OIDs in each database.

use postgres_types::{Kind, Type};

/// The base type of a domain; any other type unchanged. For a result column of a domain, PostgreSQL
/// reports the base type.
pub fn base_type(r#type: &Type) -> &Type {
    match r#type.kind() {
        Kind::Domain(inner) => base_type(inner),
        _ => r#type,
    }
}

/// Whether values of a type are composite or contain composite values.
pub fn has_attributes(r#type: &Type) -> bool {
    match r#type.kind() {
        Kind::Composite(_) => true,
        Kind::Array(inner) | Kind::Domain(inner) | Kind::Range(inner) | Kind::Multirange(inner) => {
            has_attributes(inner)
        }
        _ => false,
    }
}

/// The schema of a type's operators and functions. It is `pg_catalog` for built-in types and for
/// the polymorphic operators of enums, arrays, ranges and composites. An extension keeps its
/// operators in the schema of its types.
pub fn operator_schema(r#type: &Type) -> &str {
    let r#type = base_type(r#type);
    match r#type.kind() {
        Kind::Simple => r#type.schema(),
        _ => "pg_catalog",
    }
}

/// Whether the type is PostGIS `geometry` or `geography`, or a domain over one.
pub fn is_spatial(r#type: &Type) -> bool {
    is_named(r#type, &["geometry", "geography"])
}

/// Whether the type is `hstore`, or a domain over it.
pub fn is_hstore(r#type: &Type) -> bool {
    is_named(r#type, &["hstore"])
}

fn is_named(r#type: &Type, names: &[&str]) -> bool {
    match r#type.kind() {
        Kind::Domain(base) => is_named(base, names),
        Kind::Simple => r#type.schema() != "pg_catalog" && names.contains(&r#type.name()),
        _ => false,
    }
}

/// The separator between elements of type `element` in the text form of an array
/// (`pg_type.typdelim`).
pub fn array_delimiter(element: &Type) -> u8 {
    match element.kind() {
        Kind::Domain(base) => array_delimiter(base),
        _ if *element == Type::BOX => b';',
        _ if is_spatial(element) => b':',
        _ => b',',
    }
}
