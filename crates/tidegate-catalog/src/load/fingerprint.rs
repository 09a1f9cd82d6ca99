//! Detects changes of definitions and roles.

use std::sync::{Arc, LazyLock};

use tidegate_sql::{DatabaseName, Executor, Principal, QueryOptions, Statement};
use tidegate_values::Parameter;

use super::{run, statement};
use crate::error::{Error, Result};

const ROLES_SQL: &str = include_str!("roles.sql");

static ROLES: LazyLock<Arc<Statement>> = LazyLock::new(|| {
    statement(&format!(
        "select r.known, r.whole, r.newest::pg_catalog.text from (\n{ROLES_SQL}) r"
    ))
});

static FINGERPRINT: LazyLock<Arc<Statement>> = LazyLock::new(|| {
    let (definitions, usage) = (include_str!("fingerprint.sql"), include_str!("usage.sql"));
    statement(&format!(
        "select r.known, r.whole, r.newest::pg_catalog.text, u.known, u.whole, d.definitions \
         from (\n{definitions}) d cross join (\n{ROLES_SQL}) r cross join (\n{usage}) u"
    ))
});

static DEFINITIONS: LazyLock<Arc<Statement>> = LazyLock::new(|| {
    let (definitions, usage) = (include_str!("fingerprint.sql"), include_str!("usage.sql"));
    statement(&format!(
        "select u.known, u.whole, d.definitions \
         from (\n{definitions}) d cross join (\n{usage}) u"
    ))
});

/// The cluster's roles and one database's schema privileges at a point in time, as fingerprints.
/// Two values are compared to find what has changed in between ([`RolesChange`]).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Roles {
    /// A text that changes when a role or a membership changes.
    whole: String,
    /// A text that changes when the privileges on schemas of one database change. The function
    /// [`roles`] leaves it empty.
    usage: String,
    /// The highest OID of a role.
    newest: u32,
}

/// The change of roles, memberships or schema privileges since the previous comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RolesChange {
    /// There was no change.
    Same,
    /// Only roles whose OID in `pg_roles` is higher than `after` were added or changed.
    Added {
        /// The highest OID of a role at the previous comparison.
        after: u32,
    },
    /// Any role may have changed.
    Changed,
}

/// The fingerprint of a database and its cluster.
#[derive(Clone, Debug)]
pub struct Fingerprint {
    /// A text that changes whenever a definition or a grant on a relation changes.
    pub definitions: String,
    /// The state of the roles now.
    pub roles: Roles,
    /// The change of the roles since the previous comparison.
    pub change: RolesChange,
}

/// Reads the fingerprint of all definitions and roles on which the schemas of the database depend,
/// for all roles. `before` is the state of the roles at the previous comparison. If `before` is
/// `None`, the result has [`RolesChange::Changed`].
///
/// # Errors
///
/// [`Error::Sql`] if the statement fails.
pub async fn fingerprint(
    executor: &dyn Executor,
    database: &DatabaseName,
    before: Option<&Roles>,
    options: &QueryOptions,
) -> Result<Fingerprint> {
    let principal = Principal::Catalog(database.clone());
    let row = first_row(executor, principal, &FINGERPRINT, before, options).await?;
    let [known, whole, newest, known_usage, usage, definitions] =
        row.try_into().map_err(|_| Error::UnexpectedResult)?;
    let roles = Roles {
        whole,
        usage,
        newest: newest.parse().map_err(|_| Error::UnexpectedResult)?,
    };
    let change = compare(before, (&known, &known_usage), &roles);
    Ok(Fingerprint {
        definitions,
        roles,
        change,
    })
}

/// Reads the same as [`fingerprint`], except roles and memberships. Roles and memberships belong to
/// the cluster, and reading thousands of them takes milliseconds. Therefore they are compared
/// separately, with [`roles`], once for all databases.
///
/// # Errors
///
/// [`Error::Sql`] if the statement fails.
pub async fn definitions(
    executor: &dyn Executor,
    database: &DatabaseName,
    before: &Roles,
    options: &QueryOptions,
) -> Result<Fingerprint> {
    let principal = Principal::Catalog(database.clone());
    let row = first_row(executor, principal, &DEFINITIONS, Some(before), options).await?;
    let [known_usage, usage, definitions] = row.try_into().map_err(|_| Error::UnexpectedResult)?;
    let mut roles = Roles {
        usage,
        ..before.clone()
    };
    let change = compare(Some(before), (&before.whole, &known_usage), &roles);
    if matches!(change, RolesChange::Added { .. }) {
        // This query does not read the newest role, so the next comparison must start from the old
        // state.
        roles = before.clone();
    }
    Ok(Fingerprint {
        definitions,
        roles,
        change,
    })
}

/// Reads only the part of [`fingerprint`] that covers the cluster's roles and memberships. Changes
/// of the other parts are found with [`definitions`], or the databases notify the node of them.
///
/// # Errors
///
/// [`Error::Sql`] if the statement fails.
pub async fn roles(
    executor: &dyn Executor,
    before: Option<&Roles>,
    options: &QueryOptions,
) -> Result<(Roles, RolesChange)> {
    let row = first_row(executor, Principal::Control, &ROLES, before, options).await?;
    let [known, whole, newest] = row.try_into().map_err(|_| Error::UnexpectedResult)?;
    let roles = Roles {
        whole,
        usage: String::new(),
        newest: newest.parse().map_err(|_| Error::UnexpectedResult)?,
    };
    let change = compare(before, (&known, ""), &roles);
    Ok((roles, change))
}

async fn first_row(
    executor: &dyn Executor,
    principal: Principal,
    statement: &Arc<Statement>,
    before: Option<&Roles>,
    options: &QueryOptions,
) -> Result<Vec<String>> {
    let newest = |_: &str| match before {
        Some(before) => Parameter::Text(before.newest.to_string().into()),
        None => Parameter::Null,
    };
    let rows = run(executor, principal, statement, newest, options).await?;
    rows.into_iter().next().ok_or(Error::UnexpectedResult)
}

/// Compares the state of the roles with `before`, the state at the previous comparison. `known` is
/// the present state (`whole` and `usage`) of the roles that existed at the previous comparison.
fn compare(before: Option<&Roles>, known: (&str, &str), now: &Roles) -> RolesChange {
    match before {
        Some(before) if before.whole == now.whole && before.usage == now.usage => RolesChange::Same,
        Some(before) if (before.whole.as_str(), before.usage.as_str()) == known => {
            RolesChange::Added {
                after: before.newest,
            }
        }
        _ => RolesChange::Changed,
    }
}
