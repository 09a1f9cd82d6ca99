//! What PostgreSQL says of its schemas: documents, and a fingerprint that tells when they change.

use std::sync::{Arc, LazyLock};

use tidegate_sql::{
    BoundStatement, BoxFuture, Column, DatabaseName, Executor, Flow, Parameter, Principal, RawRow,
    RoleName, RowSink, Statement, Terms,
};

use crate::error::{Error, Result};

static DOCUMENTS: LazyLock<Arc<Statement>> =
    LazyLock::new(|| statement(include_str!("documents.sql")));
static FINGERPRINT: LazyLock<Arc<Statement>> =
    LazyLock::new(|| statement(include_str!("fingerprint.sql")));

fn statement(text: &str) -> Arc<Statement> {
    Arc::new(Statement::parse(text).expect("the statement beside this file can be parsed"))
}

/// The documents of the schemas that a role may use, each with the schema's name, ordered by that;
/// of one schema only when its name is given. None when the role does not exist.
///
/// The statement runs as [`Principal::Catalog`]: the role is a value in it.
///
/// # Errors
///
/// [`Error::Sql`] when the statement cannot run.
pub async fn documents(
    executor: &dyn Executor,
    (database, role): (&DatabaseName, &RoleName),
    schema: Option<&str>,
    terms: &Terms,
) -> Result<Vec<(String, String)>> {
    let values = |ask_views: &str| {
        let value = |name: &String| match &**name {
            "role" => Parameter::Text(role.as_str().into()),
            "ask_views" => Parameter::Text(ask_views.into()),
            _ => schema.map_or(Parameter::Null, |schema| Parameter::Text(schema.into())),
        };
        DOCUMENTS.placeholders().iter().map(value).collect()
    };
    let rows = match run(executor, database, &DOCUMENTS, values("true"), terms).await {
        Err(error) if is_about_a_view(&error) => {
            run(executor, database, &DOCUMENTS, values("false"), terms).await
        }
        rows => rows,
    }?;
    let pair = |row: Vec<String>| <[String; 2]>::try_from(row).map_err(|_| Error::Document);
    rows.into_iter()
        .map(|row| pair(row).map(|[name, document]| (name, document)))
        .collect()
}

/// Whether PostgreSQL cannot say what a view or a foreign table lets be done to it, such as for a
/// wrapper whose library is missing: one odd table never breaks a schema. What only takes too long
/// is no such error.
fn is_about_a_view(error: &Error) -> bool {
    let Error::Sql(error) = error else {
        return false;
    };
    let passing = ["55P03", "57014", "40001", "40P01"];
    let odd = |sqlstate: &str| !passing.contains(&sqlstate) && !sqlstate.starts_with("53");
    error.sqlstate().is_some_and(odd)
}

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
    let rows = run(executor, database, &FINGERPRINT, Vec::new(), terms).await?;
    let first = rows.into_iter().flatten().next();
    first.ok_or(Error::Document)
}

async fn run(
    executor: &dyn Executor,
    database: &DatabaseName,
    statement: &Arc<Statement>,
    values: Vec<Parameter>,
    terms: &Terms,
) -> Result<Vec<Vec<String>>> {
    let who = Principal::Catalog(database.clone());
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
