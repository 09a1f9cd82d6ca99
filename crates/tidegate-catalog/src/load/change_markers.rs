//! Change markers, which cost little to read. They show whether definitions or roles may have
//! changed and must be compared.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use tidegate_sql::{DatabaseName, Executor, Principal, QueryOptions, Statement};
use tidegate_values::Parameter;

use super::{run, statement};
use crate::error::{Error, Result};

static CHANGE_MARKERS: LazyLock<Arc<Statement>> =
    LazyLock::new(|| statement(include_str!("change_markers.sql")));

/// The marker of a kind of object, such as roles. If two reads of the marker give equal markers, no
/// object of this kind changed between the two reads. `counts` may change late, but `snapshot`
/// changes immediately.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangeMarker {
    /// A text that changes whenever a transaction of the cluster has written something.
    pub snapshot: String,
    /// A text that changes within ten seconds after one of the objects has changed.
    pub counts: String,
}

/// The markers of a cluster's roles and of the definitions in its databases.
#[derive(Clone, Debug)]
pub struct ChangeMarkers {
    /// The marker of roles, memberships and databases, and of the settings of roles and databases.
    pub roles: ChangeMarker,
    databases: HashMap<String, String>,
}

impl ChangeMarkers {
    /// The marker of the definitions in a database. Its `counts` is empty if the database was not
    /// read.
    pub fn of(&self, database: &DatabaseName) -> ChangeMarker {
        ChangeMarker {
            snapshot: self.roles.snapshot.clone(),
            counts: self
                .databases
                .get(database.as_str())
                .cloned()
                .unwrap_or_default(),
        }
    }
}

/// Reads the markers of the cluster and of databases, in the control database.
///
/// # Errors
///
/// [`Error::Sql`] if the statement fails.
pub async fn change_markers(
    executor: &dyn Executor,
    databases: impl IntoIterator<Item = &DatabaseName>,
    options: &QueryOptions,
) -> Result<ChangeMarkers> {
    // The name as an element in the text form of an array (PostgreSQL, "Array Input and Output
    // Syntax").
    let quoted = |name: &DatabaseName| {
        let name = name.as_str().replace('\\', r"\\").replace('"', "\\\"");
        format!("\"{name}\"")
    };
    let names: Vec<_> = databases.into_iter().map(quoted).collect();
    let names = format!("{{{}}}", names.join(","));
    let value = |_: &str| Parameter::Text(names.as_str().into());
    let mut rows = run(
        executor,
        Principal::Control,
        &CHANGE_MARKERS,
        value,
        options,
    )
    .await?
    .into_iter();
    let [_, snapshot, counts] = rows
        .next()
        .and_then(|row| row.try_into().ok())
        .ok_or(Error::UnexpectedResult)?;
    let of_database = |row: Vec<String>| {
        let [database, _, counts] = row.try_into().ok()?;
        Some((database, counts))
    };
    Ok(ChangeMarkers {
        roles: ChangeMarker { snapshot, counts },
        databases: rows.filter_map(of_database).collect(),
    })
}
