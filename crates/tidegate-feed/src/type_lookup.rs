//! From the numbers of types that are not built in to the types, as the catalog has them now. No
//! name is used: a type that is made anew has the name of the one before.

use std::collections::HashMap;
use std::sync::Arc;

use tidegate_sql::log::LogError;
use tidegate_sql::{Type, TypeField, TypeKind};

use crate::database::Database;
use crate::predicate::base;
use crate::question::{TextRow, ask_once, text};
use crate::stamps;

/// Types nest less deeply than this in earnest.
const DEEPEST: usize = 32;

/// The types and everything that they are made of, a row for each label and attribute.
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
        SELECT e.enumlabel::text AS name, 0::oid AS type, e.enumsortorder::float8 AS place \
        FROM pg_catalog.pg_enum e WHERE e.enumtypid = t.oid \
        UNION ALL SELECT a.attname::text, a.atttypid, a.attnum FROM pg_catalog.pg_attribute a \
        WHERE t.typtype = 'c' AND a.attrelid = t.typrelid AND a.attnum > 0 \
        AND NOT a.attisdropped) part ON true \
    ORDER BY t.oid, part.place";

/// Learns types; a type that is gone again is shown as text. The service asks, in `pg_catalog`.
///
/// # Errors
/// [`LogError::Unavailable`] when PostgreSQL does not answer.
pub(crate) async fn resolve(
    database: &Database,
    unknown: &[u32],
) -> Result<Arc<HashMap<u32, Type>>, LogError> {
    let learnt = look_up(database, unknown).await;
    let learnt = learnt.map_err(|error| LogError::Unavailable(Box::new(error)))?;
    let mut types = database.types.lock();
    let mut all = HashMap::clone(&types);
    all.extend(learnt);
    *types = Arc::new(all);
    Ok(types.clone())
}

/// The types with these numbers, below their domains; those that are gone are left out.
pub(crate) async fn look_up(
    database: &Database,
    types: &[u32],
) -> tidegate_sql::Result<HashMap<u32, Type>> {
    let rows = ask_once(database, TYPES, &[&stamps::table_list(types)]).await?;
    let mut entries: HashMap<u32, Entry<'_>> = HashMap::new();
    for row in &rows {
        let number = |at| text(row, at).parse().unwrap_or_default();
        let entry = entries.entry(number(0)).or_insert_with(|| Entry {
            row,
            inner: number(4),
            parts: Vec::new(),
        });
        if let Some(Some(name)) = row.get(5) {
            entry.parts.push((name.clone(), number(6)));
        }
    }
    let there = types.iter().filter(|oid| entries.contains_key(oid));
    let build = |oid: &u32| (*oid, base(&build(*oid, &entries, 0)).clone());
    Ok(there.map(build).collect())
}

/// What the catalog has of a type.
struct Entry<'a> {
    row: &'a TextRow,
    /// The element, the base or the subtype.
    inner: u32,
    /// The labels, or the attributes with their types.
    parts: Vec<(String, u32)>,
}

fn build(oid: u32, entries: &HashMap<u32, Entry<'_>>, depth: usize) -> Type {
    if let Some(known) = Type::from_oid(oid) {
        return known;
    }
    let Some(entry) = entries.get(&oid).filter(|_| depth <= DEEPEST) else {
        return Type::UNKNOWN;
    };
    let part = |oid| build(oid, entries, depth + 1);
    let parts = entry.parts.iter();
    let kind = match &*text(entry.row, 3) {
        "a" => TypeKind::Array(part(entry.inner)),
        "d" => TypeKind::Domain(part(entry.inner)),
        "r" => TypeKind::Range(part(entry.inner)),
        "m" => TypeKind::Multirange(part(entry.inner)),
        "e" => TypeKind::Enum(parts.map(|(label, _)| label.clone()).collect()),
        "c" => TypeKind::Composite(
            parts
                .map(|(name, oid)| TypeField::new(name.clone(), part(*oid)))
                .collect(),
        ),
        _ => TypeKind::Simple,
    };
    let (name, schema) = (text(entry.row, 1).into(), text(entry.row, 2).into());
    Type::new(name, oid, kind, schema)
}
