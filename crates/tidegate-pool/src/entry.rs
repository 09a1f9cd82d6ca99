//! A connection in the pool.

use tidegate_sql::RoleUse;
use tokio::time::Instant;

use super::connector::Key;

/// A connection and what the pool knows about it.
pub(super) struct Entry<C> {
    pub(super) connection: C,
    pub(super) key: Key,
    /// When opening it began, in the pool's count of events.
    pub(super) serial: u64,
    pub(super) opened: Instant,
    pub(super) idle_since: Instant,
    pub(super) session: Option<RoleUse>,
}
