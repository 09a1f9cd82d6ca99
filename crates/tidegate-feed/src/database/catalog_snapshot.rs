//! The result of a poll of the catalog.

use std::collections::HashMap;

use tidegate_sql::RoleName;

use crate::catalog_query::TextRow;
use crate::database::captures::TableCapture;

/// The facts on which subscriptions depend and that the change log does not report.
#[derive(Debug, Default)]
pub(crate) struct CatalogSnapshot {
    /// The captures at the time the poll began.
    pub(crate) captures: HashMap<u32, TableCapture>,
    /// The rows of [`tidegate_changelog::ChangeLog::health_query`].
    pub(crate) capture_health: Vec<TextRow>,
    /// A fingerprint of the partitions of each captured table that is partitioned.
    pub(crate) partition_trees: HashMap<u32, Box<str>>,
    /// The fingerprints of the tables and roles of subscriptions; see
    /// [`crate::access::fingerprint`].
    pub(crate) tables: HashMap<u32, Box<str>>,
    pub(crate) roles: HashMap<Box<str>, Box<str>>,
    /// A fingerprint of the attributes of the composite types in use.
    pub(crate) attributes: Box<str>,
}

impl CatalogSnapshot {
    /// The fingerprints of a table and a role, if both exist.
    pub(crate) fn fingerprints(&self, relation: u32, role: &RoleName) -> Option<(&str, &str)> {
        Some((self.tables.get(&relation)?, self.roles.get(role.as_str())?))
    }
}
