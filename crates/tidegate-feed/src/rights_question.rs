//! What roles may read of tables, as PostgreSQL says: the service asks for many of them at once,
//! so that a table with thousands of subscribed roles takes no connection of each.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::BytesMut;
use tidegate_sql::codec::json_string;
use tidegate_sql::{DatabaseName, Executor, Principal, RoleName};
use tokio::time::Instant;

use crate::policy::{Clause, Policy};
use crate::question::{self, TextRow, is_true, text};
use crate::rights::{Answer, ColumnRights, Rights};
use crate::stamps;

/// A role and the number of a table.
pub(crate) type Pair = (RoleName, u32);

/// How many pairs a question is about at most.
pub(crate) const PAIRS: usize = 500;
/// How often a question is asked while the table is being changed.
const ATTEMPTS: usize = 5;

/// From PostgreSQL 17 on a condition of a policy is shown under a lock of its table, for which
/// whoever asks about other tables must not wait for long.
const PATIENCE: &str = "SELECT pg_catalog.set_config('lock_timeout', '2s', true)";

/// Of each column what is the same for everybody. It has no KNOWN when it is gone by now.
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
           pg_catalog.array_position(p.indkey::pg_catalog.int2[], a.attnum)::text \
    FROM pg_catalog.pg_class c \
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
    JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped \
    LEFT JOIN pg_catalog.pg_index p ON p.indrelid = c.oid AND p.indisprimary \
    WHERE c.oid = ANY (:relations::oid[]) ORDER BY c.oid, a.attnum";

/// The columns of [`COLUMNS`].
mod column {
    pub(super) const RELATION: usize = 0;
    pub(super) const SCHEMA: usize = 1;
    pub(super) const TABLE: usize = 2;
    pub(super) const NUMBER: usize = 3;
    pub(super) const NAME: usize = 4;
    pub(super) const KNOWN: usize = 5;
    pub(super) const GENERATED: usize = 6;
    pub(super) const KEY: usize = 7;
    pub(super) const LONG: usize = 8;
    pub(super) const PRIMARY: usize = 9;
}

/// Of each policy: its table, its number, whether it is permissive, its condition, the columns that
/// it names.
const POLICIES: &str = "\
    SELECT p.polrelid::text, p.oid::text, p.polpermissive::text, \
           pg_catalog.pg_get_expr(p.polqual, p.polrelid), \
           (SELECT pg_catalog.string_agg(d.refobjsubid::text, ',') FROM pg_catalog.pg_depend d \
            WHERE d.classid = 'pg_catalog.pg_policy'::pg_catalog.regclass AND d.objid = p.oid \
            AND d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass \
            AND d.refobjid = p.polrelid) \
    FROM pg_catalog.pg_policy p \
    WHERE p.polrelid = ANY (:relations::oid[]) AND p.polcmd IN ('r', '*') \
    AND p.polqual IS NOT NULL ORDER BY p.polname";

/// The columns of [`POLICIES`].
mod policy {
    pub(super) const RELATION: usize = 0;
    pub(super) const NUMBER: usize = 1;
    pub(super) const PERMISSIVE: usize = 2;
    pub(super) const CONDITION: usize = 3;
    pub(super) const COLUMNS: usize = 4;
}

/// Of each pair whose role may log in: whether row level security applies (PostgreSQL, "Row
/// Security Policies"), which columns are readable, and which policies are the role's. Readable is
/// `*` for all, or a letter a column: `t`, `f`, and `?` for one that is gone by now. The last column
/// is whether all this is granted to the role itself, or to PUBLIC, and no policy applies: then no
/// change of roles or memberships takes any of it away.
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

/// The columns of [`ROLES`].
mod role {
    pub(super) const RELATION: usize = 0;
    pub(super) const NAME: usize = 1;
    pub(super) const GUARDED: usize = 2;
    pub(super) const READABLE: usize = 3;
    pub(super) const POLICIES: usize = 4;
    pub(super) const OWN: usize = 5;
}

