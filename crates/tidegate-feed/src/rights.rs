//! What a role may read of a table, as PostgreSQL says when it is asked as that role.

use tidegate_sql::{Executor, Login, Principal};

use crate::error::{Error, Result};
use crate::policy::Policy;
use crate::question::{TextRow, ask};

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
    /// Computed by PostgreSQL, and not in the log.
    pub(crate) generated: bool,
    /// Whether the log tells it of an old row.
    pub(crate) key: bool,
    /// Whether its values may stand out of line, and so be left out when they do not change.
    pub(crate) long: bool,
}

/// How often a question is asked while the table is being changed.
const ATTEMPTS: usize = 5;

/// The column of [`COLUMNS`] that says whether a column may be read.
const READABLE: usize = 4;

const COLUMNS: &str = "\
    SELECT n.nspname::text, c.relname::text, \
           pg_catalog.row_security_active(c.oid)::text, a.attname::text, \
           (pg_catalog.has_schema_privilege(n.oid, 'USAGE') \
            AND pg_catalog.has_column_privilege(c.oid, a.attnum, 'SELECT'))::text, \
           (a.attgenerated <> '')::text, \
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
    WHERE c.oid = :relation::oid ORDER BY a.attnum";

const POLICIES: &str = "\
    SELECT p.polpermissive::text, pg_catalog.pg_get_expr(p.polqual, p.polrelid), \
           (SELECT pg_catalog.string_agg(d.refobjsubid::text, ',') FROM pg_catalog.pg_depend d \
            WHERE d.classid = 'pg_catalog.pg_policy'::pg_catalog.regclass AND d.objid = p.oid \
            AND d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass \
            AND d.refobjid = p.polrelid) \
    FROM pg_catalog.pg_policy p \
    WHERE p.polrelid = :relation::oid AND p.polcmd IN ('r', '*') AND p.polqual IS NOT NULL \
    AND (p.polroles = '{0}'::oid[] OR EXISTS (\
        SELECT FROM pg_catalog.unnest(p.polroles) AS r(oid) \
        WHERE pg_catalog.pg_has_role(r.oid, 'USAGE'))) \
    ORDER BY p.polname";

/// The numbers of columns, for those that policies name by number.
const NUMBERS: &str = "\
    SELECT a.attnum::text, a.attname::text FROM pg_catalog.pg_attribute a \
    WHERE a.attrelid = :relation::oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum";

impl Rights {
    /// Asks what a role may read of a table.
    ///
    /// # Errors
    /// [`Error::NoTable`], and what PostgreSQL refuses.
    pub(crate) async fn ask(executor: &dyn Executor, login: &Login, table: u32) -> Result<Self> {
        for _ in 0..ATTEMPTS {
            if let Some(rights) = Self::attempt(executor, login, table).await? {
                return Ok(rights);
            }
        }
        Err(Error::Internal("the table's definition never rests".into()))
    }

    /// Nothing when the table was changed meanwhile: the snapshot has a column, or the table, that
    /// is gone, and PostgreSQL's privilege functions, which look past snapshots, say NULL of it.
    async fn attempt(executor: &dyn Executor, login: &Login, table: u32) -> Result<Option<Self>> {
        let number = table.to_string();
        let values = [number.as_str()];
        let who = Principal::Role(login.clone());
        let questions = [COLUMNS, POLICIES, NUMBERS].map(|text| (text, &values[..]));
        let answers = ask(executor, &who, &questions).await?;
        let [columns, policies, numbers] = answers.as_slice() else {
            return Err(Error::Internal("as many answers as questions".into()));
        };
        let first = columns.first().ok_or(Error::NoTable)?;
        if columns
            .iter()
            .any(|row| row.get(READABLE).is_none_or(Option::is_none))
        {
            return Ok(None);
        }
        let (schema, name) = (text(first, 0), text(first, 1));
        let guarded = is_true(first, 2);
        let policy = guarded.then(|| Policy::new((&schema, &name), policies, numbers));
        let column = |row: &TextRow| ColumnRights {
            name: text(row, 3),
            readable: is_true(row, READABLE),
            generated: is_true(row, 5),
            key: is_true(row, 6),
            long: is_true(row, 7),
        };
        Ok(Some(Self {
            schema,
            name,
            columns: columns.iter().map(column).collect(),
            policy,
        }))
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
