//! The privileges of roles on a table (PostgreSQL, "Privileges"), and the statements that change
//! them.

mod plan;

use std::sync::{Arc, LazyLock};

use serde::Deserialize;
use tidegate_sql::{
    BoundStatement, DatabaseName, Executor, Login, Mode, Principal, QueryOptions, Statement,
    TextRows,
};
use tidegate_values::Parameter;

use crate::error::{Error, Result};
use plan::RoleStatements;

static TABLE_PRIVILEGES: LazyLock<Arc<Statement>> = LazyLock::new(|| {
    let text = include_str!("privileges.sql");
    Arc::new(Statement::parse(text).expect("the statement beside this file can be parsed"))
});

/// The level of access that a role has to a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// No privileges.
    None,
    /// `SELECT`.
    Read,
    /// `SELECT`, `INSERT`, `UPDATE` and `DELETE`, and the use of the table's sequences.
    Write,
}

impl Access {
    /// All access levels.
    pub const ALL: [Self; 3] = [Self::None, Self::Read, Self::Write];

    /// The name of the level.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Read => "read",
            Self::Write => "write",
        }
    }

    /// The level with this name; `None` if there is none.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|access| access.name() == name)
    }

    /// The privileges on the table that belong to the level.
    const fn privileges(self) -> &'static [&'static str] {
        match self {
            Self::None => &[],
            Self::Read => &["SELECT"],
            Self::Write => &["SELECT", "INSERT", "UPDATE", "DELETE"],
        }
    }
}

/// A table, with the names of its schema and database.
#[derive(Clone, Copy, Debug)]
pub struct TableName<'a> {
    /// The database of the table.
    pub database: &'a DatabaseName,
    /// The schema of the table.
    pub schema: &'a str,
    /// The name of the table, view or foreign table.
    pub table: &'a str,
}

/// The privileges of a role on a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoleAccess {
    /// The name of the role.
    pub role: String,
    /// The access level; `None` if the privileges match no level. Without USAGE on the schema, it
    /// is [`Access::None`].
    pub access: Option<Access>,
    /// Whether the role has USAGE on the table's schema. Without it, the privileges on the table
    /// have no effect.
    pub usage: bool,
    /// The role's privileges on the table from all sources: its own, those of groups, and those of
    /// PUBLIC.
    pub privileges: Vec<String>,
    /// Privileges on single columns that the role does not have on the whole table.
    pub columns: Vec<ColumnPrivilege>,
}

/// A privilege on a column.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ColumnPrivilege {
    /// The name of the privilege.
    pub privilege: String,
    /// The name of the column.
    pub column: String,
}

/// A table in the catalog, with its sequences and the privileges of the requested roles. The names
/// of the table, the schema and the sequences are quoted. The names of the table and the sequences
/// are also qualified.
#[derive(Debug, Deserialize)]
struct TablePrivileges {
    relation: String,
    schema: String,
    owner: String,
    schema_owner: String,
    sequences: Vec<Sequence>,
    roles: Vec<Role>,
}

#[derive(Debug, Deserialize)]
struct Sequence {
    name: String,
    owner: String,
}

/// The privileges of one of the requested roles.
#[derive(Debug, Deserialize)]
struct Role {
    #[serde(rename = "role")]
    name: String,
    /// The name of the role as an SQL identifier.
    quoted: String,
    /// Whether the role has USAGE on the schema of the table.
    usage: bool,
    /// Whether the role has USAGE on the schema with grant option.
    gives_usage: bool,
    /// The privileges that the role has on the whole table.
    privileges: Vec<String>,
    /// The privileges that the role has on the whole table with grant option.
    gives: Vec<String>,
    /// Privileges on single columns that the role does not have on the whole table.
    columns: Vec<ColumnPrivilege>,
    /// The grants from which the privileges come, except grants that the role made itself.
    grants: Vec<TableGrant>,
}

/// A grant of a privilege on the table or on one of its columns.
#[derive(Debug, Deserialize)]
struct TableGrant {
    grantor: String,
    /// The group, or `PUBLIC`, that has the privilege; `None` for a grant to the role itself.
    through: Option<String>,
    privilege: String,
}

/// Reads the privileges of each of `roles` on a table. Roles that do not exist are left out.
///
/// # Errors
///
/// [`Error::NoTable`] if the table does not exist, and [`Error::Sql`] if the catalog cannot be
/// read.
pub async fn table_access(
    executor: &dyn Executor,
    table: TableName<'_>,
    roles: &[&str],
    options: &QueryOptions,
) -> Result<Vec<RoleAccess>> {
    let found = read_privileges(executor, table, roles, options).await?;
    Ok(found.roles.into_iter().map(role_access).collect())
}

