//! What a role may read of tables, as PostgreSQL says when it is asked as that role.

use std::collections::HashMap;
use std::sync::Arc;

use tidegate_sql::{Executor, Login, Principal};

use crate::error::{Error, Result};
use crate::policy::Policy;
use crate::question::{self, TextRow};

/// A table as a role sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rights {
    pub(crate) schema: Box<str>,
    pub(crate) name: Box<str>,
    pub(crate) columns: Vec<ColumnRights>,
    /// What row level security asks of a row, where it applies to the role.
    pub(crate) policy: Option<Policy>,
}

/// A column as a role sees it.
#[expect(clippy::struct_excessive_bools, reason = "they are separate facts")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ColumnRights {
    pub(crate) name: Box<str>,
    pub(crate) readable: bool,
    /// Computed by PostgreSQL, and not in the log: before version 18 every generated column.
    pub(crate) generated: bool,
    /// Whether the log tells it of an old row.
    pub(crate) key: bool,
    /// Whether its values may stand out of line, and so be left out when they do not change.
    pub(crate) long: bool,
}

/// How often a question is asked while the table is being changed.
const ATTEMPTS: usize = 5;

/// What came of asking about a table.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    Rights(Arc<Rights>),
    /// The table is not there, or the role may not see it.
    NoTable,
    /// Its definition changed during every attempt.
    Restless,
    Failed(Arc<tidegate_sql::Error>),
}

impl Answer {
    pub(crate) fn into_result(self) -> Result<Arc<Rights>> {
        match self {
            Self::Rights(rights) => Ok(rights),
            Self::NoTable => Err(Error::NoTable),
            Self::Restless => Err(Error::Internal("the table's definition never rests".into())),
            Self::Failed(error) => Err(Error::Rights(error)),
        }
    }
}

const COLUMNS: &str = "\
    SELECT c.oid::text, n.nspname::text, c.relname::text, \
           pg_catalog.row_security_active(c.oid)::text, a.attnum::text, a.attname::text, \
           (pg_catalog.has_schema_privilege(n.oid, 'USAGE') \
            AND pg_catalog.has_column_privilege(c.oid, a.attnum, 'SELECT'))::text, \
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
                     AND a.atttypmod BETWEEN 1 AND 500))::text \
    FROM pg_catalog.pg_class c \
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
    JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped \
    WHERE c.oid = ANY (:relations::oid[]) ORDER BY c.oid, a.attnum";

/// The columns of [`COLUMNS`].
mod at {
    pub(super) const RELATION: usize = 0;
    pub(super) const SCHEMA: usize = 1;
    pub(super) const NAME: usize = 2;
    pub(super) const GUARDED: usize = 3;
    pub(super) const NUMBER: usize = 4;
    pub(super) const COLUMN: usize = 5;
    pub(super) const READABLE: usize = 6;
    pub(super) const GENERATED: usize = 7;
    pub(super) const KEY: usize = 8;
    pub(super) const LONG: usize = 9;
}

/// Of each policy: its table, whether it is permissive, its condition, the columns that it names.
const POLICIES: &str = "\
    SELECT p.polrelid::text, p.polpermissive::text, \
           pg_catalog.pg_get_expr(p.polqual, p.polrelid), \
           (SELECT pg_catalog.string_agg(d.refobjsubid::text, ',') FROM pg_catalog.pg_depend d \
            WHERE d.classid = 'pg_catalog.pg_policy'::pg_catalog.regclass AND d.objid = p.oid \
            AND d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass \
            AND d.refobjid = p.polrelid) \
    FROM pg_catalog.pg_policy p \
    WHERE p.polrelid = ANY (:relations::oid[]) AND p.polcmd IN ('r', '*') \
    AND p.polqual IS NOT NULL \
    AND (p.polroles = '{0}'::oid[] OR EXISTS (\
        SELECT FROM pg_catalog.unnest(p.polroles) AS r(oid) \
        WHERE pg_catalog.pg_has_role(r.oid, 'USAGE'))) \
    ORDER BY p.polname";

