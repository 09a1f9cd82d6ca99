//! Asks PostgreSQL which tables and columns a role may read. One query covers many roles, and runs
//! on a connection of the service. Otherwise a table with thousands of subscribed roles would need
//! a connection for each role.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::BytesMut;
use tidegate_sql::RoleName;
use tidegate_values::codec::json_string;
use tokio::time::Instant;

use crate::access::privileges::{ColumnPrivileges, PrivilegeOutcome, Privileges};
use crate::access::rls_policy::RlsPolicy;
use crate::access::{fingerprint, policy_query};
use crate::catalog_query::{CatalogReader, TextRow, is_true, oid_array, role_array, text};

/// A role, and the OID of a table.
pub(crate) type RoleTable = (RoleName, u32);

/// The largest number of pairs of role and table in one query.
pub(crate) const MAX_BATCH: usize = 500;
/// The maximum number of queries for a table whose definition changes during each query.
const ATTEMPTS: usize = 5;

/// Limits the wait for a lock. From PostgreSQL 17 on, reading the condition of a policy locks the
/// policy's table. A query covers many tables, so it must not wait long for the lock of one table.
const LOCK_TIMEOUT: &str = "SELECT pg_catalog.set_config('lock_timeout', '2s', true)";

/// Selects, for each column of the tables `:relations`, the properties that are the same for all
/// roles. The result column [`column::EXISTS`] is false for a column that was dropped after the
/// snapshot was taken.
const COLUMNS: &str = "\
    SELECT c.oid::text, n.nspname::text, c.relname::text, a.attnum::text, a.attname::text, \
           (pg_catalog.has_column_privilege(c.oid, a.attnum, 'SELECT') IS NOT NULL)::text, \
           (a.attgenerated <> '' AND NOT (a.attgenerated = 's' AND \
               pg_catalog.current_setting('server_version_num')::int4 >= 180000))::text, \
           CASE c.relreplident WHEN 'f' THEN true ELSE EXISTS (\
               SELECT FROM pg_catalog.pg_index i WHERE i.indrelid = c.oid \
               AND a.attnum = ANY (i.indkey) \
               AND CASE c.relreplident WHEN 'd' THEN i.indisprimary \
                                       WHEN 'i' THEN i.indisreplident ELSE false END) END::text, \
           (a.attlen = -1 AND a.attstorage <> 'p' \
            AND a.atttypid <> 'pg_catalog.numeric'::pg_catalog.regtype \
            AND NOT (a.atttypid IN ('pg_catalog.varchar'::pg_catalog.regtype, \
                                    'pg_catalog.bpchar'::pg_catalog.regtype) \
                     AND a.atttypmod BETWEEN 1 AND 500))::text, \
           pg_catalog.array_position(p.indkey::pg_catalog.int2[], a.attnum)::text, \
           c.relispartition::text \
    FROM pg_catalog.pg_class c \
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
    JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped \
    LEFT JOIN pg_catalog.pg_index p ON p.indrelid = c.oid AND p.indisprimary \
    WHERE c.oid = ANY (:relations::oid[]) ORDER BY c.oid, a.attnum";

/// The indices of the result columns of [`COLUMNS`].
mod column {
    pub(super) const RELATION: usize = 0;
    pub(super) const SCHEMA: usize = 1;
    pub(super) const TABLE: usize = 2;
    pub(super) const NUMBER: usize = 3;
    pub(super) const NAME: usize = 4;
    pub(super) const EXISTS: usize = 5;
    pub(super) const NOT_IN_LOG: usize = 6;
    pub(super) const IN_REPLICA_IDENTITY: usize = 7;
    pub(super) const MAY_BE_TOASTED: usize = 8;
    pub(super) const KEY_POSITION: usize = 9;
    pub(super) const IS_PARTITION: usize = 10;
}