/// Asks what roles may read of tables. Each pair has an answer.
pub(crate) async fn ask(
    executor: &dyn Executor,
    database: &DatabaseName,
    mut pairs: Vec<Pair>,
) -> HashMap<Pair, Answer> {
    // Few tables in each question.
    pairs.sort_unstable_by(|one, other| (one.1, &one.0).cmp(&(other.1, &other.0)));
    pairs.dedup();
    let mut answers = HashMap::with_capacity(pairs.len());
    let mut away = None;
    for some in pairs.chunks(PAIRS) {
        match &away {
            None => away = ask_some(executor, database, some, &mut answers).await,
            // Whoever waits for a database that does not answer waits once.
            Some(error) => answers.extend(failed(some, error)),
        }
    }
    answers
}

fn failed(
    pairs: &[Pair],
    error: &Arc<tidegate_sql::Error>,
) -> impl Iterator<Item = (Pair, Answer)> {
    let answer = Answer::Failed(error.clone());
    pairs.iter().map(move |pair| (pair.clone(), answer.clone()))
}

/// Gives why the database does not answer at all.
async fn ask_some(
    executor: &dyn Executor,
    database: &DatabaseName,
    pairs: &[Pair],
    answers: &mut HashMap<Pair, Answer>,
) -> Option<Arc<tidegate_sql::Error>> {
    let mut open = pairs.to_vec();
    for _ in 0..ATTEMPTS {
        if open.is_empty() {
            return None;
        }
        let mut read = match read(executor, database, &open).await {
            Ok(read) => read,
            // What is wrong with one table, which somebody drops perhaps, is its own matter.
            Err(tidegate_sql::Error::Rejected(_))
                if open.iter().any(|pair| pair.1 != open[0].1) =>
            {
                for of_one in open.chunk_by(|one, other| one.1 == other.1) {
                    Box::pin(ask_some(executor, database, of_one, answers)).await;
                }
                return None;
            }
            Err(error) => {
                let is_away = !matches!(error, tidegate_sql::Error::Rejected(_));
                let error = Arc::new(error);
                answers.extend(failed(&open, &error));
                return is_away.then_some(error);
            }
        };
        open.retain(|pair| match read.remove(pair) {
            Some(Answer::Restless) => true,
            answer => {
                answers.insert(pair.clone(), answer.unwrap_or(Answer::NoTable));
                false
            }
        });
    }
    answers.extend(open.into_iter().map(|pair| (pair, Answer::Restless)));
    None
}

/// What the service itself may see is enough: the roles are values in the question. A table is
/// restless when it was changed meanwhile: the snapshot has a column, or the table, that is gone,
/// and PostgreSQL's privilege functions, which look past snapshots, say NULL of it.
async fn read(
    executor: &dyn Executor,
    database: &DatabaseName,
    pairs: &[Pair],
) -> tidegate_sql::Result<HashMap<Pair, Answer>> {
    let begin = Instant::now();
    let of_tables = pairs.chunk_by(|one, other| one.1 == other.1);
    let relations: Vec<u32> = of_tables.map(|pairs| pairs[0].1).collect();
    let (relations, document) = (stamps::table_list(&relations), document(pairs));
    let role_list = stamps::role_list(pairs.iter().map(|pair| &pair.0));
    let who = Principal::Catalog(database.clone());
    let questions = [
        (PATIENCE, &[][..]),
        (COLUMNS, &[&*relations]),
        (POLICIES, &[&*relations]),
        (stamps::TABLES, &[&*relations]),
        (ROLES, &[&*document]),
        (stamps::ROLES, &[&*role_list]),
    ];
    let asked = question::ask(executor, &who, &[], &questions).await?;
    let answers = asked.answers();
    let [_, columns, policies, stamps, roles, role_stamps] = answers.as_slice() else {
        let problem = "as many answers as questions are needed";
        return Err(tidegate_sql::Error::internal(problem));
    };
    let tables = tables(columns, policies, stamps, begin);
    let key = |row: &TextRow| (text(row, role::RELATION), text(row, role::NAME));
    let roles: HashMap<_, _> = roles.iter().map(|row| (key(row), row)).collect();
    let role_stamps: HashMap<_, _> = role_stamps
        .iter()
        .map(|row| (text(row, 0), text(row, 1)))
        .collect();
    // Most roles of a table have the same rights.
    let mut alike: HashMap<(u32, &[Option<String>], &str), Answer> = HashMap::new();
    let answer = |pair: &Pair| {
        let relation: Box<str> = pair.1.to_string().into();
        let Some(table) = tables.get(&relation) else {
            return (pair.clone(), Answer::NoTable);
        };
        let row = roles.get(&(relation, pair.0.as_str().into()));
        let (Some(row), Some(stamp)) = (row, role_stamps.get(pair.0.as_str())) else {
            return (pair.clone(), Answer::NoRole);
        };
        let answer = alike
            .entry((pair.1, &row[role::GUARDED..], stamp))
            .or_insert_with(|| table.answer(row, stamp));
        (pair.clone(), answer.clone())
    };
    Ok(pairs.iter().map(answer).collect())
}

