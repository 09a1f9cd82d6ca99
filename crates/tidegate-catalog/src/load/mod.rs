//! Reads the catalogs of PostgreSQL: relations, fingerprints and change markers, and the keys of
//! roles.

mod change_markers;
mod fingerprint;
mod keys;
mod relations;

use std::sync::Arc;

use tidegate_sql::{
    BoundStatement, BoxFuture, Executor, Flow, Principal, QueryOptions, RowSink, Statement,
};
use tidegate_values::{Column, Parameter, RawRow};

use crate::error::Result;

pub use change_markers::{ChangeMarker, ChangeMarkers, change_markers};
pub use fingerprint::{Fingerprint, Roles, RolesChange, definitions, fingerprint, roles};
pub(crate) use keys::{RoleKey, keys};
pub(crate) use relations::{SchemaRows, relations};

fn statement(text: &str) -> Arc<Statement> {
    Arc::new(Statement::parse(text).expect("the statement beside this file can be parsed"))
}

/// Runs a statement and returns its rows. `value` returns the value of the placeholder with the
/// given name.
async fn run(
    executor: &dyn Executor,
    principal: Principal,
    statement: &Arc<Statement>,
    value: impl Fn(&str) -> Parameter,
    options: &QueryOptions,
) -> Result<Vec<Vec<String>>> {
    let placeholders = statement.placeholders().iter();
    let values: Vec<_> = placeholders.map(|name| value(name)).collect();
    let statement = BoundStatement {
        statement: Arc::clone(statement),
        hints: vec![None; values.len()],
        formats: vec![None; values.len()],
        sets: vec![values],
        listed: false,
        places: Vec::new(),
    };
    let mut texts = TextRows(Vec::new());
    executor
        .query(&principal, &statement, options, &mut texts)
        .await?;
    Ok(texts.0)
}

/// Collects the rows of a result. The values must be of type text. NULL becomes an empty string.
struct TextRows(Vec<Vec<String>>);

impl RowSink for TextRows {
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
