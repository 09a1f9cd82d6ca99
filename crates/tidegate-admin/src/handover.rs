//! Checks objects that are given to another role: other roles must not be able to run code of these
//! objects with the privileges of the new owner.

use super::session::Session;
use super::{Error, Result};

/// When [`require_data_only`] checks the objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HandoverStep {
    /// While the objects belong to the roles that are to be dropped.
    Before,
    /// After the running transaction has given the objects to `heir`, the new owner. This check
    /// also finds objects that were created after the first check.
    Reassigned,
}

/// Refuses objects that would let other roles act with the privileges of `heir`: `SECURITY DEFINER`
/// routines, views, rules, and code that PostgreSQL runs as the owner of a table. `session` is in
/// the tenant's database, which contains the objects of `roles`.
///
/// # Errors
///
/// [`Error::CarriesRights`] with a description of each object.
pub(super) async fn require_data_only(
    session: &Session,
    (roles, heir): (&[&str], &str),
    step: HandoverStep,
) -> Result<()> {
    let reassigned = step == HandoverStep::Reassigned;
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
