//! Which idle connection is closed where another one needs its place.

use tidegate_sql::DatabaseName;
use tokio::time::Instant;

use super::connector::{Connector, Key};
use super::entry::Entry;
use super::role::Role;
use super::state::{State, Tenant};

impl<K: Connector> State<K> {
    /// The role that gives up its least recently used idle connection for a login of `key`, if
    /// there is one.
    ///
    /// A database that holds its share already takes from its own roles. Otherwise spare
    /// connections go first, which are those of a role that has others; then the last connections
    /// of databases that hold more than their share; then the last connections of any. Among
    /// equals it is the one that was idle for longest. Since the connection used last is lent
    /// first, that is the one which the parallelism of its role has not needed for longest.
    pub(super) fn victim(&self, key: &Key, now: Instant) -> Option<Key> {
        if self.idle == 0 {
            return None;
        }
        let share = self.settings.per_tenant();
        let held = |tenant: &Tenant<K>| tenant.held;
        let own = self.tenants.get(&key.database).map_or(0, held);
        if own >= share {
            return self.victim_in(&key.database, now);
        }
        self.victim_among(None, now)
    }

    /// As [`State::victim`], among the roles of one database.
    pub(super) fn victim_in(&self, database: &DatabaseName, now: Instant) -> Option<Key> {
        self.victim_among(Some(database), now)
    }

    fn victim_among(&self, only: Option<&DatabaseName>, now: Instant) -> Option<Key> {
        let share = self.settings.per_tenant();
        self.idle_candidates(only)
            .filter(|(_, role, entry)| {
                // A new connection serves the waiting requests of its own role for a while.
                role.waiters.is_empty() || now - entry.opened >= self.settings.turn
            })
            .min_by_key(|(tenant, role, entry)| {
                let modest = tenant.held <= share;
                (role.has_only_one(), modest, entry.idle_since)
            })
            .map(|(_, role, _)| role.key.clone())
    }

    /// The least recently used idle connection of each role, of all databases or of one.
    fn idle_candidates<'s>(
        &'s self,
        only: Option<&'s DatabaseName>,
    ) -> impl Iterator<Item = (&'s Tenant<K>, &'s Role<K>, &'s Entry<K::Connection>)> {
        self.tenants
            .iter()
            .filter(move |(name, _)| only.is_none_or(|wanted| wanted == *name))
            .flat_map(|(_, tenant)| tenant.roles.values().map(move |role| (tenant, role)))
            .filter_map(|(tenant, role)| Some((tenant, role, &**role.idle.first()?)))
    }

    /// Takes the least recently used idle connection of a role out of the pool.
    pub(super) fn evict(&mut self, key: &Key) -> Option<Box<Entry<K::Connection>>> {
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
