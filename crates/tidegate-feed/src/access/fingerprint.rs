//! Fingerprints of the catalog rows on which privileges depend. Privileges that were read together
//! with fingerprints are valid until the fingerprints change. Reading fingerprints takes a fraction
//! of the time that reading privileges takes.

use std::collections::HashMap;

use tidegate_sql::{Result, RoleName};

use crate::catalog_query::{CatalogReader, oid_array, role_array, text};

/// Selects a row for each table of `:relations`: the table's OID, and a fingerprint of the table,
/// its columns, schema, indexes and policies. The catalog stores granted privileges in the rows of
/// these objects, so the fingerprint covers the privileges.
pub(crate) const TABLES: &str = "\
    SELECT c.oid::text, pg_catalog.md5(pg_catalog.concat_ws(' ', c.xmin, n.xmin, \
        (SELECT pg_catalog.string_agg(a.xmin::text, ',' ORDER BY a.attnum) \
         FROM pg_catalog.pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0), \
        (SELECT pg_catalog.string_agg(i.indexrelid::text || '/' || i.xmin::text, ',' \
                                      ORDER BY i.indexrelid) \
         FROM pg_catalog.pg_index i WHERE i.indrelid = c.oid), \
        (SELECT pg_catalog.string_agg(p.oid::text || '/' || p.xmin::text, ',' ORDER BY p.oid) \
         FROM pg_catalog.pg_policy p WHERE p.polrelid = c.oid))) \
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
    WHERE c.oid = ANY (:relations::oid[])";

/// Selects a row for each role of `:roles`: the role's name, and a fingerprint of its attributes
/// and of every membership that it has, directly or through other roles. Roles belong to the
/// cluster, so the change log of a database does not report their changes. Roles with the same
/// attributes and memberships have the same fingerprint. The fingerprint also covers whether
/// memberships are inherited. Before PostgreSQL 16 an attribute of the member decides this. Since
/// version 16 each membership has its own option.
pub(crate) const ROLES: &str = "\
    WITH RECURSIVE asked AS (\
        SELECT r.* FROM pg_catalog.pg_roles r \
        JOIN pg_catalog.jsonb_array_elements_text(:roles::pg_catalog.jsonb) name \
        ON r.rolname = name), \
    reached(root, role) AS (\
        SELECT a.oid, a.oid FROM asked a \
        UNION SELECT h.root, m.roleid FROM reached h \
        JOIN pg_catalog.pg_auth_members m ON m.member = h.role), \
    memberships AS (\
        SELECT h.root, pg_catalog.string_agg(DISTINCT pg_catalog.format('%s/%s/%s/%s', \
            NULLIF(m.member, h.root), m.roleid, pg_catalog.to_jsonb(m) ->> 'inherit_option', \
            r.rolinherit), ',') AS list \
        FROM reached h JOIN pg_catalog.pg_auth_members m ON m.member = h.role \
        JOIN pg_catalog.pg_roles r ON r.oid = m.member GROUP BY h.root) \
    SELECT a.rolname::text, pg_catalog.md5(pg_catalog.concat_ws(' ', a.rolsuper, a.rolbypassrls, \
        a.rolcanlogin AND COALESCE(a.rolvaliduntil > pg_catalog.now(), true), \
        pg_catalog.has_database_privilege(a.oid, d.datname::text, 'CONNECT'), d.datdba, \
        (SELECT m.list FROM memberships m WHERE m.root = a.oid))) \
    FROM asked a JOIN pg_catalog.pg_database d ON d.datname = pg_catalog.current_database()";

/// The current fingerprints of roles, by name. Roles that do not exist are left out.
pub(crate) async fn of_roles(
    catalog: &CatalogReader,
    roles: &[RoleName],
) -> Result<HashMap<Box<str>, Box<str>>> {
    let rows = catalog.query_once(ROLES, &[&role_array(roles)]).await?;
    Ok(rows
        .iter()
        .map(|row| (text(row, 0), text(row, 1)))
        .collect())
}

/// The current fingerprint of a table; `None` if the table does not exist.
pub(crate) async fn of_table(catalog: &CatalogReader, relation: u32) -> Result<Option<Box<str>>> {
    let rows = catalog
        .query_once(TABLES, &[&oid_array(&[relation])])
        .await?;
    Ok(rows.first().map(|row| text(row, 1)))
}
