//! What the log must hold so that a subscription can be served.

use crate::change::{Operation, Operations};
use crate::error::{Error, Result};
use crate::rights::{ColumnRights, Rights};

/// Whether old rows must be in the log as a whole, beyond the key: for the columns that the
/// subscription uses, and for those that the policies of its role look at.
///
/// # Errors
/// [`Error::NoColumn`] and [`Error::Unsupported`].
pub(crate) fn needs_old_rows(
    operations: Operations,
    columns: &[Box<str>],
    rights: &Rights,
) -> Result<bool> {
    let mut used = Vec::new();
    for name in columns {
        used.push(rights.column(name)?);
    }
    let (updates, deletes) = (
        operations.has(Operation::Update),
        operations.has(Operation::Delete),
    );
    let is_long = |column: &&ColumnRights| column.long;
    let for_itself =
        deletes && used.iter().any(|column| !column.key) || updates && used.iter().any(is_long);
    let Some(policy) = &rights.policy else {
        return Ok(for_itself);
    };
    let is_looked_at = |column: &&ColumnRights| {
        let names = policy.columns();
        names.is_none_or(|names| names.contains(&column.name))
    };
    let mut looked_at = rights.columns.iter().filter(is_looked_at);
    if looked_at.clone().any(|column| column.generated) {
        return Err(Error::Unsupported(
            "the policies of the table look at a generated column, which the log does not tell"
                .to_owned(),
        ));
    }
    Ok(for_itself || deletes || updates && looked_at.any(|column| column.long))
}
