//! Questions to PostgreSQL, with an empty `search_path`, so that nobody's look-alike of a function
//! or an operator answers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tidegate_sql::{
    BoundStatement, BoxFuture, Column, Error, Executor, Flow, Mode, Parameter, Principal, RawRow,
    Result, RowSink, Statement, Terms,
};

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// A row of texts.
pub(crate) type TextRow = Vec<Option<String>>;

/// Asks as somebody; every column of the answers must be a text.
pub(crate) async fn ask(
    executor: &dyn Executor,
    who: &Principal,
    questions: &[(&str, &[&str])],
) -> Result<Vec<Vec<TextRow>>> {
    let terms = Terms {
        deadline: Some(Instant::now() + PATIENCE),
    };
    let mut transaction = executor.begin(who, Mode::Snapshot, &terms).await?;
    let path = "SELECT pg_catalog.set_config('search_path', '', true)";
    transaction
        .query(&bind(path, &[])?, &mut Answers::default())
        .await?;
    let mut answers = Vec::with_capacity(questions.len());
    for (text, values) in questions {
        let mut rows = Answers::default();
        transaction.query(&bind(text, values)?, &mut rows).await?;
        answers.push(rows.0);
    }
    transaction.commit().await?;
    Ok(answers)
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
