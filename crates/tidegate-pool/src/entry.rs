//! A connection in the pool.

use tidegate_sql::RoleUse;
use tokio::time::Instant;

use super::connector::{Connector, PoolKey};

/// A connection and the data that the pool keeps about it.
pub(super) struct PoolEntry<K: Connector> {
    pub(super) connection: K::Connection,
    pub(super) key: PoolKey,
    /// The number of the event at which the opening of the connection was decided.
    pub(super) serial: u64,
    pub(super) opened: Instant,
    pub(super) idle_since: Instant,
    pub(super) session: Option<RoleUse>,
}
