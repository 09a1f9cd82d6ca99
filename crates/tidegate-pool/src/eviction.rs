//! Chooses the idle connection to close when another role needs its slot.

use tidegate_sql::DatabaseName;
use tokio::time::Instant;

use super::connector::{Connector, PoolKey};
use super::entry::PoolEntry;
use super::role::Role;
use super::state::{State, TenantConnections};

impl<K: Connector> State<K> {
    /// The role whose least recently used idle connection is closed for a login of `key`, if there
    /// is one.
    ///
    /// A database that holds its share already takes from its own roles. Otherwise the order is:
    /// surplus connections (of roles that have others), the last connections of databases above
    /// their share, the last connections of any role. Among equals, the connection that was idle
    /// longest is closed. The connection used last is checked out first, so that is the one that
    /// the role's parallelism has not needed for longest.
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

    /// As [`State::victim`], among the roles of one database.
    pub(super) fn victim_in(&self, database: &DatabaseName, now: Instant) -> Option<PoolKey> {
        self.victim_among(Some(database), now)
    }

    fn victim_among(&self, only: Option<&DatabaseName>, now: Instant) -> Option<PoolKey> {
        let share = self.settings.per_tenant();
        self.idle_candidates(only)
            .filter(|(_, role, entry)| {
                // A new connection first serves the waiting requests of its own role for a while.
                role.waiters.is_empty() || now - entry.opened >= self.settings.turn
            })
            .min_by_key(|(tenant, role, entry)| {
                let modest = tenant.held <= share;
                (role.has_only_one(), modest, entry.idle_since)
            })
            .map(|(_, role, _)| role.key.clone())
    }

    /// The least recently used idle connection of each role, in all databases or in one.
    fn idle_candidates<'s>(
        &'s self,
        only: Option<&'s DatabaseName>,
    ) -> impl Iterator<
        Item = (
            &'s TenantConnections<K>,
            &'s Role<K>,
            &'s PoolEntry<K::Connection>,
        ),
    > {
        self.tenants
            .iter()
            .filter(move |(name, _)| only.is_none_or(|wanted| wanted == *name))
            .flat_map(|(_, tenant)| tenant.roles.values().map(move |role| (tenant, role)))
            .filter_map(|(tenant, role)| Some((tenant, role, &**role.idle.first()?)))
    }

    /// Takes the least recently used idle connection of a role out of the pool.
    pub(super) fn evict(&mut self, key: &PoolKey) -> Option<Box<PoolEntry<K::Connection>>> {
        let role = self.role_mut(key)?;
        if role.idle.is_empty() {
            return None;
        }
        let entry = role.idle.remove(0);
        self.count_idle_taken(key);
        self.counters.evicted += 1;
        self.forget(key);
        Some(entry)
    }
}
