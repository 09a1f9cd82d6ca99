//! Limits of the service connections to tenants' databases.

use std::collections::HashMap;
use std::sync::Arc;

use tidegate_sql::{DatabaseName, Error, Result};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::service_pool::{RETRY_AFTER, ServicePool, WAIT};

/// The limits on connections to the databases of tenants, all databases together. Without limits, a
/// hundred databases in use at once would take all connections of PostgreSQL, and leave none to
/// users.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The limit on connections that read catalogs. Idle ones are closed to make room for another
    /// database.
    pub lookups: usize,
    /// The limit on connections that listen for notifications of definitions.
    pub listeners: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            lookups: Semaphore::MAX_PERMITS,
            listeners: Semaphore::MAX_PERMITS,
        }
    }
}

impl Limits {
    /// The limits for a node whose pool has at most `connections` connections of users. The two
    /// limits together are about a fifth of that number, which the pool leaves free. Each is at
    /// least 4.
    pub fn for_pool(connections: usize) -> Self {
        Self {
            lookups: (connections / 11).max(4),
            listeners: (connections / 10).max(4),
        }
    }
}

/// The permits that enforce the limits.
pub(super) struct Permits {
    limits: Limits,
    lookups: Arc<Semaphore>,
    listeners: Arc<Semaphore>,
}

impl Permits {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            limits,
            lookups: Arc::new(Semaphore::new(limits.lookups)),
            listeners: Arc::new(Semaphore::new(limits.listeners)),
        }
    }

    /// Waits for a permit to use a connection to a catalog.
    pub(super) async fn lookup(&self) -> Result<OwnedSemaphorePermit> {
        let permit = timeout(WAIT, self.lookups.clone().acquire_owned()).await;
        let timed_out = Error::PoolTimeout {
            retry_after: RETRY_AFTER,
        };
        permit.map_err(|_| timed_out)?.map_err(Error::internal)
    }

    /// A permit to keep a listening connection, if one is free.
    pub(super) fn listener(&self) -> Option<OwnedSemaphorePermit> {
        self.listeners.clone().try_acquire_owned().ok()
    }

    /// If the limit is reached and `database` has no idle connection, closes the connection that
    /// has been idle longest.
    pub(super) fn make_room(
        &self,
        catalogs: &HashMap<DatabaseName, ServicePool>,
        database: &DatabaseName,
    ) {
        let mut open = 0;
        let mut oldest = None;
        for (name, pool) in catalogs {
            let (size, idle) = pool.occupancy();
            open += size;
            if name == database && idle.is_some() {
                return;
            }
            if let Some(idle) = idle
                && oldest.is_none_or(|(longest, _)| longest < idle)
            {
                oldest = Some((idle, pool));
            }
        }
        if open >= self.limits.lookups
            && let Some((idle, pool)) = oldest
        {
            pool.expire(idle);
        }
    }
}
