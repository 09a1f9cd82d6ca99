//! Questions to PostgreSQL, with an empty `search_path`, so that nobody's look-alike of a function
//! or an operator answers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tidegate_sql::{
    Author, BoundStatement, BoxFuture, Column, Error, Executor, Flow, Mode, Parameter, Principal,
    RawRow, Result, RowSink, Statement, Terms,
};

use crate::database::Database;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// A row of texts.
pub(crate) type TextRow = Vec<Option<String>>;

/// A value of a row; empty where it is NULL.
pub(crate) fn text(row: &TextRow, at: usize) -> Box<str> {
    row.get(at)
        .and_then(Option::as_deref)
        .unwrap_or_default()
        .into()
}

/// Whether a value of a row is true.
pub(crate) fn is_true(row: &TextRow, at: usize) -> bool {
    row.get(at).and_then(Option::as_deref) == Some("true")
}

/// What came of questions.
pub(crate) enum Asked {
    /// The answers.
    Answers(Vec<Vec<TextRow>>),
    /// A transaction that they should be about is not seen yet.
    TooEarly,
}

impl Asked {
    /// The answers; none when it was too early for them.
    pub(crate) fn answers(self) -> Vec<Vec<TextRow>> {
        match self {
            Self::Answers(answers) => answers,
            Self::TooEarly => Vec::new(),
        }
    }
}

/// The first statement: pins the path, and says whether the snapshot shows some transactions. The
/// log has the lower half of their numbers, and the next one to be given is near.
const FIRST: &str = "\
    SELECT pg_catalog.set_config('search_path', '', true), (\
        SELECT pg_catalog.bool_and(pg_catalog.txid_visible_in_snapshot(\
            now.next + ((number - (now.next & 4294967295) + 6442450944) & 4294967295) \
            - 2147483648, now.shown)) \
        FROM pg_catalog.unnest(:numbers::pg_catalog.int8[]) AS number, (\
            SELECT shown, pg_catalog.txid_snapshot_xmax(shown) AS next \
            FROM pg_catalog.txid_current_snapshot() AS shown) AS now)::text";

/// Asks as somebody, in one snapshot, which must show some transactions; every column of the
/// answers must be a text.
pub(crate) async fn ask(
    executor: &dyn Executor,
    who: &Principal,
    after: &[u32],
    questions: &[(&str, &[&str])],
) -> Result<Asked> {
    let terms = Terms {
        deadline: Some(Instant::now() + PATIENCE),
        author: Author::Service,
    };
    let mut transaction = executor.begin(who, Mode::Snapshot, &terms).await?;
    let numbers: Vec<String> = after.iter().map(u32::to_string).collect();
    let numbers = format!("{{{}}}", numbers.join(","));
    let mut first = Answers::default();
    transaction
        .query(&bind(FIRST, &[&numbers])?, &mut first)
        .await?;
    let shown = first.0.first().and_then(|row| row.get(1)?.as_deref());
    if shown == Some("false") {
        transaction.commit().await?;
        return Ok(Asked::TooEarly);
    }
    let mut answers = Vec::with_capacity(questions.len());
    for (text, values) in questions {
        let mut rows = Answers::default();
        transaction.query(&bind(text, values)?, &mut rows).await?;
        answers.push(rows.0);
    }
    transaction.commit().await?;
    Ok(Asked::Answers(answers))
}

/// Asks one question about a database as the service, in a single statement. The service's
/// sessions there have an empty `search_path`, and write nothing.
pub(crate) async fn ask_once(
    database: &Database,
    text: &str,
    values: &[&str],
) -> Result<Vec<TextRow>> {
    let terms = Terms {
        deadline: Some(Instant::now() + PATIENCE),
        author: Author::Service,
    };
    let who = Principal::Catalog(database.name.clone());
    let mut rows = Answers::default();
    let statement = bind(text, values)?;
    let asked = database.executor.query(&who, &statement, &terms, &mut rows);
    asked.await?;
    Ok(rows.0)
}

/// A statement of our own with its values in text form, in the order of their placeholders.
pub(crate) fn bind(text: &str, values: &[&str]) -> Result<BoundStatement> {
    let statement = Arc::new(Statement::parse(text)?);
    let count = statement.placeholders().len();
    if count != values.len() {
        return Err(Error::internal("as many values as placeholders are needed"));
    }
    Ok(BoundStatement {
        statement,
        hints: vec![None; count],
        formats: vec![None; count],
        sets: vec![
            values
                .iter()
                .map(|value| Parameter::Text((*value).into()))
                .collect(),
        ],
        listed: false,
        places: Vec::new(),
    })
}

/// Gathers texts, which are the same in both wire formats.
#[derive(Default)]
struct Answers(Vec<TextRow>);

impl RowSink for Answers {
    fn columns(&mut self, _: &[Column]) -> Result<()> {
        Ok(())
    }

    fn row(&mut self, row: RawRow<'_>) -> Result<Flow> {
        let text = |raw: &[u8]| String::from_utf8_lossy(raw).into_owned();
        self.0
            .push(row.values().map(|value| value.map(text)).collect());
        Ok(Flow::Continue)
    }

    fn ready(&mut self) -> BoxFuture<'_, Result<()>> {
        Box::pin(std::future::ready(Ok(())))
    }
}
