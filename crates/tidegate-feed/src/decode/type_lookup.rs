//! Reads types from the catalog by their OIDs. A lookup by name would not be sufficient, because a
//! type that is dropped and created again has the same name but another OID.

use std::collections::HashMap;

use tidegate_values::{Type, TypeField, TypeKind, base_type};

use crate::catalog_query::{CatalogReader, TextRow, oid_array, text};

/// The maximum depth of nested types. It prevents endless recursion; types in practice are less
/// deeply nested.
const MAX_DEPTH: usize = 32;

/// Selects the types `:types` and all types that they contain. Returns one row for each label or
/// attribute of a type, and one row for a type that has neither.
const TYPES: &str = "\
    WITH RECURSIVE needed(oid) AS (\
        SELECT pg_catalog.unnest(:types::oid[]) \
        UNION SELECT part.oid FROM needed JOIN pg_catalog.pg_type t ON t.oid = needed.oid \
        CROSS JOIN LATERAL (\
            SELECT t.typelem WHERE t.typtype = 'b' AND t.typcategory = 'A' \
            UNION ALL SELECT t.typbasetype WHERE t.typtype = 'd' \
            UNION ALL SELECT r.rngsubtype FROM pg_catalog.pg_range r \
                WHERE t.oid IN (r.rngtypid, (pg_catalog.to_jsonb(r) ->> 'rngmultitypid')::oid) \
            UNION ALL SELECT a.atttypid FROM pg_catalog.pg_attribute a WHERE t.typtype = 'c' \
                AND a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped) part(oid)) \
    SELECT t.oid::text, t.typname::text, n.nspname::text, \
           CASE WHEN t.typtype = 'b' AND t.typcategory = 'A' AND t.typelem <> 0 \
                THEN 'a' ELSE t.typtype::text END, \
           CASE t.typtype WHEN 'b' THEN t.typelem WHEN 'd' THEN t.typbasetype \
                ELSE (SELECT r.rngsubtype FROM pg_catalog.pg_range r WHERE t.oid IN \
                      (r.rngtypid, (pg_catalog.to_jsonb(r) ->> 'rngmultitypid')::oid)) END::text, \
           part.name, part.type::text \
    FROM needed JOIN pg_catalog.pg_type t ON t.oid = needed.oid \
    JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace \
    LEFT JOIN LATERAL (\
        SELECT e.enumlabel::text AS name, 0::oid AS type, e.enumsortorder::float8 AS ordinal \
        FROM pg_catalog.pg_enum e WHERE e.enumtypid = t.oid \
        UNION ALL SELECT a.attname::text, a.atttypid, a.attnum FROM pg_catalog.pg_attribute a \
        WHERE t.typtype = 'c' AND a.attrelid = t.typrelid AND a.attnum > 0 \
        AND NOT a.attisdropped) part ON true \
    ORDER BY t.oid, part.ordinal";

/// Reads types. A domain is returned as its base type. Types that no longer exist are left out.
///
/// # Errors
///
/// If the query fails, for example because PostgreSQL does not respond.
pub(crate) async fn look_up(
    catalog: &CatalogReader,
    types: &[u32],
) -> tidegate_sql::Result<HashMap<u32, Type>> {
    let rows = catalog.query_once(TYPES, &[&oid_array(types)]).await?;
    let mut rows_by_oid: HashMap<u32, TypeRow<'_>> = HashMap::new();
    for row in &rows {
        let oid = |at| text(row, at).parse().unwrap_or_default();
        let type_row = rows_by_oid.entry(oid(0)).or_insert_with(|| TypeRow {
            row,
            inner: oid(4),
            members: Vec::new(),
        });
        if let Some(Some(name)) = row.get(5) {
            type_row.members.push((name.clone(), oid(6)));
        }
    }
    let existing = types.iter().filter(|oid| rows_by_oid.contains_key(oid));
    let build = |oid: &u32| (*oid, base_type(&build(*oid, &rows_by_oid, 0)).clone());
    Ok(existing.map(build).collect())
}

/// The result rows of [`TYPES`] for one type.
struct TypeRow<'a> {
    /// The first of these rows.
    row: &'a TextRow,
    /// The OID of the element type, base type or subtype; 0 if there is none.
    inner: u32,
    /// The labels of an enum, each with the OID 0, or the attributes of a composite type, each with
    /// the OID of its type.
    members: Vec<(String, u32)>,
}

fn build(oid: u32, rows_by_oid: &HashMap<u32, TypeRow<'_>>, depth: usize) -> Type {
    if let Some(known) = Type::from_oid(oid) {
        return known;
    }
    let Some(type_row) = rows_by_oid.get(&oid).filter(|_| depth <= MAX_DEPTH) else {
        return Type::UNKNOWN;
    };
    let member = |oid| build(oid, rows_by_oid, depth + 1);
    let members = type_row.members.iter();
    let kind = match &*text(type_row.row, 3) {
        "a" => TypeKind::Array(member(type_row.inner)),
        "d" => TypeKind::Domain(member(type_row.inner)),
        "r" => TypeKind::Range(member(type_row.inner)),
        "m" => TypeKind::Multirange(member(type_row.inner)),
        "e" => TypeKind::Enum(members.map(|(label, _)| label.clone()).collect()),
        "c" => TypeKind::Composite(
            members
                .map(|(name, oid)| TypeField::new(name.clone(), member(*oid)))
                .collect(),
        ),
        _ => TypeKind::Simple,
    };
    let (name, schema) = (text(type_row.row, 1).into(), text(type_row.row, 2).into());
    Type::new(name, oid, kind, schema)
}
