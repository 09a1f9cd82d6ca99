//! The result of a poll of the catalog.

use std::collections::HashMap;

use tidegate_sql::RoleName;

use crate::catalog_query::TextRow;
use crate::database::captures::TableCapture;

/// Facts of the catalog on which subscriptions depend. The change log does not report changes of
/// these facts.
#[derive(Debug, Default)]
pub(crate) struct CatalogSnapshot {
    /// The captures when the poll began, by the OID of the table.
    pub(crate) captures: HashMap<u32, TableCapture>,
    /// The rows of [`tidegate_changelog::ChangeLog::health_query`].
    pub(crate) capture_health: Vec<TextRow>,
    /// For each captured table that is partitioned, a fingerprint of its partitions.
    pub(crate) partition_trees: HashMap<u32, Box<str>>,
    /// The fingerprints of the tables of subscriptions, by OID; see [`crate::access::fingerprint`].
    pub(crate) tables: HashMap<u32, Box<str>>,
    /// The fingerprints of the roles of subscriptions, by name.
    pub(crate) roles: HashMap<Box<str>, Box<str>>,
    /// A fingerprint of the attributes of the composite types in use.
    pub(crate) attributes: Box<str>,
}

impl CatalogSnapshot {
    /// The fingerprints of a table and a role; `None` if one of them is not in the snapshot.
    pub(crate) fn fingerprints(&self, relation: u32, role: &RoleName) -> Option<(&str, &str)> {
        Some((self.tables.get(&relation)?, self.roles.get(role.as_str())?))
    }
}
