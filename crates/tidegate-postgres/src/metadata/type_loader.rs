//! Reads types with all their parts from `pg_catalog`.

use std::collections::HashMap;

use postgres_types::{Field, FromSql, Kind};
use tidegate_values::{RawRow, Type};

/// The maximum depth to which nested types are built. Types in practice are less deeply nested.
const DEEPEST: usize = 32;

macro_rules! tree {
    ($multirange_parts:literal, $multirange:literal) => {
        concat!(
            "WITH RECURSIVE needed(oid) AS (
    SELECT pg_catalog.unnest($1::pg_catalog.oid[])
    UNION
    SELECT part.oid FROM needed
    JOIN pg_catalog.pg_type t ON t.oid OPERATOR(pg_catalog.=) needed.oid
    CROSS JOIN LATERAL (
        SELECT t.typelem WHERE t.typtype OPERATOR(pg_catalog.=) 'b'
            AND t.typcategory OPERATOR(pg_catalog.=) 'A'
        UNION ALL SELECT t.typbasetype WHERE t.typtype OPERATOR(pg_catalog.=) 'd'
        UNION ALL SELECT r.rngsubtype FROM pg_catalog.pg_range r
            WHERE r.rngtypid OPERATOR(pg_catalog.=) t.oid",
            $multirange_parts,
            "
        UNION ALL SELECT a.atttypid FROM pg_catalog.pg_attribute a
            WHERE t.typtype OPERATOR(pg_catalog.=) 'c'
            AND a.attrelid OPERATOR(pg_catalog.=) t.typrelid
            AND a.attnum OPERATOR(pg_catalog.>) 0 AND NOT a.attisdropped
    ) part(oid)
)
SELECT t.oid, t.typname::pg_catalog.text, n.nspname::pg_catalog.text,
    CASE WHEN t.typtype OPERATOR(pg_catalog.=) 'b'
        AND t.typcategory OPERATOR(pg_catalog.=) 'A'
        AND t.typelem OPERATOR(pg_catalog.<>) 0::pg_catalog.oid
        THEN 'a' ELSE t.typtype::pg_catalog.text END,
    CASE t.typtype WHEN 'b' THEN t.typelem WHEN 'd' THEN t.typbasetype
        WHEN 'r' THEN (SELECT r.rngsubtype FROM pg_catalog.pg_range r
            WHERE r.rngtypid OPERATOR(pg_catalog.=) t.oid)",
            $multirange,
            " ELSE 0::pg_catalog.oid END,
    ARRAY(SELECT e.enumlabel::pg_catalog.text FROM pg_catalog.pg_enum e
        WHERE e.enumtypid OPERATOR(pg_catalog.=) t.oid ORDER BY e.enumsortorder),
    ARRAY(SELECT a.attname::pg_catalog.text FROM pg_catalog.pg_attribute a
        WHERE t.typtype OPERATOR(pg_catalog.=) 'c'
        AND a.attrelid OPERATOR(pg_catalog.=) t.typrelid
        AND a.attnum OPERATOR(pg_catalog.>) 0 AND NOT a.attisdropped ORDER BY a.attnum),
    ARRAY(SELECT a.atttypid FROM pg_catalog.pg_attribute a
        WHERE t.typtype OPERATOR(pg_catalog.=) 'c'
        AND a.attrelid OPERATOR(pg_catalog.=) t.typrelid
        AND a.attnum OPERATOR(pg_catalog.>) 0 AND NOT a.attisdropped ORDER BY a.attnum)
FROM needed JOIN pg_catalog.pg_type t ON t.oid OPERATOR(pg_catalog.=) needed.oid
JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) t.typnamespace"
        )
    };
}

/// The query for PostgreSQL 13, which has no multiranges.
pub(crate) const TREE_13: &str = tree!("", "");
/// The query for PostgreSQL 14 and later.
pub(crate) const TREE_14: &str = tree!(
    "
        UNION ALL SELECT r.rngtypid FROM pg_catalog.pg_range r
            WHERE r.rngmultitypid OPERATOR(pg_catalog.=) t.oid
        UNION ALL SELECT r.rngsubtype FROM pg_catalog.pg_range r
            WHERE r.rngmultitypid OPERATOR(pg_catalog.=) t.oid",
    "
        WHEN 'm' THEN (SELECT r.rngsubtype FROM pg_catalog.pg_range r
            WHERE r.rngmultitypid OPERATOR(pg_catalog.=) t.oid)"
);

/// One type: a row of [`TREE_13`] or [`TREE_14`].
#[derive(Debug)]
pub(crate) struct TypeRow {
    name: String,
    schema: String,
    /// The value of `pg_type.typtype`, or `a` for an array.
    kind: u8,
    /// The OID of the element type of an array, the base type of a domain, or the subtype of a
    /// range or multirange; unused for other types.
    inner: u32,
    labels: Vec<String>,
    attributes: Vec<(String, u32)>,
}

impl TypeRow {
    /// The number of columns of a row.
    pub(crate) const COLUMNS: usize = 8;

    /// Reads a row. Returns the OID of the type and the other columns; `None` if the row cannot be
    /// read.
    pub(crate) fn read(row: RawRow<'_>) -> Option<(u32, Self)> {
        let mut values = row.values();
        let oid = u32::from_sql(&Type::OID, values.next()??).ok()?;
        let mut text = || String::from_utf8(values.next()??.to_vec()).ok();
        let (name, schema, kind) = (text()?, text()?, text()?.bytes().next()?);
        let inner = values
            .next()?
            .map_or(Some(0), |raw| u32::from_sql(&Type::OID, raw).ok())?;
        let labels = Vec::from_sql(&Type::TEXT_ARRAY, values.next()??).ok()?;
        let names = Vec::<String>::from_sql(&Type::TEXT_ARRAY, values.next()??).ok()?;
        let types = Vec::<u32>::from_sql(&Type::OID_ARRAY, values.next()??).ok()?;
        let attributes = names.into_iter().zip(types).collect();
        Some((
            oid,
            Self {
                name,
                schema,
                kind,
                inner,
                labels,
                attributes,
            },
        ))
    }
}

/// Builds the type with this OID. A type that no longer exists gets the name `oid N`, where `N` is
/// its OID, and its values are read as text.
pub(crate) fn build(oid: u32, entries: &HashMap<u32, TypeRow>, depth: usize) -> Type {
    if let Some(known) = Type::from_oid(oid) {
        return known;
    }
    let Some(entry) = entries.get(&oid) else {
        return Type::new(
            format!("oid {oid}"),
            oid,
            Kind::Simple,
            "pg_catalog".to_owned(),
        );
    };
    let part = |oid| build(oid, entries, depth + 1);
    let kind = match entry.kind {
        _ if depth > DEEPEST => Kind::Simple,
        b'a' => Kind::Array(part(entry.inner)),
        b'd' => Kind::Domain(part(entry.inner)),
        b'r' => Kind::Range(part(entry.inner)),
        b'm' => Kind::Multirange(part(entry.inner)),
        b'e' => Kind::Enum(entry.labels.clone()),
        b'p' => Kind::Pseudo,
        b'c' => Kind::Composite(
            entry
                .attributes
                .iter()
                .map(|(name, oid)| Field::new(name.clone(), part(*oid)))
                .collect(),
        ),
        _ => Kind::Simple,
    };
    Type::new(entry.name.clone(), oid, kind, entry.schema.clone())
}
