//! Checks out idle connections for requests, and takes connections back. This module does no I/O
//! and never waits.

use std::time::Duration;

use tidegate_sql::{Login, RoleUse};
use tokio::time::Instant;

use super::connector::{Connector, PoolKey};
use super::pooled_connection::PoolEntry;
use super::role::{Phase, Role, Waiter};
use super::state::{Action, State};

/// How long a role keeps its fixed settings ([`Role::has_fixed_settings`]) after the last request
/// of an anonymous caller or a member for a connection.
const FIXED_SETTINGS_FOR: Duration = Duration::from_mins(1);

impl<K: Connector> State<K> {
    /// Takes an idle connection of the login's role: preferably one that the same OAuth session
    /// used last, otherwise the most recently used one. Returns the connection, and whether another
    /// OAuth session used it last. Returns `None` if the role has no idle connection with the
    /// settings that the login needs, or if the limit of the database is reached.
    pub(super) fn claim(
        &mut self,
        login: &Login,
        now: Instant,
    ) -> Option<(Box<PoolEntry<K>>, bool)> {
        let tenant = self.tenants.get_mut(&login.database)?;
        if tenant.busy() >= self.settings.per_tenant() {
            return None;
        }
        let role = tenant.roles.get_mut(&PoolKey::from(login))?;
        if login.role_use.needs_fixed_settings() {
            // An anonymous caller or a member must not get a session without fixed settings.
            // `enqueue` closes such sessions of the role.
            if !role.has_fixed_settings {
                return None;
            }
            role.fixed_settings_requested_at = Some(now);
        } else if role.fixed_settings_have_lapsed(now) {
            // Other callers get sessions with the role's own settings once the fixed settings have
            // lapsed. `enqueue` closes the sessions with fixed settings.
            return None;
        }
        let mut entry = role.take_idle(&login.role_use)?;
        role.checked_out += 1;
        self.count_idle_taken(&entry.key);
        self.counters.reused += 1;
        let session_changed = set_session(&mut entry, &login.role_use);
        Some((entry, session_changed))
    }

    /// Handles a connection that has become free: closes it, gives it to a waiting request, or adds
    /// it to the idle connections. `from` is the phase that ends for the connection.
    pub(super) fn put_back(
        &mut self,
        entry: Box<PoolEntry<K>>,
        from: Phase,
        now: Instant,
        actions: &mut Vec<Action<K>>,
    ) {
        self.leave_phase(&entry.key, from);
        if self.is_retired(&entry, now) || self.held > self.settings.capacity {
            return self.discard(entry, now, actions);
        }
        let key = entry.key.clone();
        self.add_idle(entry, now);
        if from == Phase::Opening {
            if let Some(role) = self.role_mut(&key) {
                role.logged_in = Some(now);
            }
            // A new connection serves its own role first, even if requests of other roles wait.
            self.check_out(&key, now, actions);
        }
        self.balance(now, actions);
    }

    /// Adds a connection to the idle connections of its role.
    pub(super) fn add_idle(&mut self, mut entry: Box<PoolEntry<K>>, now: Instant) {
        entry.idle_since = now;
        let Some(tenant) = self.tenants.get_mut(&entry.key.database) else {
            return;
        };
        if let Some(role) = tenant.roles.get_mut(&entry.key) {
            role.idle.push(entry);
            tenant.idle += 1;
            self.idle += 1;
        }
    }
}

impl<K: Connector> Role<K> {
    /// Takes an idle connection: preferably the connection that the same OAuth session used last,
    /// otherwise the most recently used connection.
    pub(super) fn take_idle(&mut self, role_use: &RoleUse) -> Option<Box<PoolEntry<K>>> {
        let last = self.idle.len().checked_sub(1)?;
        let session = Some(role_use);
        let mut idle = self.idle.iter();
        let index = idle.rposition(|entry| entry.session.as_ref() == session);
        Some(self.idle.remove(index.unwrap_or(last)))
    }

    /// Whether the role has fixed settings, but no anonymous caller or member has requested a
    /// connection for [`FIXED_SETTINGS_FOR`]. While one of them waits, the role keeps the fixed
    /// settings, because a new connection would otherwise lack them.
    pub(super) fn fixed_settings_have_lapsed(&self, now: Instant) -> bool {
        let waits = |waiter: &Waiter<K>| waiter.role_use.needs_fixed_settings();
        self.has_fixed_settings
            && self
                .fixed_settings_requested_at
                .is_none_or(|at| now.duration_since(at) >= FIXED_SETTINGS_FOR)
            && !self.waiters.iter().any(waits)
    }
}

/// Records which OAuth session uses the connection. Returns whether another OAuth session used it
/// before.
pub(super) fn set_session<K: Connector>(entry: &mut PoolEntry<K>, role_use: &RoleUse) -> bool {
    if entry.session.as_ref() == Some(role_use) {
        return false;
    }
    entry.session.replace(role_use.clone()).is_some()
}