fn document(pairs: &[Pair]) -> String {
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

/// What was read of a table.
struct Table<'a> {
    columns: &'a [TextRow],
    policies: Vec<&'a TextRow>,
    stamp: Box<str>,
    asked: Instant,
}

fn tables<'a>(
    columns: &'a [TextRow],
    policies: &'a [TextRow],
    stamps: &[TextRow],
    asked: Instant,
) -> HashMap<Box<str>, Table<'a>> {
    let same = |one: &TextRow, other: &TextRow| one.first() == other.first();
    let table = |columns: &'a [TextRow]| {
        let relation = text(&columns[0], column::RELATION);
        let of_it = |row: &&TextRow| text(row, policy::RELATION) == relation;
        let stamp = stamps.iter().find(|stamp| text(stamp, 0) == relation);
        let table = Table {
            columns,
            policies: policies.iter().filter(of_it).collect(),
            stamp: stamp.map(|stamp| text(stamp, 1)).unwrap_or_default(),
            asked,
        };
        (relation, table)
    };
    columns.chunk_by(same).map(table).collect()
}

impl Table<'_> {
    /// Puts together what the table is to a role.
    fn answer(&self, of_role: &TextRow, role_stamp: &str) -> Answer {
        let readable = text(of_role, role::READABLE);
        let is_there = |row: &TextRow| is_true(row, column::KNOWN);
        if readable.contains('?') || !self.columns.iter().all(is_there) {
            return Answer::Restless;
        }
        let Some(first) = self.columns.first() else {
            return Answer::NoTable;
        };
        let (schema, name) = (text(first, column::SCHEMA), text(first, column::TABLE));
        let is_readable = |at| &*readable == "*" || readable.as_bytes().get(at) == Some(&b't');
        let column = |(at, row): (usize, &TextRow)| ColumnRights {
            name: text(row, column::NAME),
            readable: is_readable(at),
            generated: is_true(row, column::GENERATED),
            key: is_true(row, column::KEY),
            long: is_true(row, column::LONG),
        };
        Answer::Rights(Arc::new(Rights {
            policy: is_true(of_role, role::GUARDED).then(|| self.policy(&schema, &name, of_role)),
            columns: self.columns.iter().enumerate().map(column).collect(),
            primary: self.primary(),
            stamp: self.stamp.clone(),
            role_stamp: role_stamp.into(),
            depends_on_roles: !is_true(of_role, role::OWN),
            asked: self.asked,
            schema,
            name,
        }))
    }

    fn policy(&self, schema: &str, name: &str, of_role: &TextRow) -> Policy {
        let its = text(of_role, role::POLICIES);
        let its: Vec<&str> = its.split(',').collect();
        let is_its = |row: &&&TextRow| its.contains(&&*text(row, policy::NUMBER));
        let clause = |row: &&TextRow| Clause {
            permissive: is_true(row, policy::PERMISSIVE),
            condition: text(row, policy::CONDITION),
            columns: text(row, policy::COLUMNS),
        };
        let policies = self.policies.iter().filter(is_its).map(clause).collect();
        let numbered = |row: &TextRow| (text(row, column::NUMBER), text(row, column::NAME));
        let numbers: Vec<_> = self.columns.iter().map(numbered).collect();
        Policy::new((schema, name), policies, &numbers)
    }

    fn primary(&self) -> Arc<[Box<str>]> {
        let place = |row: &TextRow| text(row, column::PRIMARY).parse::<usize>().ok();
        let part = |row: &TextRow| Some((place(row)?, text(row, column::NAME)));
        let mut primary: Vec<_> = self.columns.iter().filter_map(part).collect();
        primary.sort_unstable();
        primary.into_iter().map(|(_, name)| name).collect()
    }
}
