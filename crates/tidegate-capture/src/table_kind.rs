//! Decides which relations can be captured.

use tidegate_changelog::{LogError, LogResult};

/// Checks `relkind`, `relpersistence` and `relispartition` of a relation.
///
/// # Errors
///
/// [`LogError::Unsupported`] if the relation is not a permanent table, or is a partition.
pub(crate) fn check_kind(kind: &str, persistence: &str, partition: bool) -> LogResult<()> {
    let what = match (kind, persistence) {
        ("r" | "p", "p") if partition => "a partition (subscribe to the partitioned table)",
        ("r" | "p", "p") => return Ok(()),
        ("r" | "p", "u") => "an unlogged table",
        ("r" | "p", _) => "a temporary table",
        ("v", _) => "a view",
        ("m", _) => "a materialised view",
        ("f", _) => "a foreign table",
        _ => "no table",
    };
    Err(LogError::Unsupported(format!("it is {what}")))
}
