//! Whether what a role owns can be given to another without giving its code that other's rights.

use super::session::Session;
use super::{Error, Result};

/// When objects are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    /// They belong to the roles that are to be dropped.
    Before,
    /// The running transaction has given them to the heir: nothing that was made meanwhile is
    /// missed.
    Reassigned,
}

/// Refuses to give to `heir` what would let others act with the heir's rights: `SECURITY DEFINER`
/// routines, views, rules, and code that PostgreSQL runs as the owner of a table. `session` is in
/// the roles' database.
///
/// # Errors
/// [`Error::CarriesRights`] with a description of each object.
pub(super) async fn require_data_only(
    session: &Session,
    (roles, heir): (&[&str], &str),
    moment: Moment,
) -> Result<()> {
    let reassigned = moment == Moment::Reassigned;
    let query = include_str!("handover.sql");
    let rows = session
        .client
        .query(query, &[&roles, &heir, &reassigned])
        .await?;
    let objects: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    if objects.is_empty() {
        return Ok(());
    }
    Err(Error::CarriesRights {
        heir: heir.to_owned(),
        objects,
    })
}
