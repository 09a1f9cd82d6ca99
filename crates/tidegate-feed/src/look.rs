//! One statement an interval that asks PostgreSQL about everything that no log tells: how captured
//! tables stand, partitions, what rights depend on, attributes of composite types. A database with
//! subscribers that wait costs its server this statement and little else.

use std::collections::{BTreeSet, HashMap, HashSet};

use tidegate_sql::{RoleName, Type, TypeKind};

use crate::database::{Capture, Database};
use crate::question::{TextRow, ask_once, text};
use crate::stamps;

/// What a look has found.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// The tables as they were captured before the look.
    pub(crate) captures: HashMap<u32, Capture>,
    /// The rows of [`tidegate_sql::log::ChangeLog::standing`].
    pub(crate) standing: Vec<TextRow>,
    /// A stamp of the partitions of each partitioned table that is captured.
    pub(crate) trees: HashMap<u32, Box<str>>,
    /// The stamps of the tables and roles of subscriptions; see [`stamps`].
    pub(crate) tables: HashMap<u32, Box<str>>,
    pub(crate) roles: HashMap<Box<str>, Box<str>>,
    /// A stamp of the attributes of the composite types in use.
    pub(crate) attributes: Box<str>,
}

/// A stamp of the partitions of each partitioned table of `:tables`.
const TREES: &str = "\
    WITH RECURSIVE tree AS (\
        SELECT c.oid AS root, c.oid, c.relfilenode \
        FROM pg_catalog.pg_class c WHERE c.oid = ANY (:tables::oid[]) AND c.relkind = 'p' \
        UNION ALL \
        SELECT t.root, c.oid, c.relfilenode FROM tree t \
        JOIN pg_catalog.pg_inherits i ON i.inhparent = t.oid \
        JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid) \
    SELECT root::text, pg_catalog.md5(pg_catalog.string_agg(oid::text || '/' || relfilenode::text, ',' \
        ORDER BY oid)) FROM tree GROUP BY root";

/// A stamp of the attributes of the composite types `:types`.
const ATTRIBUTES: &str = "\
    SELECT pg_catalog.md5(pg_catalog.string_agg(pg_catalog.concat_ws('/', a.attrelid, a.attnum, \
        a.attname, a.atttypid, a.attisdropped), ',' ORDER BY a.attrelid, a.attnum)) \
    FROM pg_catalog.pg_type t JOIN pg_catalog.pg_attribute a ON a.attrelid = t.typrelid \
    WHERE t.oid = ANY (:types::oid[]) AND t.typtype = 'c' AND a.attnum > 0";

/// What the rows of the statement are about, in their first column.
mod subject {
    pub(super) const STANDING: &str = "standing";
    pub(super) const TREE: &str = "tree";
    pub(super) const TABLE: &str = "table";
    pub(super) const ROLE: &str = "role";
    pub(super) const ATTRIBUTES: &str = "attributes";
}

/// Looks once.
///
/// # Errors
/// PostgreSQL does not answer.
pub(crate) async fn look(database: &Database) -> tidegate_sql::Result<Found> {
    let captures: HashMap<u32, Capture> = database.captures.lock().clone();
    let subscribers = database.subscribers();
    let relations: HashSet<u32> = subscribers.iter().map(|one| one.relation).collect();
    let roles: HashSet<&RoleName> = subscribers.iter().map(|one| &one.login.role).collect();
    let types = database.types.lock().clone();
    let mut composites = BTreeSet::new();
    for known in types.values() {
        add(known, &mut composites);
    }
    let values = [
        stamps::table_list(captures.keys()),
        stamps::table_list(&relations),
        stamps::role_list(roles),
        stamps::table_list(&composites),
    ];
    let values = values.each_ref().map(String::as_str);
    let rows = ask_once(database, &statement(database.log.standing()), &values).await?;
    let mut found = Found {
        captures,
        ..Found::default()
    };
    for row in rows {
        found.take(row);
    }
    Ok(found)
}

fn statement(standing: &str) -> String {
    let (tables, roles) = (stamps::TABLES, stamps::ROLES);
    format!(
        "SELECT '{}', s.* FROM ({standing}) AS s(a, b, c, d) \
         UNION ALL SELECT '{}', s.*, NULL, NULL FROM ({TREES}) AS s(a, b) \
         UNION ALL SELECT '{}', s.*, NULL, NULL FROM ({tables}) AS s(a, b) \
         UNION ALL SELECT '{}', s.*, NULL, NULL FROM ({roles}) AS s(a, b) \
         UNION ALL SELECT '{}', s.*, NULL, NULL, NULL FROM ({ATTRIBUTES}) AS s(a)",
        subject::STANDING,
        subject::TREE,
        subject::TABLE,
        subject::ROLE,
        subject::ATTRIBUTES,
    )
}

impl Found {
    fn take(&mut self, mut row: TextRow) {
        let (about, key, value) = (text(&row, 0), text(&row, 1), text(&row, 2));
        let number = || key.parse::<u32>();
        match &*about {
            subject::STANDING => {
                row.remove(0);
                self.standing.push(row);
            }
            subject::TREE => self.trees.extend(number().map(|table| (table, value))),
            subject::TABLE => self.tables.extend(number().map(|table| (table, value))),
            subject::ROLE => drop(self.roles.insert(key, value)),
            _ => self.attributes = key,
        }
    }

    /// The stamps of a table and a role, if both are there.
    pub(crate) fn stamps(&self, relation: u32, role: &RoleName) -> Option<(&str, &str)> {
        Some((self.tables.get(&relation)?, self.roles.get(role.as_str())?))
    }
}

/// Adds the composite types that a type is made of.
fn add(r#type: &Type, composites: &mut BTreeSet<u32>) {
    match r#type.kind() {
        TypeKind::Composite(fields) => {
            composites.insert(r#type.oid());
            for field in fields {
                add(field.type_(), composites);
            }
        }
        TypeKind::Array(inner)
        | TypeKind::Domain(inner)
        | TypeKind::Range(inner)
        | TypeKind::Multirange(inner) => add(inner, composites),
        _ => {}
    }
}
