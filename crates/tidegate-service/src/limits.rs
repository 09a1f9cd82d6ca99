//! Limits of the service connections.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tidegate_sql::{DatabaseName, Error, Result};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::service_pool::{RETRY_AFTER, ServicePool, WAIT};

/// The number of connections of a node that do not depend on its limits. They terminate backends,
/// listen for notifications of nodes, guard the lock table, register the node, and read the state
/// of replication slots.
const FIXED: usize = 5;

/// The limits on the service connections of a node. Without limits, a hundred databases that are in
/// use at the same time would take all connections of PostgreSQL and leave none for users.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The limit on connections to the control database.
    pub control: usize,
    /// The limit on connections that read catalogs, over all databases. Idle connections are closed
    /// to make room for another database.
    pub lookups: usize,
    /// The limit on connections that listen for notifications about changed definitions.
    pub listeners: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            control: 6,
            lookups: Semaphore::MAX_PERMITS,
            listeners: Semaphore::MAX_PERMITS,
        }
    }
}

impl Limits {
    /// The limits of a node that may open `connections` connections in total.
    pub fn for_node(connections: usize) -> Self {
        Self {
            control: (connections / 6).clamp(2, 6),
            lookups: (connections / 15).max(2),
            listeners: (connections / 12).max(1),
        }
    }

    /// The limits of a node that regularly reads the catalogs of `databases` databases. Each of
    /// these databases may keep a connection, and one more connection is for other databases. With
    /// fewer connections, every read would need a login: if the databases are read in turn, each
    /// read closes the connection that is needed next. The limit on connections that read catalogs
    /// grows by at most a third of the connections that are left for users.
    #[must_use]
    pub fn with_polled_databases(self, connections: usize, databases: usize) -> Self {
        let most = self.lookups + self.left_for_users(connections) / 3;
        Self {
            lookups: databases.saturating_add(1).clamp(self.lookups, most),
            ..self
        }
    }

    /// The number of the node's connections that are left for the pool of users, at least one.
    pub fn left_for_users(&self, connections: usize) -> usize {
        connections.saturating_sub(self.service()).max(1)
    }

    /// The least number of connections that a node with these limits needs: all service
    /// connections, and one for users.
    pub fn least(&self) -> usize {
        self.service() + 1
    }

    fn service(&self) -> usize {
        FIXED + tidegate_wire::SESSIONS + self.control + self.lookups + self.listeners
    }
}

/// The number of a server's connections that all nodes together may open. The other connections are
/// left for other clients, for commands, and for nodes that start. `reserved` is the sum of
/// `superuser_reserved_connections` and, from PostgreSQL 16, `reserved_connections`.
pub fn shared_connections(max_connections: usize, reserved: usize) -> usize {
    let free = max_connections.saturating_sub(reserved);
    free - (free / 10).max((free / 4).min(10))
}

/// A semaphore whose number of permits can be changed.
struct ResizableSemaphore {
    free: Arc<Semaphore>,
    size: Mutex<usize>,
}

impl ResizableSemaphore {
    fn new(size: usize) -> Self {
        Self {
            free: Arc::new(Semaphore::new(size)),
            size: Mutex::new(size),
        }
    }

    async fn wait(&self) -> Result<OwnedSemaphorePermit> {
        let permit = timeout(WAIT, self.free.clone().acquire_owned()).await;
        let timed_out = Error::PoolTimeout {
            retry_after: RETRY_AFTER,
        };
        permit.map_err(|_| timed_out)?.map_err(Error::internal)
    }

    /// Changes the number of permits. Returns how many permits above the new number are in use. A
    /// later call can remove these permits when they are free.
    fn resize(&self, wanted: usize) -> usize {
        let mut size = self.size.lock();
        if wanted > *size {
            self.free.add_permits(wanted - *size);
            *size = wanted;
        } else {
            *size -= self.free.forget_permits(*size - wanted);
        }
        *size - wanted
    }
}

/// The permits that enforce the limits.
pub(super) struct Permits {
    limits: Mutex<Limits>,
    control: ResizableSemaphore,
    lookups: ResizableSemaphore,
    listeners: ResizableSemaphore,
    /// Each call of `notify_one` ends one listener above the limit.
    surplus: Notify,
}