/// Selects a row for each pair of role and table in `:pairs`, if the role may log in. The row says
/// whether row level security applies (PostgreSQL, "Row Security Policies"), which columns are
/// readable, and which policies apply to the role.
///
/// The readable columns are encoded in a string. It is `*` if all columns are readable. Otherwise
/// it has one character for each column: `t` for a readable column, `f` for a column that is not
/// readable, and `?` for a column that no longer exists. The string is empty if the role may not
/// use the schema, and `?` if the schema no longer exists.
///
/// The last result column is true if a change of memberships cannot revoke the privileges. This
/// requires that both conditions hold:
///
/// - The privileges are granted to the role itself or to PUBLIC.
/// - Row level security is disabled, or the role itself owns the table and row level security is
///   not forced.
const ROLES: &str = "\
    SELECT c.oid::text, r.rolname::text, \
           (c.relrowsecurity AND NOT r.rolsuper AND NOT r.rolbypassrls \
            AND (c.relforcerowsecurity \
                 OR NOT pg_catalog.pg_has_role(r.oid, c.relowner, 'USAGE')))::text, \
           CASE pg_catalog.has_schema_privilege(r.oid, c.relnamespace, 'USAGE') \
               WHEN false THEN '' \
               WHEN true THEN CASE WHEN pg_catalog.has_table_privilege(r.oid, c.oid, 'SELECT') \
                   THEN '*' ELSE (SELECT pg_catalog.string_agg(\
                       COALESCE(pg_catalog.left(pg_catalog.has_column_privilege(\
                           r.oid, c.oid, a.attnum, 'SELECT')::text, 1), '?'), '' \
                       ORDER BY a.attnum) FROM pg_catalog.pg_attribute a \
                   WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped) END \
               ELSE '?' END, \
           (SELECT pg_catalog.string_agg(p.oid::text, ',' ORDER BY p.oid) \
            FROM pg_catalog.pg_policy p WHERE p.polrelid = c.oid \
            AND (p.polroles = '{0}'::oid[] OR EXISTS (\
                SELECT FROM pg_catalog.unnest(p.polroles) AS member(oid) \
                WHERE pg_catalog.pg_has_role(r.oid, member.oid, 'USAGE')))), \
           ((NOT c.relrowsecurity OR c.relowner = r.oid AND NOT c.relforcerowsecurity) \
            AND EXISTS (SELECT FROM pg_catalog.aclexplode(COALESCE(c.relacl, \
                    pg_catalog.acldefault('r', c.relowner))) g \
                WHERE g.grantee IN (0, r.oid) AND g.privilege_type = 'SELECT') \
            AND EXISTS (SELECT FROM pg_catalog.aclexplode(COALESCE(n.nspacl, \
                    pg_catalog.acldefault('n', n.nspowner)) || '{}') g \
                WHERE g.grantee IN (0, r.oid) AND g.privilege_type = 'USAGE'))::text \
    FROM pg_catalog.jsonb_to_recordset(:pairs::pg_catalog.jsonb) AS pair(role text, relation oid) \
    JOIN pg_catalog.pg_roles r ON r.rolname = pair.role \
    JOIN pg_catalog.pg_class c ON c.oid = pair.relation \
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
    WHERE r.rolcanlogin AND (r.rolvaliduntil IS NULL OR r.rolvaliduntil > pg_catalog.now()) \
    AND pg_catalog.has_database_privilege(\
        r.oid, pg_catalog.current_database()::text, 'CONNECT')";

/// The indices of the result columns of [`ROLES`].
mod role {
    pub(super) const RELATION: usize = 0;
    pub(super) const NAME: usize = 1;
    pub(super) const RLS_APPLIES: usize = 2;
    pub(super) const READABLE: usize = 3;
    pub(super) const POLICIES: usize = 4;
    pub(super) const GRANTED_DIRECTLY: usize = 5;
}

/// Queries which columns roles may read. The result has an entry for each pair of `pairs`.
pub(crate) async fn query(
    catalog: &CatalogReader,
    mut pairs: Vec<RoleTable>,
) -> HashMap<RoleTable, PrivilegeOutcome> {
    // The pairs are sorted by table, so that each query covers few tables.
    pairs.sort_unstable_by(|one, other| (one.1, &one.0).cmp(&(other.1, &other.0)));
    pairs.dedup();
    let mut outcomes = HashMap::with_capacity(pairs.len());
    let mut unreachable = None;
    for batch in pairs.chunks(MAX_BATCH) {
        match &unreachable {
            None => unreachable = query_batch(catalog, batch, &mut outcomes).await,
            // The database is unreachable. Later batches are not tried, because each of them would
            // wait for the database again.
            Some(error) => outcomes.extend(failed(batch, error)),
        }
    }
    outcomes
}

fn failed(
    pairs: &[RoleTable],
    error: &Arc<tidegate_sql::Error>,
) -> impl Iterator<Item = (RoleTable, PrivilegeOutcome)> {
    let outcome = PrivilegeOutcome::Failed(error.clone());
    pairs
        .iter()
        .map(move |pair| (pair.clone(), outcome.clone()))
}