/// Gives a role an access level on a table. `grant` is the role and the level. Privileges that
/// exceed the level are revoked. For [`Access::Write`] nothing is revoked.
///
/// `logins` are the roles that the service can log in as, including the role that gets the access.
/// The statements run as the table's owner if it is one of `logins`, or else as a role with the
/// grant option. Each revocation runs as the role that granted the privilege. USAGE on the schema
/// is granted in the same way if it is missing. It is never revoked.
///
/// # Errors
///
/// [`Error::NoTable`], [`Error::OwnsTable`], [`Error::NoGrantor`] and [`Error::NotRevocable`] are
/// returned before anything is changed. [`Error::Sql`] if a statement fails. The statements of each
/// role run in a transaction of their own, so the changes of earlier transactions may remain.
pub async fn set_table_access(
    executor: &dyn Executor,
    table: TableName<'_>,
    grant: (&str, Access),
    logins: &[Login],
    options: &QueryOptions,
) -> Result<()> {
    for _ in 1..MAX_TRIES {
        match grant_and_revoke(executor, table, grant, logins, options).await {
            Err(Error::Sql(error)) if error.sqlstate() == Some(SERIALIZATION_FAILURE) => {}
            done => return done,
        }
    }
    grant_and_revoke(executor, table, grant, logins, options).await
}

/// The maximum number of attempts at a change of privileges that conflicts with concurrent changes.
const MAX_TRIES: u32 = 20;

/// The SQLSTATE `serialization_failure`: another session changed the privileges of the same object
/// at the same time. PostgreSQL reports "tuple concurrently updated", which the executor maps to
/// this code.
const SERIALIZATION_FAILURE: &str = "40001";

async fn grant_and_revoke(
    executor: &dyn Executor,
    table: TableName<'_>,
    (grantee, access): (&str, Access),
    logins: &[Login],
    options: &QueryOptions,
) -> Result<()> {
    let roles: Vec<_> = logins.iter().map(|login| login.role.as_str()).collect();
    let found = read_privileges(executor, table, &roles, options).await?;
    for RoleStatements { role, statements } in plan::steps(&found, grantee, access)? {
        let login = logins.iter().find(|login| login.role.as_str() == role);
        let login = login.ok_or(Error::UnexpectedResult)?;
        let principal = Principal::Role(login.clone());
        let mut transaction = executor.begin(&principal, Mode::ReadWrite, options).await?;
        for text in statements {
            let statement = Statement::parse(&text).map_err(tidegate_sql::Error::from)?;
            let statement = BoundStatement::with_values(Arc::new(statement), Vec::new());
            transaction
                .query(&statement, &mut TextRows::default())
                .await?;
        }
        transaction.commit().await?;
    }
    Ok(())
}

async fn read_privileges(
    executor: &dyn Executor,
    table: TableName<'_>,
    roles: &[&str],
    options: &QueryOptions,
) -> Result<TablePrivileges> {
    let roles = serde_json::to_string(roles).map_err(|_| Error::UnexpectedResult)?;
    let value = |name: &String| match name.as_str() {
        "schema" => Parameter::Text(table.schema.into()),
        "table" => Parameter::Text(table.table.into()),
        _ => Parameter::Text(roles.as_str().into()),
    };
    let values = TABLE_PRIVILEGES.placeholders().iter().map(value).collect();
    let mut rows = TextRows::default();
    let principal = Principal::Catalog(table.database.clone());
    let statement = BoundStatement::with_values(Arc::clone(&TABLE_PRIVILEGES), values);
    executor
        .query(&principal, &statement, options, &mut rows)
        .await?;
    // There is no row if there is no such table.
    let document = rows.0.pop().and_then(|mut row| row.pop());
    let document = document.ok_or(Error::NoTable)?;
    serde_json::from_str(&document).map_err(|_| Error::UnexpectedResult)
}

fn role_access(role: Role) -> RoleAccess {
    let has = |privilege: &&str| role.privileges.iter().any(|own| own == privilege);
    let holds = |access: Access| access.privileges().iter().all(&has);
    let access = if !role.usage || (role.privileges.is_empty() && role.columns.is_empty()) {
        Some(Access::None)
    } else if holds(Access::Write) {
        Some(Access::Write)
    } else if role.privileges == ["SELECT"] && role.columns.is_empty() {
        Some(Access::Read)
    } else {
        None
    };
    RoleAccess {
        role: role.name,
        access,
        usage: role.usage,
        privileges: role.privileges,
        columns: role.columns,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(privileges: &[&str], columns: &[(&str, &str)]) -> Option<Access> {
        let column = |(privilege, column): &(&str, &str)| ColumnPrivilege {
            privilege: (*privilege).to_owned(),
            column: (*column).to_owned(),
        };
        let role = Role {
            name: "shop/ann".to_owned(),
            quoted: "\"shop/ann\"".to_owned(),
            usage: true,
            gives_usage: false,
            privileges: privileges.iter().map(ToString::to_string).collect(),
            gives: Vec::new(),
            columns: columns.iter().map(column).collect(),
            grants: Vec::new(),
        };
        role_access(role).access
    }

    #[test]
    fn an_access_level_is_only_reported_if_it_is_exact() {
        assert_eq!(access(&[], &[]), Some(Access::None));
        assert_eq!(access(&["SELECT"], &[]), Some(Access::Read));
        for more in ["TRUNCATE", "REFERENCES", "TRIGGER", "INSERT"] {
            assert_eq!(access(&["SELECT", more], &[]), None, "{more}");
        }
        assert_eq!(access(&["SELECT"], &[("UPDATE", "price")]), None);
        assert_eq!(access(&[], &[("SELECT", "price")]), None);
        let write = ["SELECT", "INSERT", "UPDATE", "DELETE"];
        assert_eq!(access(&write, &[]), Some(Access::Write));
    }
}
