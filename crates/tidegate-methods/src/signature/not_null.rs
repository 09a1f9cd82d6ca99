//! Which columns of a result cannot be NULL.
//!
//! PostgreSQL tells of a result's column which column of which table it shows unchanged, if it
//! does. Two things are left to know: whether that column is NOT NULL in the catalog, and whether
//! the statement puts NULLs beside it. The second is decided by the words of the text alone, and
//! every doubt is a no: an outer join, `GROUPING SETS` and its kin, a set operation, `MERGE`, the
//! `OLD` and `NEW` of `RETURNING`, a `WITH` or a second `SELECT`. A word counts wherever it stands,
//! also in a string or a comment.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};
use std::sync::{Arc, LazyLock};

use serde_json::value::to_raw_value;
use tidegate_sql::{
    BoxFuture, DatabaseName, Description, Error, Executor, Flow, Params, Principal, Result,
    RowSink, Statement, Terms,
};
use tidegate_values::{Column, RawRow};

/// A column of a table: the table's oid and the column's attribute number, as in
/// [`Column::origin`].
pub type Origin = (u32, i16);

/// Columns of which the catalog says that they are never NULL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NotNull(HashSet<Origin>);

impl NotNull {
    /// The columns whose NOT NULL would tell something of the described statement; none when its
    /// text could make a NULL of any of them.
    pub fn candidates(statement: &Statement, description: &Description) -> Vec<Origin> {
        if !shows_columns_as_they_are(statement) {
            return Vec::new();
        }
        let origins = description
            .columns
            .iter()
            .filter_map(|column| column.origin);
        origins.collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Asks the catalog of a database for the NOT NULL columns among the candidates; nothing is
    /// asked when there are none.
    ///
    /// Only what PostgreSQL enforces counts: columns of tables and of partitioned tables without
    /// foreign partitions, not of tables with rewrite rules or with heirs (whose columns may be
    /// NULL), and no constraint that is not validated.
    ///
    /// # Errors
    ///
    /// Those of [`Executor::query`].
    pub async fn load(
        executor: &dyn Executor,
        database: &DatabaseName,
        candidates: &[Origin],
        terms: &Terms,
    ) -> Result<Self> {
        if candidates.is_empty() {
            return Ok(Self::default());
        }
        let tables: BTreeSet<u32> = candidates.iter().map(|(table, _)| *table).collect();
        let tables = to_raw_value(&tables).map_err(Error::internal)?;
        let params = Params::One(vec![(Cow::Borrowed("tables"), &*tables)]);
        let statement = LOOKUP.bind(&params, NO_TEXTS, NO_TEXTS)?;
        let who = Principal::Catalog(database.clone());
        let mut found = Found::default();
        executor.query(&who, &statement, terms, &mut found).await?;
        Ok(candidates
            .iter()
            .filter(|origin| found.0.contains(*origin))
            .copied()
            .collect())
    }

    /// Whether the column is never NULL.
    pub fn contains(&self, origin: Origin) -> bool {
        self.0.contains(&origin)
    }
}

impl FromIterator<Origin> for NotNull {
    fn from_iter<T: IntoIterator<Item = Origin>>(columns: T) -> Self {
        Self(columns.into_iter().collect())
    }
}

const NO_TEXTS: &[(&str, &str)] = &[];

/// One text column, so that its bytes are the same in both wire formats.
static LOOKUP: LazyLock<Arc<Statement>> = LazyLock::new(|| {
    let statement = Statement::parse(include_str!("not_null.sql"));
    Arc::new(statement.expect("the statement in not_null.sql can be read"))
});

/// Takes the rows of [`LOOKUP`].
#[derive(Default)]
struct Found(HashSet<Origin>);

impl RowSink for Found {
    fn columns(&mut self, _: &[Column]) -> Result<()> {
        Ok(())
    }

    fn row(&mut self, row: RawRow<'_>) -> Result<Flow> {
        let text = row.values().next().flatten();
        let text = text.and_then(|bytes| str::from_utf8(bytes).ok());
        let origin = text.and_then(|text| {
            let (table, column) = text.split_once(' ')?;
            Some((table.parse().ok()?, column.parse().ok()?))
        });
        let origin = origin.ok_or_else(|| Error::internal("the catalog's answer is no column"))?;
        self.0.insert(origin);
        Ok(Flow::Continue)
    }

    fn ready(&mut self) -> BoxFuture<'_, Result<()>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// Words each of which alone makes a statement doubtful.
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

/// Words that make an outer join of a `JOIN`.
const OUTER: &[&str] = &["left", "right", "full"];

/// Whether the columns that the statement shows unchanged hold what their tables hold.
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

/// The runs of characters that PostgreSQL takes into identifiers, keywords and numbers.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$' || !c.is_ascii();
    text.split(move |c| !part(c))
        .filter(|word| !word.is_empty())
}

/// Keywords are folded as ASCII. Behind a number or a dollar quote PostgreSQL may begin a word
/// without any space (`1left`), so that the end of such a run counts.
fn is_keyword(word: &str, keyword: &str) -> bool {
    let begins_word = word.starts_with(|c: char| !c.is_ascii_digit() && c != '$');
    if begins_word {
        return word.eq_ignore_ascii_case(keyword);
    }
    let end = word.len().checked_sub(keyword.len());
    end.and_then(|at| word.get(at..))
        .is_some_and(|end| end.eq_ignore_ascii_case(keyword))
}
