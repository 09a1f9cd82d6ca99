//! What PostgreSQL says of its schemas: the relations, and a fingerprint that tells when they change.

mod relations;

use std::sync::{Arc, LazyLock};

use tidegate_sql::{
    BoundStatement, BoxFuture, Column, DatabaseName, Executor, Flow, Parameter, Principal, RawRow,
    RowSink, Statement, Terms,
};

use crate::error::{Error, Result};

pub(crate) use relations::{SchemaRows, relations};

static FINGERPRINT: LazyLock<Arc<Statement>> =
    LazyLock::new(|| statement(include_str!("fingerprint.sql")));

fn statement(text: &str) -> Arc<Statement> {
    Arc::new(Statement::parse(text).expect("the statement beside this file can be parsed"))
}

static ROLES: LazyLock<Arc<Statement>> = LazyLock::new(|| statement(include_str!("roles.sql")));

/// A text that is different once anything has changed of which the documents of the database are
/// made, for any role.
///
/// # Errors
///
/// [`Error::Sql`] when the statement cannot run.
pub async fn fingerprint(
    executor: &dyn Executor,
    database: &DatabaseName,
    terms: &Terms,
) -> Result<String> {
    let rows = run(
        executor,
        Principal::Catalog(database.clone()),
        &FINGERPRINT,
        Vec::new(),
        terms,
    )
    .await?;
    let first = rows.into_iter().flatten().next();
    first.ok_or(Error::Document)
}

/// A text that is different once anything has changed of the cluster's roles and memberships, which
/// [`fingerprint`] holds too: for who hears of all other changes.
///
/// # Errors
///
/// [`Error::Sql`] when the statement cannot run.
pub async fn roles(executor: &dyn Executor, terms: &Terms) -> Result<String> {
    let rows = run(executor, Principal::Control, &ROLES, Vec::new(), terms).await?;
    let first = rows.into_iter().flatten().next();
    first.ok_or(Error::Document)
}

async fn run(
    executor: &dyn Executor,
    who: Principal,
    statement: &Arc<Statement>,
    values: Vec<Parameter>,
    terms: &Terms,
) -> Result<Vec<Vec<String>>> {
    let statement = BoundStatement {
        statement: Arc::clone(statement),
        hints: vec![None; values.len()],
        formats: vec![None; values.len()],
        sets: vec![values],
        listed: false,
        places: Vec::new(),
    };
    let mut texts = Texts(Vec::new());
    executor.query(&who, &statement, terms, &mut texts).await?;
    Ok(texts.0)
}

/// Keeps rows of texts.
struct Texts(Vec<Vec<String>>);

impl RowSink for Texts {
    fn columns(&mut self, _: &[Column]) -> tidegate_sql::Result<()> {
        Ok(())
    }

    fn row(&mut self, row: RawRow<'_>) -> tidegate_sql::Result<Flow> {
        // A text value has the same bytes in both wire formats.
        let text = |value: Option<&[u8]>| {
            let text = std::str::from_utf8(value.unwrap_or_default());
            text.map(str::to_owned)
                .map_err(tidegate_sql::Error::internal)
        };
        let texts = row.values().map(text);
        self.0.push(texts.collect::<tidegate_sql::Result<_>>()?);
        Ok(Flow::Continue)
    }

    fn ready(&mut self) -> BoxFuture<'_, tidegate_sql::Result<()>> {
        Box::pin(std::future::ready(Ok(())))
    }
}
