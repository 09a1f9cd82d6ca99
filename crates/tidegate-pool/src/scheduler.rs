//! Chooses the waiting request that gets the next connection, and decides when to open another
//! connection.
//!
//! The README explains the rules. [`State::enqueue`] applies them when a request arrives,
//! [`State::put_back`] when a connection becomes free, and [`State::balance`] whenever a request
//! may be served or a login may be due.

use tidegate_sql::{Login, RoleUse};
use tokio::time::Instant;

use super::acquire_error::AcquireError;
use super::checkout::set_session;
use super::connector::{Connector, PoolKey};
use super::pooled_connection::PoolEntry;
use super::role::{Reply, Role, Waiter};
use super::server_limit;
use super::state::{Action, State, TenantConnections};

/// The rank of a waiting request: first [`TenantConnections::last_served`] of its database, then
/// the number of the request. The request with the lowest rank is served first.
type Rank = (u64, u64);

/// The next action for a role with waiting requests.
enum NextAction {
    /// Give an idle connection of the role to a waiting request.
    CheckOut(PoolKey),
    Open(PoolKey),
    /// Open a connection for the first role, and close an idle connection of the second role.
    Replace(PoolKey, PoolKey),
}

impl<K: Connector> State<K> {
    /// Queues a request. Returns its number, with which [`Self::dequeue`] removes the request.
    /// Fails if the queue is full, or the role's login was refused a moment ago.
    pub(super) fn enqueue(
        &mut self,
        login: &Login,
        reply: Reply<K>,
        now: Instant,
        actions: &mut Vec<Action<K>>,
    ) -> Result<u64, AcquireError> {
        let key = PoolKey::from(login);
        self.refuse_early(&key, now)?;
        self.close_if_settings_change(&key, &login.role_use, now, actions);
        let number = self.next_event();
        let tenant = self.tenant_of(&key);
        if tenant.waiting == 0 {
            tenant.last_served = number;
        }
        tenant.waiting += 1;
        if let Some(role) = tenant.roles.get_mut(&key) {
            // `has_fixed_settings` applies to all connections that are opened for the role, because
            // each of them may be given to any request.
            if login.role_use.needs_fixed_settings() {
                role.has_fixed_settings = true;
                role.fixed_settings_requested_at = Some(now);
            }
            role.waiters.push_back(Waiter {
                number,
                since: now,
                role_use: login.role_use.clone(),
                reply,
            });
        }
        self.waiting += 1;
        self.balance(now, actions);
        Ok(number)
    }

    /// Closes the connections of a role if their sessions have the wrong settings for `role_use`.
    /// Anonymous callers and members need sessions with fixed settings
    /// ([`Role::has_fixed_settings`]). Other callers need sessions with the role's own settings,
    /// but sessions with fixed settings stay open for them until these settings have lapsed
    /// ([`Role::fixed_settings_have_lapsed`]).
    fn close_if_settings_change(
        &mut self,
        key: &PoolKey,
        role_use: &RoleUse,
        now: Instant,
        actions: &mut Vec<Action<K>>,
    ) {
        let Some(role) = self.role_mut(key) else {
            return;
        };
        let needed = role_use.needs_fixed_settings();
        let changes = if needed {
            !role.has_fixed_settings
        } else {
            role.fixed_settings_have_lapsed(now)
        };
        if changes {
            role.has_fixed_settings = needed;
            self.close(&key.database, Some(&key.role), actions);
        }
    }

    fn refuse_early(&mut self, key: &PoolKey, now: Instant) -> Result<(), AcquireError> {
        if let Some(error) = self.refusal(key, now) {
            return Err(error.clone());
        }
        let tenant = self.tenants.get(&key.database).map_or(0, |t| t.waiting);
        if self.waiting >= self.settings.queue || tenant >= self.settings.tenant_queue() {
            self.counters.rejected += 1;
            return Err(AcquireError::Exhausted);
        }
        Ok(())
    }

    /// Removes a request from the queue. Returns `false` if the request is no longer in the queue.
    pub(super) fn dequeue(&mut self, key: &PoolKey, number: u64) -> bool {
        let Some(role) = self.role_mut(key) else {
            return false;
        };
        let Some(place) = role.waiters.iter().position(|w| w.number == number) else {
            return false;
        };
        role.waiters.remove(place);
        self.uncount_waiting(key);
        self.remove_if_empty(key);
        true
    }

    fn uncount_waiting(&mut self, key: &PoolKey) {
        self.waiting -= 1;
        if let Some(tenant) = self.tenants.get_mut(&key.database) {
            tenant.waiting -= 1;
        }
    }

    /// Closes a connection whose phase has ended, so that another connection may be opened.
    pub(super) fn discard(
        &mut self,
        entry: Box<PoolEntry<K>>,
        now: Instant,
        actions: &mut Vec<Action<K>>,
    ) {
        self.uncount(&entry.key);
        actions.push(Action::Close(entry));
        self.balance(now, actions);
    }

    /// Gives an idle connection of a role to the request that has waited longest for the role. Does
    /// nothing if there is no idle connection or no waiting request.
    pub(super) fn check_out(&mut self, key: &PoolKey, now: Instant, actions: &mut Vec<Action<K>>) {
        let event = self.next_event();
        let Some(role) = self.role_mut(key) else {
            return;
        };
        let Some(role_use) = role.waiters.front().map(|waiter| waiter.role_use.clone()) else {
            return;
        };
        let Some(mut entry) = role.take_idle(&role_use) else {
            return;
        };
        let Some(waiter) = role.waiters.pop_front() else {
            return;
        };
        role.checked_out += 1;
        self.count_idle_taken(key);
        self.uncount_waiting(key);
        self.counters.waited(now.duration_since(waiter.since));
        if let Some(tenant) = self.tenants.get_mut(&key.database) {
            tenant.last_served = event;
        }
        let session_changed = set_session(&mut entry, &role_use);
        actions.push(Action::CheckOut(waiter.reply, entry, session_changed));
    }

