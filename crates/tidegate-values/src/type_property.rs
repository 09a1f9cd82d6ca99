//! Properties of types that are recognised by name. The types of extensions have different OIDs in
//! each database.

use postgres_types::{Kind, Type};

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

/// The separator of the type's elements in the text form of an array (`pg_type.typdelim`).
pub fn array_delimiter(element: &Type) -> u8 {
    match element.kind() {
        Kind::Domain(base) => array_delimiter(base),
        _ if *element == Type::BOX => b';',
        _ if is_spatial(element) => b':',
        _ => b',',
    }
}
