//! Decides whether a subscription needs whole old rows in the change log.

use crate::access::privileges::{ColumnPrivileges, Privileges};
use crate::error::{Error, Result};
use crate::event::operation::{Operation, Operations};

/// Whether the change log must contain whole old rows, and not only the columns of the replica
/// identity. The result depends on the columns that the subscription uses, and on the columns that
/// the policies of its role read.
///
/// # Errors
///
/// [`Error::NoColumn`] if the role may not read a column of `columns`. [`Error::Unsupported`] if
/// one of `columns`, or a column that a policy reads, is not in the change log.
pub(crate) fn needs_old_rows(
    operations: Operations,
    columns: &[Box<str>],
    privileges: &Privileges,
) -> Result<bool> {
    let mut used = Vec::new();
    for name in columns {
        used.push(privileges.column(name)?);
    }
    let (updates, deletes) = (
        operations.has(Operation::Update),
        operations.has(Operation::Delete),
    );
    let may_be_toasted = |column: &&ColumnPrivileges| column.may_be_toasted;
    let for_columns = deletes && used.iter().any(|column| !column.in_replica_identity)
        || updates && used.iter().any(may_be_toasted);
    let Some(policy) = &privileges.policy else {
        return Ok(for_columns);
    };
    let is_read_by_policy = |column: &&ColumnPrivileges| {
        let names = policy.columns();
        names.is_none_or(|names| names.contains(&column.name))
    };
    let mut policy_columns = privileges.columns.iter().filter(is_read_by_policy);
    if policy_columns.clone().any(|column| column.not_in_log) {
        return Err(Error::Unsupported(
            "the policies of the table read a generated column, which is not in the log".to_owned(),
        ));
    }
    Ok(for_columns || deletes || updates && policy_columns.any(|column| column.may_be_toasted))
}
