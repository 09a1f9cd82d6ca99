//! Whether anything has changed of which schemas are made.

use std::sync::{Arc, LazyLock};

use tidegate_sql::{DatabaseName, Executor, Principal, Statement, Terms};
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
        "select pg_catalog.concat_ws(' ', r.known, u.known), \
                pg_catalog.concat_ws(' ', r.whole, u.whole), \
                r.newest::pg_catalog.text, d.definitions \
         from (\n{definitions}) d cross join (\n{ROLES_SQL}) r cross join (\n{usage}) u"
    ))
});

/// What the roles of a cluster were like when they were last compared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Roles {
    whole: String,
    newest: u32,
}

/// What has changed of roles, memberships and the right to use schemas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RolesChange {
    /// Nothing.
    Same,
    /// Only roles with a higher number than this (`pg_roles.oid`) have come, or changed.
    Added {
        /// The number of the newest role that was known before.
        after: u32,
    },
    /// Anything may have changed.
    Changed,
}

/// What is compared of a database and its cluster.
#[derive(Clone, Debug)]
pub struct Fingerprint {
    /// A text that is different once a definition or a grant on a relation has changed.
    pub definitions: String,
    /// The roles now.
    pub roles: Roles,
    /// What is new of them.
    pub change: RolesChange,
}

/// Compares all of which the documents of a database are made, for any role.
///
/// # Errors
///
/// [`Error::Sql`] when the statement cannot run.
pub async fn fingerprint(
    executor: &dyn Executor,
    database: &DatabaseName,
    before: Option<&Roles>,
    terms: &Terms,
) -> Result<Fingerprint> {
    let who = Principal::Catalog(database.clone());
    let row = first_row(executor, who, &FINGERPRINT, before, terms).await?;
    let [known, whole, newest, definitions] = row.try_into().map_err(|_| Error::Document)?;
    let (roles, change) = compare(before, &known, whole, &newest)?;
    Ok(Fingerprint {
        definitions,
        roles,
        change,
    })
}

/// Compares the cluster's roles and memberships, which [`fingerprint`] does too: for a caller that
/// hears of all other changes.
///
/// # Errors
///
/// [`Error::Sql`] when the statement cannot run.
pub async fn roles(
    executor: &dyn Executor,
    before: Option<&Roles>,
    terms: &Terms,
) -> Result<(Roles, RolesChange)> {
    let row = first_row(executor, Principal::Control, &ROLES, before, terms).await?;
    let [known, whole, newest] = row.try_into().map_err(|_| Error::Document)?;
    compare(before, &known, whole, &newest)
}

async fn first_row(
    executor: &dyn Executor,
    who: Principal,
    statement: &Arc<Statement>,
    before: Option<&Roles>,
    terms: &Terms,
) -> Result<Vec<String>> {
    let newest = |_: &str| match before {
        Some(before) => Parameter::Text(before.newest.to_string().into()),
        None => Parameter::Null,
    };
    let rows = run(executor, who, statement, newest, terms).await?;
    rows.into_iter().next().ok_or(Error::Document)
}

fn compare(
    before: Option<&Roles>,
    known: &str,
    whole: String,
    newest: &str,
) -> Result<(Roles, RolesChange)> {
    let newest = newest.parse().map_err(|_| Error::Document)?;
    let change = match before {
        Some(before) if before.whole == whole => RolesChange::Same,
        Some(before) if before.whole == known => RolesChange::Added {
            after: before.newest,
        },
        _ => RolesChange::Changed,
    };
    Ok((Roles { whole, newest }, change))
}
