//! Queries about the catalog and about row level security. They run with an empty `search_path`, so
//! that they never call a user's function or operator that has the name of a built-in one.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use tidegate_sql::{
    Author, BoundStatement, DatabaseName, Error, Executor, Flow, Mode, Principal, QueryOptions,
    Result, RoleName, RowSink, Statement,
};
use tidegate_values::codec::json_string;
use tidegate_values::{Column, Parameter, RawRow};

/// The time limit of a query, or of all queries of a snapshot together.
const TIMEOUT: Duration = Duration::from_secs(10);

/// How many times the query for privileges is repeated after a failure, and the pause between two
/// attempts.
pub(crate) const RETRIES: (u32, Duration) = (20, Duration::from_millis(250));

pub(crate) type TextRow = Vec<Option<String>>;

/// The value in a row at the index `at`; empty if the value is NULL or missing.
pub(crate) fn text(row: &TextRow, at: usize) -> Box<str> {
    row.get(at)
        .and_then(Option::as_deref)
        .unwrap_or_default()
        .into()
}

/// Whether the value in a row at the index `at` is the text `true`.
pub(crate) fn is_true(row: &TextRow, at: usize) -> bool {
    row.get(at).and_then(Option::as_deref) == Some("true")
}

/// The result of [`query_snapshot`].
pub(crate) enum QueryOutcome {
    /// The rows of each query, in the order of the queries.
    Rows(Vec<Vec<TextRow>>),
    /// One of the transactions that must be visible is not visible in the snapshot yet.
    NotVisibleYet,
}

impl QueryOutcome {
    /// The rows of each query; none for [`QueryOutcome::NotVisibleYet`].
    pub(crate) fn rows(self) -> Vec<Vec<TextRow>> {
        match self {
            Self::Rows(rows) => rows,
            Self::NotVisibleYet => Vec::new(),
        }
    }
}

/// Queries one database with the role of the service.
pub(crate) struct CatalogReader {
    pub(crate) database: DatabaseName,
    executor: Arc<dyn Executor>,
}

impl CatalogReader {
    pub(crate) fn new(executor: Arc<dyn Executor>, database: DatabaseName) -> Self {
        Self { database, executor }
    }

    fn principal(&self) -> Principal {
        Principal::Catalog(self.database.clone())
    }

    /// Runs one query as a single statement. The sessions of the service have an empty
    /// `search_path` and are read-only.
    pub(crate) async fn query_once(&self, text: &str, values: &[&str]) -> Result<Vec<TextRow>> {
        let mut rows = TextRows::default();
        let statement = bind(text, values)?;
        self.executor
            .query(&self.principal(), &statement, &options(), &mut rows)
            .await?;
        Ok(rows.0)
    }

    /// Runs queries in one snapshot; see [`query_snapshot`].
    pub(crate) async fn query_snapshot(
        &self,
        visible_transactions: &[u32],
        queries: &[(&str, &[&str])],
    ) -> Result<QueryOutcome> {
        let principal = self.principal();
        query_snapshot(&*self.executor, &principal, visible_transactions, queries).await
    }
}

/// The options of a query that starts now.
pub(crate) fn options() -> QueryOptions {
    QueryOptions {
        deadline: Some(Instant::now() + TIMEOUT),
        author: Author::Service,
        ..QueryOptions::default()
    }
}

/// An SQL expression that says whether all `:transactions` are visible in the snapshot of the
/// statement. It is NULL if `:transactions` is empty. `:transactions` contains only the lower 32
/// bits of each transaction id, because the change log has no more. The upper bits are derived from
/// the next id that PostgreSQL will assign, which is close to the id of a recent transaction.
macro_rules! are_visible {
    () => {
        "(SELECT pg_catalog.bool_and(pg_catalog.txid_visible_in_snapshot(\
            now.next + ((number - (now.next & 4294967295) + 6442450944) & 4294967295) \
            - 2147483648, now.shown)) \
        FROM pg_catalog.unnest(:transactions::pg_catalog.int8[]) AS number, (\
            SELECT shown, pg_catalog.txid_snapshot_xmax(shown) AS next \
            FROM pg_catalog.txid_current_snapshot() AS shown) AS now)"
    };
}

