//! Chooses the idle connection that is closed when another role needs its slot.

use tidegate_sql::DatabaseName;
use tokio::time::Instant;

use super::connector::{Connector, PoolKey};
use super::pooled_connection::PoolEntry;
use super::role::Role;
use super::state::{State, TenantConnections};

impl<K: Connector> State<K> {
    /// The role whose least recently used idle connection is closed so that a connection of `key`
    /// can be opened; `None` if no connection may be closed.
    ///
    /// If the database of `key` already holds its share of the connections, the connection is taken
    /// from a role of the same database. Otherwise it may be taken from any role. Roles with
    /// several connections come before roles with only one. Within both groups, roles in databases
    /// that hold more than their share come first. Among equal roles, the connection that has been
    /// idle longest is closed.
    ///
    /// A request gets the most recently used idle connection of its role, unless its OAuth session
    /// used another one last. Therefore, a connection that has been idle for a long time was not
    /// needed for parallel requests of its role during this time.
    pub(super) fn victim(&self, key: &PoolKey, now: Instant) -> Option<PoolKey> {
        if self.idle == 0 {
            return None;
        }
        let share = self.settings.per_tenant();
        let held = |tenant: &TenantConnections<K>| tenant.held;
        let own = self.tenants.get(&key.database).map_or(0, held);
        if own >= share {
            return self.victim_in(&key.database, now);
        }
        self.victim_among(None, now)
    }

    /// The role whose least recently used idle connection is closed when the capacity becomes less
    /// than the number of connections; `None` if no connection is idle. Roles of all databases are
    /// compared as in [`State::victim`], but without regard to `min_service`.
    pub(super) fn victim_of_shrinking(&self) -> Option<PoolKey> {
        let share = self.settings.per_tenant();
        self.idle_candidates(None)
            .min_by_key(|(tenant, role, entry)| {
                (role.has_only_one(), tenant.held <= share, entry.idle_since)
            })
            .map(|(_, role, _)| role.key.clone())
    }

    /// Does the same as [`State::victim`], among the roles of one database.
    pub(super) fn victim_in(&self, database: &DatabaseName, now: Instant) -> Option<PoolKey> {
        self.victim_among(Some(database), now)
    }

    fn victim_among(&self, only: Option<&DatabaseName>, now: Instant) -> Option<PoolKey> {
        let share = self.settings.per_tenant();
        self.idle_candidates(only)
            .filter(|(_, role, entry)| {
                // A new connection first serves the waiting requests of its own role, for at least
                // `min_service`.
                role.waiters.is_empty() || now - entry.opened >= self.settings.min_service
            })
            .min_by_key(|(tenant, role, entry)| {
                let within_share = tenant.held <= share;
                (role.has_only_one(), within_share, entry.idle_since)
            })
            .map(|(_, role, _)| role.key.clone())
    }

    /// The least recently used idle connection of each role, in the database `only` or in all
    /// databases.
    fn idle_candidates<'s>(
        &'s self,
        only: Option<&'s DatabaseName>,
    ) -> impl Iterator<Item = (&'s TenantConnections<K>, &'s Role<K>, &'s PoolEntry<K>)> {
        self.tenants
            .iter()
            .filter(move |(name, _)| only.is_none_or(|wanted| wanted == *name))
            .flat_map(|(_, tenant)| tenant.roles.values().map(move |role| (tenant, role)))
            .filter_map(|(tenant, role)| Some((tenant, role, &**role.idle.first()?)))
    }

    /// Removes the least recently used idle connection of a role from the pool, and returns it.
    pub(super) fn evict(&mut self, key: &PoolKey) -> Option<Box<PoolEntry<K>>> {
        let role = self.role_mut(key)?;
        if role.idle.is_empty() {
            return None;
        }
        let entry = role.idle.remove(0);
        self.count_idle_taken(key);
        self.counters.evicted += 1;
        self.uncount(key);
        Some(entry)
    }
}