/// Queries one batch of pairs and adds their outcomes to `outcomes`. Returns an error only if the
/// database is unreachable.
async fn query_batch(
    catalog: &CatalogReader,
    pairs: &[RoleTable],
    outcomes: &mut HashMap<RoleTable, PrivilegeOutcome>,
) -> Option<Arc<tidegate_sql::Error>> {
    let mut open = pairs.to_vec();
    for _ in 0..ATTEMPTS {
        if open.is_empty() {
            return None;
        }
        let mut read = match read(catalog, &open).await {
            Ok(read) => read,
            // One of the tables may have caused the error, for example because it is being dropped.
            // So each table is queried separately.
            Err(tidegate_sql::Error::Rejected(_))
                if open.iter().any(|pair| pair.1 != open[0].1) =>
            {
                for of_one_table in open.chunk_by(|one, other| one.1 == other.1) {
                    Box::pin(query_batch(catalog, of_one_table, outcomes)).await;
                }
                return None;
            }
            Err(error) => {
                let is_unreachable = !matches!(error, tidegate_sql::Error::Rejected(_));
                let error = Arc::new(error);
                outcomes.extend(failed(&open, &error));
                return is_unreachable.then_some(error);
            }
        };
        open.retain(|pair| match read.remove(pair) {
            Some(PrivilegeOutcome::Unstable) => true,
            outcome => {
                outcomes.insert(pair.clone(), outcome.unwrap_or(PrivilegeOutcome::NoTable));
                false
            }
        });
    }
    outcomes.extend(
        open.into_iter()
            .map(|pair| (pair, PrivilegeOutcome::Unstable)),
    );
    None
}

/// Runs the queries once, with the role of the service. The roles are parameters of the queries, so
/// no connection has to log in as one of them.
///
/// The result for a table is unreliable if another session alters or drops the table while the
/// queries run. The snapshot still contains the old columns, but PostgreSQL's privilege functions
/// do not use the snapshot: they return NULL for a column or table that no longer exists. Such a
/// result becomes [`PrivilegeOutcome::Unstable`].
async fn read(
    catalog: &CatalogReader,
    pairs: &[RoleTable],
) -> tidegate_sql::Result<HashMap<RoleTable, PrivilegeOutcome>> {
    let begin = Instant::now();
    let of_tables = pairs.chunk_by(|one, other| one.1 == other.1);
    let relations: Vec<u32> = of_tables.map(|pairs| pairs[0].1).collect();
    let (relations, pairs_json) = (oid_array(&relations), pairs_json(pairs));
    let role_names = role_array(pairs.iter().map(|pair| &pair.0));
    let queries = [
        (LOCK_TIMEOUT, &[][..]),
        (COLUMNS, &[&*relations]),
        (policy_query::POLICIES, &[&*relations]),
        (fingerprint::TABLES, &[&*relations]),
        (ROLES, &[&*pairs_json]),
        (fingerprint::ROLES, &[&*role_names]),
    ];
    let outcome = catalog.query_snapshot(&[], &queries).await?;
    let results = outcome.rows();
    let [_, columns, policies, fingerprints, roles, role_fingerprints] = results.as_slice() else {
        let problem = "the number of results is not that of the queries";
        return Err(tidegate_sql::Error::internal(problem));
    };
    let tables = tables(columns, policies, fingerprints, begin);
    let key = |row: &TextRow| (text(row, role::RELATION), text(row, role::NAME));
    let roles: HashMap<_, _> = roles.iter().map(|row| (key(row), row)).collect();
    let role_fingerprints: HashMap<_, _> = role_fingerprints
        .iter()
        .map(|row| (text(row, 0), text(row, 1)))
        .collect();
    // Most roles of a table have the same privileges, so equal results are shared.
    let mut shared: HashMap<(u32, &[Option<String>], &str), PrivilegeOutcome> = HashMap::new();
    let outcome = |pair: &RoleTable| {
        let relation: Box<str> = pair.1.to_string().into();
        let Some(table) = tables.get(&relation) else {
            return (pair.clone(), PrivilegeOutcome::NoTable);
        };
        let row = roles.get(&(relation, pair.0.as_str().into()));
        let (Some(row), Some(fingerprint)) = (row, role_fingerprints.get(pair.0.as_str())) else {
            return (pair.clone(), PrivilegeOutcome::NoRole);
        };
        let shared = shared
            .entry((pair.1, &row[role::RLS_APPLIES..], fingerprint))
            .or_insert_with(|| table.outcome(row, fingerprint));
        (pair.clone(), shared.clone())
    };
    Ok(pairs.iter().map(outcome).collect())
}