/// Asks what a role may read of tables. Each of them has an answer.
pub(crate) async fn ask(
    executor: &dyn Executor,
    login: &Login,
    relations: &[u32],
) -> HashMap<u32, Answer> {
    let mut answers = HashMap::new();
    let mut open = relations.to_vec();
    for _ in 0..ATTEMPTS {
        if open.is_empty() {
            break;
        }
        let read = match read(executor, login, &open).await {
            Ok(read) => read,
            // What is wrong with one table, which somebody drops perhaps, is its own matter.
            Err(tidegate_sql::Error::Rejected(_)) if open.len() > 1 => {
                for relation in open {
                    answers.extend(Box::pin(ask(executor, login, &[relation])).await);
                }
                return answers;
            }
            Err(error) => {
                let error = Arc::new(error);
                let failed = |relation| (relation, Answer::Failed(error.clone()));
                answers.extend(open.into_iter().map(failed));
                return answers;
            }
        };
        open.retain(|relation| {
            let answer = match read.get(relation) {
                Some(None) => return true,
                Some(Some(rights)) => Answer::Rights(rights.clone()),
                None => Answer::NoTable,
            };
            answers.insert(*relation, answer);
            false
        });
    }
    answers.extend(open.into_iter().map(|open| (open, Answer::Restless)));
    answers
}

/// The tables that are there. One has nothing when it was changed meanwhile: the snapshot has a
/// column, or the table, that is gone, and PostgreSQL's privilege functions, which look past
/// snapshots, say NULL of it.
async fn read(
    executor: &dyn Executor,
    login: &Login,
    relations: &[u32],
) -> tidegate_sql::Result<HashMap<u32, Option<Arc<Rights>>>> {
    let list: Vec<String> = relations.iter().map(u32::to_string).collect();
    let list = format!("{{{}}}", list.join(","));
    let values = [list.as_str()];
    let who = Principal::Role(login.clone());
    let questions = [COLUMNS, POLICIES].map(|text| (text, &values[..]));
    let answers = question::ask(executor, &who, &[], &questions)
        .await?
        .answers();
    let [columns, policies] = answers.as_slice() else {
        let problem = "as many answers as questions are needed";
        return Err(tidegate_sql::Error::internal(problem));
    };
    let same = |one: &TextRow, other: &TextRow| one.first() == other.first();
    let tables = columns.chunk_by(same).map(|columns| {
        let relation = text(&columns[0], at::RELATION);
        let of_it = |policy: &&TextRow| text(policy, 0) == relation;
        let policies: Vec<&TextRow> = policies.iter().filter(of_it).collect();
        let rights = Rights::of(columns, &policies).map(Arc::new);
        Some((relation.parse().ok()?, rights))
    });
    Ok(tables.flatten().collect())
}

impl Rights {
    /// Puts together what was read of a table, unless it was changed meanwhile.
    fn of(columns: &[TextRow], policies: &[&TextRow]) -> Option<Self> {
        let is_unknown = |row: &TextRow| row.get(at::READABLE).is_none_or(Option::is_none);
        if columns.iter().any(is_unknown) {
            return None;
        }
        let first = columns.first()?;
        let (schema, name) = (text(first, at::SCHEMA), text(first, at::NAME));
        let numbered = |row: &TextRow| (text(row, at::NUMBER), text(row, at::COLUMN));
        let policy = is_true(first, at::GUARDED).then(|| {
            let numbers: Vec<_> = columns.iter().map(numbered).collect();
            Policy::new((&schema, &name), policies, &numbers)
        });
        let column = |row: &TextRow| ColumnRights {
            name: text(row, at::COLUMN),
            readable: is_true(row, at::READABLE),
            generated: is_true(row, at::GENERATED),
            key: is_true(row, at::KEY),
            long: is_true(row, at::LONG),
        };
        Some(Self {
            schema,
            name,
            columns: columns.iter().map(column).collect(),
            policy,
        })
    }

    /// A column that the role may read and the log tells.
    ///
    /// # Errors
    /// [`Error::NoColumn`] and [`Error::Unsupported`].
    pub(crate) fn column(&self, name: &str) -> Result<&ColumnRights> {
        let column = self
            .columns
            .iter()
            .find(|column| &*column.name == name && column.readable);
        let column = column.ok_or_else(|| Error::NoColumn(name.into()))?;
        if column.generated {
            return Err(Error::Unsupported(format!(
                "`{name}` is a generated column, which the log does not tell"
            )));
        }
        Ok(column)
    }

    /// Whether all of these may be read.
    pub(crate) fn may_read(&self, columns: &[Box<str>]) -> bool {
        columns.iter().all(|name| {
            self.columns
                .iter()
                .any(|column| column.name == *name && column.readable)
        })
    }
}

pub(crate) fn text(row: &TextRow, at: usize) -> Box<str> {
    row.get(at)
        .and_then(Option::as_deref)
        .unwrap_or_default()
        .into()
}

fn is_true(row: &TextRow, at: usize) -> bool {
    row.get(at).and_then(Option::as_deref) == Some("true")
}