    /// Serves waiting requests and opens connections, as far as limits and delays allow. Fails
    /// requests that cannot be served.
    pub(super) fn balance(&mut self, now: Instant, actions: &mut Vec<Action<K>>) {
        while self.waiting > 0
            && let Some(step) = self.next_action(now)
        {
            match step {
                NextAction::CheckOut(key) => self.check_out(&key, now, actions),
                NextAction::Open(key) => {
                    let serial = self.count_opening(&key);
                    actions.push(Action::Open(key, serial, None));
                }
                NextAction::Replace(key, victim) => {
                    let evicted = self.evict(&victim);
                    let serial = self.count_opening(&key);
                    actions.push(Action::Open(key, serial, evicted));
                }
            }
        }
        self.refuse_unservable(now, actions);
    }

    /// The action for the waiting request with the lowest rank among those that can be served now;
    /// `None` if there is none.
    fn next_action(&self, now: Instant) -> Option<NextAction> {
        let share = self.settings.per_tenant();
        let mut queue: Vec<(Rank, &Role<K>)> = self
            .tenants
            .values()
            .filter(|tenant| tenant.waiting > 0 && tenant.busy() < share)
            .flat_map(|tenant| self.roles_to_serve(tenant, now))
            .collect();
        queue.sort_unstable_by_key(|(rank, _)| *rank);
        queue
            .iter()
            .find_map(|(_, role)| self.action_for(role, now))
    }

    /// The roles of a database whose waiting requests could get an idle connection or a new login.
    fn roles_to_serve<'s>(
        &'s self,
        tenant: &'s TenantConnections<K>,
        now: Instant,
    ) -> impl Iterator<Item = (Rank, &'s Role<K>)> {
        let price = self.login_time.get();
        tenant.roles.values().filter_map(move |role| {
            let first = role.waiters.front()?;
            let limit = self.settings.for_role(role.is_shared());
            let servable = !role.idle.is_empty() || role.needs_login(price, limit, now);
            servable.then_some(((tenant.last_served, first.number), role))
        })
    }

    fn action_for(&self, role: &Role<K>, now: Instant) -> Option<NextAction> {
        let key = || role.key.clone();
        if !role.idle.is_empty() {
            return Some(NextAction::CheckOut(key()));
        }
        if self.circuit_breaker.is_open() {
            return None;
        }
        if self.held < self.capacity(now) {
            return Some(NextAction::Open(key()));
        }
        // The price is doubled, because the role that loses a connection may have to log in again.
        let price = self.login_time.get() * 2;
        let limit = self.settings.for_role(role.is_shared());
        if !role.needs_login(price, limit, now) {
            return None;
        }
        let victim = self.victim(&role.key, now)?;
        Some(NextAction::Replace(key(), victim))
    }

    /// The current limit on the pool's connections.
    pub(super) fn capacity(&self, now: Instant) -> usize {
        self.server_limit.bound(self.settings.capacity, now)
    }

    /// Whether a waiting request of another role could be served if a connection of `key` were
    /// returned.
    pub(super) fn is_wanted_by_another_role(&self, key: &PoolKey, now: Instant) -> bool {
        let share = self.settings.per_tenant();
        self.tenants
            .iter()
            .filter(|(name, tenant)| **name == key.database || tenant.busy() < share)
            .filter(|(_, tenant)| tenant.waiting > 0)
            .flat_map(|(_, tenant)| self.roles_to_serve(tenant, now))
            .any(|(_, role)| role.key != *key)
    }

    /// Fails the waiting requests of roles without connections if no connection can be opened,
    /// because PostgreSQL is down or refuses every connection of this pool.
    fn refuse_unservable(&mut self, now: Instant, actions: &mut Vec<Action<K>>) {
        if self.waiting == 0 {
            return;
        }
        let full = || {
            let cause = self.server_limit.cause()?;
            let none = self.capacity(now) == 0;
            none.then(|| AcquireError::Unavailable {
                retry_after: server_limit::RETRY,
                cause: cause.clone(),
            })
        };
        let Some(error) = self.circuit_breaker.error(now).or_else(full) else {
            return;
        };
        let unservable: Vec<PoolKey> = self
            .tenants
            .values()
            .flat_map(|tenant| tenant.roles.values())
            .filter(|role| role.in_use() == 0 && role.idle.is_empty())
            .filter(|role| !role.waiters.is_empty())
            .map(|role| role.key.clone())
            .collect();
        for key in unservable {
            self.refuse(&key, &error, actions);
        }
    }

    /// Fails all waiting requests of a role.
    pub(super) fn refuse(
        &mut self,
        key: &PoolKey,
        error: &AcquireError,
        actions: &mut Vec<Action<K>>,
    ) {
        let Some(role) = self.role_mut(key) else {
            return;
        };
        let waiters = std::mem::take(&mut role.waiters);
        for waiter in waiters {
            self.uncount_waiting(key);
            actions.push(Action::Refuse(waiter.reply, error.clone()));
        }
        self.remove_if_empty(key);
    }
}