fn pairs_json(pairs: &[RoleTable]) -> String {
    let mut out = BytesMut::new();
    let mut separator = &b"["[..];
    for (role, relation) in pairs {
        out.extend_from_slice(separator);
        separator = b",";
        out.extend_from_slice(format!("{{\"relation\":{relation},\"role\":").as_bytes());
        json_string(role.as_str().as_bytes(), &mut out);
        out.extend_from_slice(b"}");
    }
    out.extend_from_slice(if pairs.is_empty() { b"[]" } else { b"]" });
    String::from_utf8_lossy(&out).into_owned()
}

/// The query results for one table.
struct TableFacts<'a> {
    columns: &'a [TextRow],
    policies: Vec<&'a TextRow>,
    fingerprint: Box<str>,
    queried_at: Instant,
}

fn tables<'a>(
    columns: &'a [TextRow],
    policies: &'a [TextRow],
    fingerprints: &[TextRow],
    queried_at: Instant,
) -> HashMap<Box<str>, TableFacts<'a>> {
    let same_table = |one: &TextRow, other: &TextRow| one.first() == other.first();
    let table = |columns: &'a [TextRow]| {
        let relation = text(&columns[0], column::RELATION);
        let of_it = |row: &&TextRow| text(row, policy_query::RELATION) == relation;
        let fingerprint = fingerprints
            .iter()
            .find(|fingerprint| text(fingerprint, 0) == relation);
        let table = TableFacts {
            columns,
            policies: policies.iter().filter(of_it).collect(),
            fingerprint: fingerprint
                .map(|fingerprint| text(fingerprint, 1))
                .unwrap_or_default(),
            queried_at,
        };
        (relation, table)
    };
    columns.chunk_by(same_table).map(table).collect()
}

impl TableFacts<'_> {
    /// The privileges of a role on the table. `of_role` is the role's row of [`ROLES`]. Returns
    /// [`PrivilegeOutcome::Unstable`] if the table changed during the queries.
    fn outcome(&self, of_role: &TextRow, role_fingerprint: &str) -> PrivilegeOutcome {
        let readable = text(of_role, role::READABLE);
        let exists = |row: &TextRow| is_true(row, column::EXISTS);
        if readable.contains('?') || !self.columns.iter().all(exists) {
            return PrivilegeOutcome::Unstable;
        }
        let Some(first) = self.columns.first() else {
            return PrivilegeOutcome::NoTable;
        };
        let (schema, name) = (text(first, column::SCHEMA), text(first, column::TABLE));
        let is_readable = |at| &*readable == "*" || readable.as_bytes().get(at) == Some(&b't');
        let column = |(at, row): (usize, &TextRow)| ColumnPrivileges {
            name: text(row, column::NAME),
            readable: is_readable(at),
            not_in_log: is_true(row, column::NOT_IN_LOG),
            in_replica_identity: is_true(row, column::IN_REPLICA_IDENTITY),
            may_be_toasted: is_true(row, column::MAY_BE_TOASTED),
        };
        PrivilegeOutcome::Loaded(Arc::new(Privileges {
            policy: is_true(of_role, role::RLS_APPLIES)
                .then(|| self.policy(&schema, &name, of_role)),
            columns: self.columns.iter().enumerate().map(column).collect(),
            primary_key: self.primary_key(),
            fingerprint: self.fingerprint.clone(),
            role_fingerprint: role_fingerprint.into(),
            depends_on_roles: !is_true(of_role, role::GRANTED_DIRECTLY),
            queried_at: self.queried_at,
            is_partition: is_true(first, column::IS_PARTITION),
            schema,
            name,
        }))
    }

    fn policy(&self, schema: &str, name: &str, of_role: &TextRow) -> RlsPolicy {
        let applicable = text(of_role, role::POLICIES);
        let applicable: Vec<&str> = applicable.split(',').collect();
        let is_applicable = |row: &&&TextRow| applicable.contains(&&*text(row, policy_query::OID));
        let policies = self
            .policies
            .iter()
            .filter(is_applicable)
            .map(|row| policy_query::clause(row))
            .collect();
        let numbered = |row: &TextRow| (text(row, column::NUMBER), text(row, column::NAME));
        let numbered_columns: Vec<_> = self.columns.iter().map(numbered).collect();
        RlsPolicy::new(
            (schema, name),
            &self.fingerprint,
            policies,
            &numbered_columns,
        )
    }

    fn primary_key(&self) -> Arc<[Box<str>]> {
        let position = |row: &TextRow| text(row, column::KEY_POSITION).parse::<usize>().ok();
        let part = |row: &TextRow| Some((position(row)?, text(row, column::NAME)));
        let mut primary: Vec<_> = self.columns.iter().filter_map(part).collect();
        primary.sort_unstable();
        primary.into_iter().map(|(_, name)| name).collect()
    }
}
