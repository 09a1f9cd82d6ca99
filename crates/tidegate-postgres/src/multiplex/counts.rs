//! Counts over all multiplexed connections.

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;

use parking_lot::Mutex;
use tidegate_pool::PoolKey;

/// The counts, which all groups of requests share.
pub(super) struct Counts {
    /// How many multiplexed connections are open or being opened, by role.
    pub(super) open: Mutex<HashMap<PoolKey, usize>>,
    /// The limit on multiplexed connections of a role.
    pub(super) max_per_role: usize,
    /// How many pipelines have returned their rows.
    pub(super) delivered: AtomicU64,
}

impl Counts {
    /// Counts a connection that is about to be opened. Returns `false`, and counts nothing, if the
    /// role has reached its limit.
    pub(super) fn open_one(&self, key: &PoolKey) -> bool {
        let mut open = self.open.lock();
        let of_role = open.entry(key.clone()).or_default();
        let may = *of_role < self.max_per_role;
        *of_role += usize::from(may);
        may
    }

    /// Counts a connection that was closed.
    pub(super) fn close_one(&self, key: &PoolKey) {
        let mut open = self.open.lock();
        if let Some(count) = open.get_mut(key) {
            *count -= 1;
            if *count == 0 {
                open.remove(key);
            }
        }
    }
}