/// The value of `are_visible!`, for statements that are composed at run time.
pub(crate) const ARE_VISIBLE: &str = are_visible!();

/// The first statement of a snapshot transaction. It sets the `search_path`, and selects whether
/// the `:transactions` are visible in the snapshot.
const OPENING_QUERY: &str = concat!(
    "SELECT pg_catalog.set_config('search_path', '', true), ",
    are_visible!(),
    "::text"
);

/// Runs queries as a principal, in one snapshot. Each query is given as its SQL text and the values
/// of its placeholders. Every column of the results must be text. `visible_transactions` are the
/// lower 32 bits of transaction ids. If one of these transactions is not visible in the snapshot,
/// no query runs.
pub(crate) async fn query_snapshot(
    executor: &dyn Executor,
    principal: &Principal,
    visible_transactions: &[u32],
    queries: &[(&str, &[&str])],
) -> Result<QueryOutcome> {
    let mut transaction = executor
        .begin(principal, Mode::Snapshot, &options())
        .await?;
    let ids = oid_array(visible_transactions);
    let mut opening = TextRows::default();
    transaction
        .query(&bind(OPENING_QUERY, &[&ids])?, &mut opening)
        .await?;
    let all_visible = opening.0.first().and_then(|row| row.get(1)?.as_deref());
    if all_visible == Some("false") {
        transaction.commit().await?;
        return Ok(QueryOutcome::NotVisibleYet);
    }
    let mut results = Vec::with_capacity(queries.len());
    for (text, values) in queries {
        let mut rows = TextRows::default();
        transaction.query(&bind(text, values)?, &mut rows).await?;
        results.push(rows.0);
    }
    transaction.commit().await?;
    Ok(QueryOutcome::Rows(results))
}

fn bind(text: &str, values: &[&str]) -> Result<BoundStatement> {
    bind_statement(Arc::new(Statement::parse(text)?), values)
}

/// Binds values, in text form and in the order of the placeholders, to a statement.
pub(crate) fn bind_statement(statement: Arc<Statement>, values: &[&str]) -> Result<BoundStatement> {
    let count = statement.placeholders().len();
    if count != values.len() {
        return Err(Error::internal(
            "the number of values is not that of the placeholders",
        ));
    }
    let values = values.iter().map(|value| Parameter::Text((*value).into()));
    Ok(BoundStatement::with_values(statement, values.collect()))
}

/// Quotes an SQL identifier.
pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Writes OIDs as the text of a PostgreSQL array.
pub(crate) fn oid_array<'a>(oids: impl IntoIterator<Item = &'a u32>) -> String {
    let list: Vec<String> = oids.into_iter().map(u32::to_string).collect();
    format!("{{{}}}", list.join(","))
}

/// Writes role names as a JSON array.
pub(crate) fn role_array<'a>(roles: impl IntoIterator<Item = &'a RoleName>) -> String {
    let mut out = BytesMut::from(&b"["[..]);
    for (number, role) in roles.into_iter().enumerate() {
        if number > 0 {
            out.extend_from_slice(b",");
        }
        json_string(role.as_str().as_bytes(), &mut out);
    }
    out.extend_from_slice(b"]");
    String::from_utf8_lossy(&out).into_owned()
}

/// Collects rows of text values. A value of type `text` has the same bytes in PostgreSQL's text
/// format and binary format, so it needs no decoding.
#[derive(Default)]
pub(crate) struct TextRows(pub(crate) Vec<TextRow>);

impl RowSink for TextRows {
    fn columns(&mut self, _: &[Column]) -> Result<()> {
        Ok(())
    }

    fn row(&mut self, row: RawRow<'_>) -> Result<Flow> {
        let text = |raw: &[u8]| String::from_utf8_lossy(raw).into_owned();
        self.0
            .push(row.values().map(|value| value.map(text)).collect());
        Ok(Flow::Continue)
    }
}
