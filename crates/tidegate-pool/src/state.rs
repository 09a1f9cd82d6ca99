//! The state of the pool. This module does no I/O and never waits.
//!
//! The pool changes the state under its lock. Each change adds actions to a list. The pool performs
//! these actions after it has released the lock.

use std::collections::HashMap;

use tidegate_sql::{DatabaseName, RoleName};
use tokio::time::Instant;

use super::acquire_error::AcquireError;
use super::circuit_breaker::CircuitBreaker;
use super::connector::{Connector, PoolKey};
use super::counters::Counters;
use super::login_time::LoginTime;
use super::pooled_connection::PoolEntry;
use super::role::{Phase, Reply, Role};
use super::server_limit::ServerLimit;
use super::settings::Settings;

/// An action that is performed after the lock is released.
pub(super) enum Action<K: Connector> {
    /// Open a connection of the role. The number identifies the event at which this was decided.
    /// The third value is a connection to close first; `None` if no connection has to be closed.
    Open(PoolKey, u64, Option<Box<PoolEntry<K>>>),
    Close(Box<PoolEntry<K>>),
    /// Give the connection to a waiting request. The flag says whether another OAuth session of
    /// the user used the connection before.
    CheckOut(Reply<K>, Box<PoolEntry<K>>, bool),
    Refuse(Reply<K>, AcquireError),
}

/// The connections and the waiting requests of a tenant's database: by role, and their totals.
pub(super) struct TenantConnections<K: Connector> {
    pub(super) roles: HashMap<PoolKey, Role<K>>,
    pub(super) held: usize,
    pub(super) idle: usize,
    pub(super) waiting: usize,
    /// The number of the most recent event at which the database was served, or at which a request
    /// began to wait while no other request of the database waited. The database with the smallest
    /// number is served next.
    pub(super) last_served: u64,
    closed_before: u64,
}

impl<K: Connector> TenantConnections<K> {
    /// How many connections are not idle.
    pub(super) fn busy(&self) -> usize {
        self.held - self.idle
    }
}

/// The state of all connections and all waiting requests.
pub(super) struct State<K: Connector> {
    pub(super) settings: Settings,
    pub(super) tenants: HashMap<DatabaseName, TenantConnections<K>>,
    pub(super) held: usize,
    pub(super) idle: usize,
    pub(super) waiting: usize,
    pub(super) circuit_breaker: CircuitBreaker,
    pub(super) server_limit: ServerLimit,
    pub(super) login_time: LoginTime,
    /// The errors of roles that could not log in, each with the time until which it applies.
    pub(super) refusals: HashMap<PoolKey, (Instant, AcquireError)>,
    pub(super) counters: Counters,
    events: u64,
}

impl<K: Connector> State<K> {
    pub(super) fn new(settings: Settings, circuit_breaker: CircuitBreaker) -> Self {
        Self {
            settings,
            circuit_breaker,
            tenants: HashMap::new(),
            held: 0,
            idle: 0,
            waiting: 0,
            server_limit: ServerLimit::default(),
            login_time: LoginTime::default(),
            refusals: HashMap::new(),
            counters: Counters::default(),
            events: 0,
        }
    }

    /// Counts an event, such as the decision to open a connection, and returns its number.
    pub(super) fn next_event(&mut self) -> u64 {
        self.events += 1;
        self.events
    }

    pub(super) fn role(&self, key: &PoolKey) -> Option<&Role<K>> {
        self.tenants.get(&key.database)?.roles.get(key)
    }

    pub(super) fn role_mut(&mut self, key: &PoolKey) -> Option<&mut Role<K>> {
        self.tenants.get_mut(&key.database)?.roles.get_mut(key)
    }

    /// The tenant of the key. Creates the tenant and the key's role if they are missing.
    pub(super) fn tenant_of(&mut self, key: &PoolKey) -> &mut TenantConnections<K> {
        let tenant =
            self.tenants
                .entry(key.database.clone())
                .or_insert_with(|| TenantConnections {
                    roles: HashMap::new(),
                    held: 0,
                    idle: 0,
                    waiting: 0,
                    last_served: 0,
                    closed_before: 0,
                });
        tenant
            .roles
            .entry(key.clone())
            .or_insert_with(|| Role::new(key.clone()));
        tenant
    }

    /// Moves a connection from the count of one phase to the count of another phase.
    pub(super) fn shift(&mut self, key: &PoolKey, from: Phase, to: Phase) {
        if let Some(role) = self.role_mut(key) {
            *role.phase(from) -= 1;
            *role.phase(to) += 1;
        }
    }

    /// Counts a connection that is about to be opened. The calling function has checked that the
    /// limits allow it. Returns the number of the event, which becomes [`PoolEntry::serial`].
    pub(super) fn count_opening(&mut self, key: &PoolKey) -> u64 {
        let event = self.next_event();
        self.held += 1;
        let tenant = self.tenant_of(key);
        tenant.held += 1;
        tenant.last_served = event;
        if let Some(role) = tenant.roles.get_mut(key) {
            role.opening += 1;
        }
        event
    }

