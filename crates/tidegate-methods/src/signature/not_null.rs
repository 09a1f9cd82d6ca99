//! Finds result columns that cannot be NULL.
//!
//! PostgreSQL reports whether a result column shows a table column unchanged, and which table
//! column. Two more conditions must hold: the table column is NOT NULL in the catalog, and the
//! statement adds no NULLs. The second condition is checked only by keywords in the text. All
//! columns count as nullable if the text contains a keyword of an outer join, `GROUPING`, `ROLLUP`,
//! `CUBE`, `UNION`, `INTERSECT`, `EXCEPT`, `MERGE`, `OLD`, `NEW`, `WITH`, or a second `SELECT`. A
//! keyword counts anywhere, even in a string or comment.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};
use std::sync::{Arc, LazyLock};

use serde_json::value::to_raw_value;
use tidegate_sql::{
    DatabaseName, Description, Error, Executor, Params, Principal, QueryOptions, Result, Statement,
    TextRows,
};

/// A table column: the OID of the table and the column's `attnum`, as in
/// [`Column::origin`](tidegate_values::Column::origin).
pub type ColumnOrigin = (u32, i16);

/// Columns that are NOT NULL according to the catalog.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NotNull(HashSet<ColumnOrigin>);

impl NotNull {
    /// The table columns that the result shows, for [`load`](Self::load) to look up in the catalog.
    /// Empty if the statement has a keyword that may add NULLs, such as `LEFT JOIN`.
    pub fn candidates(statement: &Statement, description: &Description) -> Vec<ColumnOrigin> {
        if !shows_columns_as_they_are(statement) {
            return Vec::new();
        }
        let origins = description
            .columns
            .iter()
            .filter_map(|column| column.origin);
        origins.collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Finds the candidates that are NOT NULL in the catalog of a database. If there are no
    /// candidates, nothing is queried.
    ///
    /// A constraint counts only if PostgreSQL enforces it. So all of these must be true:
    ///
    /// - The relation is a table without child tables (their columns may be NULL), or a partitioned
    ///   table without foreign partitions.
    /// - The relation has no rewrite rules.
    /// - The constraint is validated.
    ///
    /// # Errors
    ///
    /// Those of [`Executor::query`].
    pub async fn load(
        executor: &dyn Executor,
        database: &DatabaseName,
        candidates: &[ColumnOrigin],
        options: &QueryOptions,
    ) -> Result<Self> {
        if candidates.is_empty() {
            return Ok(Self::default());
        }
        let tables: BTreeSet<u32> = candidates.iter().map(|(table, _)| *table).collect();
        let tables = to_raw_value(&tables).map_err(Error::internal)?;
        let params = Params::One(vec![(Cow::Borrowed("tables"), &*tables)]);
        let statement = LOOKUP.bind(&params, NO_TEXTS, NO_TEXTS)?;
        let principal = Principal::Catalog(database.clone());
        let mut rows = TextRows::default();
        executor
            .query(&principal, &statement, options, &mut rows)
            .await?;
        let found = rows.0.iter().map(|row| column_origin(row));
        let found: Option<HashSet<_>> = found.collect();
        let found = found.ok_or_else(|| Error::internal("the catalog's answer is no column"))?;
        let is_found = |origin: &&ColumnOrigin| found.contains(*origin);
        Ok(candidates.iter().filter(is_found).copied().collect())
    }

    /// Whether the table column is never NULL.
    pub fn contains(&self, origin: ColumnOrigin) -> bool {
        self.0.contains(&origin)
    }
}

impl FromIterator<ColumnOrigin> for NotNull {
    fn from_iter<T: IntoIterator<Item = ColumnOrigin>>(columns: T) -> Self {
        Self(columns.into_iter().collect())
    }
}

const NO_TEXTS: &[(&str, &str)] = &[];

/// The result of this statement must be a single text column, because text has the same bytes in
/// the text format and in the binary format.
static LOOKUP: LazyLock<Arc<Statement>> = LazyLock::new(|| {
    let statement = Statement::parse(include_str!("not_null.sql"));
    Arc::new(statement.expect("the statement in not_null.sql can be read"))
});

/// Parses a row of [`LOOKUP`].
fn column_origin(row: &[String]) -> Option<ColumnOrigin> {
    let (table, column) = row.first()?.split_once(' ')?;
    Some((table.parse().ok()?, column.parse().ok()?))
}

/// A statement with one of these keywords may add NULLs to its result.
const DOUBTFUL: &[&str] = &[
    "grouping",
    "rollup",
    "cube",
    "union",
    "intersect",
    "except",
    "merge",
    "old",
    "new",
    "with",
];

/// Keywords that make a `JOIN` an outer join.
const OUTER: &[&str] = &["left", "right", "full"];

/// Whether the text of the statement has no keyword that may add NULLs. If so, a result column that
/// shows a table column is NULL only where the table column is NULL.
pub(super) fn shows_columns_as_they_are(statement: &Statement) -> bool {
    let text = statement.text();
    let (mut join, mut outer, mut selects) = (false, false, 0);
    for word in words(text) {
        let is = |keyword: &&str| is_keyword(word, keyword);
        if DOUBTFUL.iter().any(is) {
            return false;
        }
        join |= is(&"join");
        outer |= OUTER.iter().any(is);
        selects += u32::from(is(&"select"));
    }
    !(join && outer) && selects <= 1
}

/// The words of the text: runs of characters that PostgreSQL reads as identifiers, keywords and
/// numbers.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$' || !c.is_ascii();
    text.split(move |c| !part(c))
        .filter(|word| !word.is_empty())
}

/// Whether a word is the keyword, ignoring the case of ASCII letters. PostgreSQL may start a
/// keyword directly after a number or a dollar quote (`1left`). So if a word begins with a digit or
/// `$`, only its end is compared.
fn is_keyword(word: &str, keyword: &str) -> bool {
    let begins_word = word.starts_with(|c: char| !c.is_ascii_digit() && c != '$');
    if begins_word {
        return word.eq_ignore_ascii_case(keyword);
    }
    let end = word.len().checked_sub(keyword.len());
    end.and_then(|at| word.get(at..))
        .is_some_and(|end| end.eq_ignore_ascii_case(keyword))
}
