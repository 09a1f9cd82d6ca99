//! Reads the catalogs of PostgreSQL: relations, fingerprints and change markers, and the keys of
//! roles.

mod change_markers;
mod fingerprint;
mod keys;
mod relations;

use std::sync::Arc;

use tidegate_sql::{BoundStatement, Executor, Principal, QueryOptions, Statement, TextRows};
use tidegate_values::Parameter;

use crate::error::Result;

pub use change_markers::{ChangeMarker, ChangeMarkers, change_markers};
pub use fingerprint::{Fingerprint, Roles, RolesChange, definitions, fingerprint, roles};
pub(crate) use keys::{RoleKey, keys};
pub(crate) use relations::{SchemaRows, relations};

fn statement(text: &str) -> Arc<Statement> {
    Arc::new(Statement::parse(text).expect("the statement beside this file can be parsed"))
}

/// Runs a statement whose columns are text, and returns its rows. `value` returns the value of the
/// placeholder with the given name.
async fn run(
    executor: &dyn Executor,
    principal: Principal,
    statement: &Arc<Statement>,
    value: impl Fn(&str) -> Parameter,
    options: &QueryOptions,
) -> Result<Vec<Vec<String>>> {
    let placeholders = statement.placeholders().iter();
    let values: Vec<_> = placeholders.map(|name| value(name)).collect();
    let statement = BoundStatement::with_values(Arc::clone(statement), values);
    let mut texts = TextRows::default();
    executor
        .query(&principal, &statement, options, &mut texts)
        .await?;
    Ok(texts.0)
}