    /// Stops counting a connection in its phase. The connection is still counted as held.
    pub(super) fn leave_phase(&mut self, key: &PoolKey, phase: Phase) {
        if let Some(role) = self.role_mut(key) {
            *role.phase(phase) -= 1;
        }
    }

    /// Stops counting a connection that is closed.
    pub(super) fn uncount(&mut self, key: &PoolKey) {
        self.held -= 1;
        if let Some(tenant) = self.tenants.get_mut(&key.database) {
            tenant.held -= 1;
        }
        self.counters.closed += 1;
        self.remove_if_empty(key);
    }

    /// Removes a role that has neither connections nor waiting requests. Also removes its database
    /// if no other role of the database is left.
    pub(super) fn remove_if_empty(&mut self, key: &PoolKey) {
        let Some(tenant) = self.tenants.get_mut(&key.database) else {
            return;
        };
        let empty = |role: &Role<K>| role.held() == 0 && role.waiters.is_empty();
        if tenant.roles.get(key).is_some_and(empty) {
            tenant.roles.remove(key);
        }
        if tenant.roles.is_empty() {
            self.tenants.remove(&key.database);
        }
    }

    /// Updates the counts after an idle connection was taken from its role.
    pub(super) fn count_idle_taken(&mut self, key: &PoolKey) {
        self.idle -= 1;
        if let Some(tenant) = self.tenants.get_mut(&key.database) {
            tenant.idle -= 1;
        }
    }

    /// Whether a connection must be closed, because it is too old, or because [`State::close`] was
    /// called for its database or role after the pool decided to open it.
    pub(super) fn is_retired(&self, entry: &PoolEntry<K>, now: Instant) -> bool {
        let closed = self.tenants.get(&entry.key.database).is_some_and(|tenant| {
            let role = tenant.roles.get(&entry.key);
            entry.serial < tenant.closed_before
                || role.is_some_and(|role| entry.serial < role.closed_before)
        });
        closed || now.duration_since(entry.opened) >= self.settings.max_lifetime
    }

    /// Closes the idle connections of a database or of one role in it, and marks the other
    /// connections to be closed when they are returned. Returns the number of connections that are
    /// marked.
    pub(super) fn close(
        &mut self,
        database: &DatabaseName,
        role: Option<&RoleName>,
        actions: &mut Vec<Action<K>>,
    ) -> usize {
        let event = self.next_event();
        let Some(tenant) = self.tenants.get_mut(database) else {
            return 0;
        };
        if role.is_none() {
            tenant.closed_before = event;
        }
        let mut closed = Vec::new();
        let mut outstanding = 0;
        for (key, slot) in &mut tenant.roles {
            if role.is_none_or(|wanted| *wanted == key.role) {
                slot.closed_before = event;
                outstanding += slot.in_use();
                closed.append(&mut slot.idle);
            }
        }
        self.drop_idle(closed, actions);
        outstanding
    }

    /// Closes connections that were idle, and stops counting them.
    fn drop_idle(&mut self, entries: Vec<Box<PoolEntry<K>>>, actions: &mut Vec<Action<K>>) {
        for entry in entries {
            self.count_idle_taken(&entry.key);
            self.uncount(&entry.key);
            actions.push(Action::Close(entry));
        }
    }

    /// Changes the limit on connections, and closes idle connections above it. Returns how many
    /// connections above the limit are left.
    pub(super) fn set_capacity(
        &mut self,
        capacity: usize,
        now: Instant,
        actions: &mut Vec<Action<K>>,
    ) -> usize {
        self.settings.capacity = capacity;
        while self.held > capacity
            && let Some(key) = self.victim_of_shrinking()
            && let Some(entry) = self.evict(&key)
        {
            actions.push(Action::Close(entry));
        }
        self.balance(now, actions);
        self.held.saturating_sub(capacity)
    }

    /// Closes idle connections that have been idle for [`Settings::idle`] or are older than
    /// [`Settings::max_lifetime`]. Also removes expired refusals, and a server limit that
    /// PostgreSQL has not confirmed for a minute.
    pub(super) fn expire(&mut self, now: Instant, actions: &mut Vec<Action<K>>) {
        let (idle, max_lifetime) = (self.settings.idle, self.settings.max_lifetime);
        let mut expired = Vec::new();
        for role in self.tenants.values_mut().flat_map(|t| t.roles.values_mut()) {
            expired.extend(role.idle.extract_if(.., |entry| {
                now.duration_since(entry.idle_since) >= idle
                    || now.duration_since(entry.opened) >= max_lifetime
            }));
        }
        self.drop_idle(expired, actions);
        self.refusals.retain(|_, (until, _)| now < *until);
        self.server_limit.expire(now);
    }
}