impl Permits {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            limits: Mutex::new(limits),
            control: ResizableSemaphore::new(limits.control),
            lookups: ResizableSemaphore::new(limits.lookups),
            listeners: ResizableSemaphore::new(limits.listeners),
            surplus: Notify::new(),
        }
    }

    /// Changes the limits. Returns how many permits above the new limits are in use.
    pub(super) fn set(&self, limits: Limits) -> usize {
        *self.limits.lock() = limits;
        let listeners = self.listeners.resize(limits.listeners);
        for _ in 0..listeners {
            self.surplus.notify_one();
        }
        let control = self.control.resize(limits.control);
        control + self.lookups.resize(limits.lookups) + listeners
    }

    /// Waits for a permit to use a connection to the control database.
    pub(super) async fn control(&self) -> Result<OwnedSemaphorePermit> {
        self.control.wait().await
    }

    /// Waits for a permit to use a connection to a catalog.
    pub(super) async fn lookup(&self) -> Result<OwnedSemaphorePermit> {
        self.lookups.wait().await
    }

    /// A permit to keep a listening connection; `None` if none is free.
    pub(super) fn listener(&self) -> Option<OwnedSemaphorePermit> {
        self.listeners.free.clone().try_acquire_owned().ok()
    }

    /// How many listening connections hold a permit.
    pub(super) fn listeners_in_use(&self) -> usize {
        *self.listeners.size.lock() - self.listeners.free.available_permits()
    }

    /// Waits until a listener has to end because there are more listeners than the limit.
    pub(super) async fn surplus(&self) {
        self.surplus.notified().await;
    }

    /// While there are more connections to catalogs than the limit, closes the connections that
    /// have been idle longest. Connections in use stay open. Returns how many connections above the
    /// limit are left.
    pub(super) fn trim(&self, catalogs: &HashMap<DatabaseName, ServicePool>) -> usize {
        let limit = self.limits.lock().lookups;
        loop {
            let occupied = catalogs.values().map(|pool| (pool, pool.occupancy()));
            let occupied: Vec<_> = occupied.collect();
            let open: usize = occupied.iter().map(|(_, (open, _))| open).sum();
            let idle = occupied
                .iter()
                .filter_map(|(pool, (_, idle))| (*idle).map(|idle| (idle, pool)));
            match idle.max_by_key(|(idle, _)| *idle) {
                Some((idle, pool)) if open > limit => drop(pool.expire(idle)),
                _ => return open.saturating_sub(limit),
            }
        }
    }

    /// Makes room for a connection to `database`. If the limit is reached and `database` has no
    /// idle connection, closes the connection that has been idle longest among the idle catalog
    /// connections of all databases.
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
        if open >= self.limits.lock().lookups
            && let Some((idle, pool)) = oldest
        {
            pool.expire(idle);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenth_of_the_connections_is_left_to_others_and_at_least_ten() {
        let shared = [(100, 3), (300, 3), (20, 3), (3, 3)];
        let shared = shared.map(|(max, reserved)| shared_connections(max, reserved));
        assert_eq!(shared, [87, 268, 13, 0]);
    }

    #[test]
    fn a_node_keeps_within_its_share_if_it_has_the_least() {
        let least = Limits::for_node(0).least();
        assert_eq!(least, 15);
        for share in least..500 {
            for databases in [0, 1, 3, 10, usize::MAX] {
                let limits = Limits::for_node(share).with_polled_databases(share, databases);
                let users = limits.left_for_users(share);
                assert!(
                    limits.service() + users <= share,
                    "{share}: {limits:?}, {users}"
                );
            }
        }
    }

    #[test]
    fn polled_databases_have_a_connection_each_if_a_third_of_those_for_users_suffices() {
        let lookups = |share, databases| {
            Limits::for_node(share)
                .with_polled_databases(share, databases)
                .lookups
        };
        let of_a_small_share = [0, 1, 2, 3, 4, 9].map(|databases| lookups(21, databases));
        assert_eq!(of_a_small_share, [2, 2, 3, 4, 4, 4]);
        assert_eq!(lookups(15, 3), 2, "a node with the least share");
        assert_eq!(lookups(87, 3), 5, "fewer than the node has anyway");
        assert_eq!(lookups(87, 20), 21);
    }

    #[test]
    fn permits_that_are_in_use_are_taken_back_later() {
        let semaphore = ResizableSemaphore::new(3);
        let held: Vec<_> = (0..2)
            .map(|_| semaphore.free.clone().try_acquire_owned().unwrap())
            .collect();
        assert_eq!(semaphore.resize(1), 1);
        assert!(semaphore.free.try_acquire().is_err());
        drop(held);
        assert_eq!(semaphore.resize(1), 0);
        assert_eq!(semaphore.free.available_permits(), 1);
        assert_eq!(semaphore.resize(4), 0);
        assert_eq!(semaphore.free.available_permits(), 4);
    }
}
