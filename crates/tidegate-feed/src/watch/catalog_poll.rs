//! Polls the catalog for changes that affect subscriptions and that the change log does not report:
//! changes of captures, of partitions, of privileges, and of the attributes of composite types. A
//! poll is one statement. Polls cause nearly all of the load that idle subscriptions put on
//! PostgreSQL.

use std::collections::{BTreeSet, HashSet};

use tidegate_sql::RoleName;
use tidegate_values::{Type, TypeKind};

use crate::access::fingerprint;
use crate::catalog_query::{TextRow, oid_array, role_array, text};
use crate::database::catalog_snapshot::CatalogSnapshot;
use crate::database::database_feed::DatabaseFeed;

/// Selects a fingerprint of the partitions of each partitioned table of `:tables`.
const PARTITIONS: &str = "\
    WITH RECURSIVE tree AS (\
        SELECT c.oid AS root, c.oid, c.relfilenode \
        FROM pg_catalog.pg_class c WHERE c.oid = ANY (:tables::oid[]) AND c.relkind = 'p' \
        UNION ALL \
        SELECT t.root, c.oid, c.relfilenode FROM tree t \
        JOIN pg_catalog.pg_inherits i ON i.inhparent = t.oid \
        JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid) \
    SELECT root::text, pg_catalog.md5(pg_catalog.string_agg(oid::text || '/' || relfilenode::text, ',' \
        ORDER BY oid)) FROM tree GROUP BY root";

/// Selects a fingerprint of the attributes of the composite types `:types`.
const ATTRIBUTES: &str = "\
    SELECT pg_catalog.md5(pg_catalog.string_agg(pg_catalog.concat_ws('/', a.attrelid, a.attnum, \
        a.attname, a.atttypid, a.attisdropped), ',' ORDER BY a.attrelid, a.attnum)) \
    FROM pg_catalog.pg_type t JOIN pg_catalog.pg_attribute a ON a.attrelid = t.typrelid \
    WHERE t.oid = ANY (:types::oid[]) AND t.typtype = 'c' AND a.attnum > 0";

/// The values of the first result column of a poll. The value says which facts a row contains.
mod subject {
    pub(super) const CAPTURE: &str = "capture";
    pub(super) const PARTITIONS: &str = "partitions";
    pub(super) const TABLE: &str = "table";
    pub(super) const ROLE: &str = "role";
    pub(super) const ATTRIBUTES: &str = "attributes";
}

/// Polls the catalog once.
///
/// # Errors
///
/// If the statement fails, for example because PostgreSQL does not respond.
pub(crate) async fn poll(database: &DatabaseFeed) -> tidegate_sql::Result<CatalogSnapshot> {
    let captures = database.captures.all();
    let subscribers = database.hub.subscribers();
    let relations: HashSet<u32> = subscribers.iter().map(|one| one.relation).collect();
    let roles: HashSet<&RoleName> = subscribers.iter().map(|one| &one.login.role).collect();
    let types = database.types.current();
    let mut composites = BTreeSet::new();
    for r#type in types.values() {
        add_composites(r#type, &mut composites);
    }
    let values = [
        oid_array(captures.keys()),
        oid_array(&relations),
        role_array(roles),
        oid_array(&composites),
    ];
    let values = values.each_ref().map(String::as_str);
    let statement = statement(database.log.health_query());
    let rows = database.catalog.query_once(&statement, &values).await?;
    let mut snapshot = CatalogSnapshot {
        captures,
        ..CatalogSnapshot::default()
    };
    for row in rows {
        add_row(&mut snapshot, row);
    }
    Ok(snapshot)
}

fn statement(capture_health: &str) -> String {
    let (tables, roles) = (fingerprint::TABLES, fingerprint::ROLES);
    format!(
        "SELECT '{}', s.* FROM ({capture_health}) AS s(a, b, c, d) \
         UNION ALL SELECT '{}', s.*, NULL, NULL FROM ({PARTITIONS}) AS s(a, b) \
         UNION ALL SELECT '{}', s.*, NULL, NULL FROM ({tables}) AS s(a, b) \
         UNION ALL SELECT '{}', s.*, NULL, NULL FROM ({roles}) AS s(a, b) \
         UNION ALL SELECT '{}', s.*, NULL, NULL, NULL FROM ({ATTRIBUTES}) AS s(a)",
        subject::CAPTURE,
        subject::PARTITIONS,
        subject::TABLE,
        subject::ROLE,
        subject::ATTRIBUTES,
    )
}

fn add_row(snapshot: &mut CatalogSnapshot, mut row: TextRow) {
    let (about, key, value) = (text(&row, 0), text(&row, 1), text(&row, 2));
    let oid = || key.parse::<u32>();
    match &*about {
        subject::CAPTURE => {
            row.remove(0);
            snapshot.capture_health.push(row);
        }
        subject::PARTITIONS => {
            let tree = oid().map(|table| (table, value));
            snapshot.partition_trees.extend(tree);
        }
        subject::TABLE => snapshot.tables.extend(oid().map(|table| (table, value))),
        subject::ROLE => drop(snapshot.roles.insert(key, value)),
        _ => snapshot.attributes = key,
    }
}

/// Adds the OIDs of the composite types that a type contains, including its own if it is composite.
fn add_composites(r#type: &Type, composites: &mut BTreeSet<u32>) {
    match r#type.kind() {
        TypeKind::Composite(fields) => {
            composites.insert(r#type.oid());
            for field in fields {
                add_composites(field.type_(), composites);
            }
        }
        TypeKind::Array(inner)
        | TypeKind::Domain(inner)
        | TypeKind::Range(inner)
        | TypeKind::Multirange(inner) => add_composites(inner, composites),
        _ => {}
    }
}
