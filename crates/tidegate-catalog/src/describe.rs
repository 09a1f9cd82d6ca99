//! The description of schemas, as one JSON document that PostgreSQL writes.

use std::sync::{Arc, LazyLock};

use tidegate_sql::{
    BoundStatement, BoxFuture, Column, Executor, Flow, Parameter, Principal, RawRow, RowSink,
    Statement, Terms,
};

use crate::error::{Error, Result};

static DESCRIBE: LazyLock<Arc<Statement>> = LazyLock::new(|| {
    let text = include_str!("describe.sql");
    Arc::new(Statement::parse(text).expect("the statement beside this file can be parsed"))
});

/// Describes every schema that the principal may use: a JSON array of objects with `name` and
/// `tables`, ordered by name.
///
/// Only schemas with the USAGE right, and in them only tables, views and columns on which the
/// principal has some right, are shown (PostgreSQL, "Privileges"); partitions are hidden behind
/// their root.
///
/// # Errors
///
/// [`Error::Sql`] when the statement cannot run.
pub async fn describe_all(
    executor: &dyn Executor,
    who: &Principal,
    terms: &Terms,
) -> Result<String> {
    run(executor, who, terms, Parameter::Null).await
}

/// Describes one schema: a JSON object, or `None` when the principal cannot see a schema of that
/// name.
///
/// # Errors
///
/// [`Error::Sql`] when the statement cannot run.
pub async fn describe(
    executor: &dyn Executor,
    who: &Principal,
    terms: &Terms,
    schema: &str,
) -> Result<Option<String>> {
    let list = run(executor, who, terms, Parameter::Text(schema.into())).await?;
    let object = list
        .strip_prefix('[')
        .and_then(|list| list.strip_suffix(']'));
    match object {
        Some("") => Ok(None),
        Some(object) => Ok(Some(object.to_owned())),
        None => Err(Error::Document),
    }
}

async fn run(
    executor: &dyn Executor,
    who: &Principal,
    terms: &Terms,
    schema: Parameter,
) -> Result<String> {
    let statement = BoundStatement {
        statement: Arc::clone(&DESCRIBE),
        hints: vec![None],
        formats: vec![None],
        sets: vec![vec![schema]],
        listed: false,
    };
    let mut document = Document::default();
    executor
        .query(who, &statement, terms, &mut document)
        .await?;
    document.0.ok_or(Error::Document)
}

/// Keeps the only value of the only row.
#[derive(Default)]
pub(crate) struct Document(pub(crate) Option<String>);

impl RowSink for Document {
    fn columns(&mut self, _: &[Column]) -> tidegate_sql::Result<()> {
        Ok(())
    }

    fn row(&mut self, row: RawRow<'_>) -> tidegate_sql::Result<Flow> {
        // A text value has the same bytes in both wire formats.
        if let Some(Some(value)) = row.values().next() {
            let text = std::str::from_utf8(value).map_err(tidegate_sql::Error::internal)?;
            self.0 = Some(text.to_owned());
        }
        Ok(Flow::Continue)
    }

    fn ready(&mut self) -> BoxFuture<'_, tidegate_sql::Result<()>> {
        Box::pin(std::future::ready(Ok(())))
    }
}
