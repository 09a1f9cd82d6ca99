//! The keys of roles. Roles with equal keys see the same schemas.

use std::sync::{Arc, LazyLock};

use tidegate_sql::{DatabaseName, Executor, Principal, QueryOptions, RoleName, Statement};
use tidegate_values::Parameter;

use super::{run, statement};
use crate::error::{Error, Result};

static KEYS: LazyLock<Arc<Statement>> = LazyLock::new(|| statement(include_str!("keys.sql")));

/// A role of a database with its cache key.
#[derive(Debug)]
pub(crate) struct RoleKey {
    pub(crate) role: RoleName,
    /// The OID of the role in `pg_roles`.
    pub(crate) number: u32,
    /// The cache key. Roles with equal keys see the same schemas until a definition changes.
    pub(crate) key: String,
}

/// Reads the keys of roles. Roles that do not exist are left out.
///
/// # Errors
///
/// [`Error::Sql`] if the statement fails.
pub(crate) async fn keys(
    executor: &dyn Executor,
    database: &DatabaseName,
    roles: &[RoleName],
    options: &QueryOptions,
) -> Result<Vec<RoleKey>> {
    let names = array(roles);
    let value = |_: &str| Parameter::Text(names.as_str().into());
    let principal = Principal::Catalog(database.clone());
    let rows = run(executor, principal, &KEYS, value, options).await?;
    rows.into_iter().map(read).collect()
}

fn read(row: Vec<String>) -> Result<RoleKey> {
    let [role, number, key] = row.try_into().map_err(|_| Error::UnexpectedResult)?;
    Ok(RoleKey {
        role: RoleName::new(role),
        number: number.parse().map_err(|_| Error::UnexpectedResult)?,
        key,
    })
}

/// The names as the text of an array (PostgreSQL, "Array Input and Output Syntax").
fn array(names: &[RoleName]) -> String {
    let quoted = names.iter().map(|name| {
        let escaped = name.as_str().replace('\\', r"\\").replace('"', "\\\"");
        format!("\"{escaped}\"")
    });
    format!("{{{}}}", quoted.collect::<Vec<_>>().join(","))
}
