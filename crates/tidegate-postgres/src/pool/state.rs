//! The bookkeeping of the pool: values in, actions out, no waiting.
//!
//! Whoever holds the lock changes the state and carries the actions out after the lock is free.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use tidegate_sql::{DatabaseName, Login, RoleName, Sharing};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::connector::{Connector, Key};
use super::gate::Gate;
use super::lease::Lease;
use super::settings::Settings;
use super::stats::Counters;
use super::trouble::Trouble;
use super::verdict::Verdict;

/// How long after the last stranger a role is one user's again, when that user comes.
const LAPSE: Duration = Duration::from_mins(1);

/// Where an answer for a waiting request goes.
pub(super) type Reply<K> = oneshot::Sender<Result<Lease<K>, Verdict>>;

/// A connection and what the pool knows of it.
pub(super) struct Entry<C> {
    pub(super) connection: C,
    pub(super) key: Key,
    /// When opening it began, in the pool's count of events.
    pub(super) serial: u64,
    pub(super) opened: Instant,
    pub(super) idle_since: Instant,
    pub(super) session: Option<Sharing>,
}

/// What is to be done once the lock is free.
pub(super) enum Action<K: Connector> {
    Open(Key, u64),
    Close(Box<Entry<K::Connection>>),
    Lend(Reply<K>, Box<Entry<K::Connection>>, bool),
    Refuse(Reply<K>, Verdict),
}

/// What a counted connection is doing.
#[derive(Clone, Copy)]
pub(super) enum Phase {
    Opening,
    Lent,
    Resetting,
    /// Good for nothing, and the server still works for it.
    Leaving,
}

/// A request that waits.
pub(super) struct Waiter<K: Connector> {
    pub(super) number: u64,
    pub(super) since: Instant,
    pub(super) sharing: Sharing,
    pub(super) reply: Reply<K>,
}

/// The connections of a role in a database.
pub(super) struct Role<K: Connector> {
    pub(super) strangers: bool,
    /// When strangers asked for it last.
    pub(super) strangers_at: Option<Instant>,
    /// The least recently used first.
    pub(super) idle: Vec<Box<Entry<K::Connection>>>,
    pub(super) opening: usize,
    pub(super) lent: usize,
    pub(super) resetting: usize,
    pub(super) leaving: usize,
    pub(super) waiters: VecDeque<Waiter<K>>,
    /// Until when no connection is opened for it.
    pub(super) paused_until: Option<Instant>,
    closed_before: u64,
}

impl<K: Connector> Role<K> {
    fn new() -> Self {
        Self {
            strangers: false,
            strangers_at: None,
            idle: Vec::new(),
            opening: 0,
            lent: 0,
            resetting: 0,
            leaving: 0,
            waiters: VecDeque::new(),
            paused_until: None,
            closed_before: 0,
        }
    }

    pub(super) fn held(&self) -> usize {
        self.idle.len() + self.in_use() + self.leaving
    }

    /// Whether strangers share the role no more, as far as one can tell. None of them must wait for
    /// it: what is opened next lacks their pins.
    pub(super) fn has_lapsed(&self, now: Instant) -> bool {
        let waits = |waiter: &Waiter<K>| waiter.sharing.has_strangers();
        self.strangers
            && self
                .strangers_at
                .is_none_or(|at| now.duration_since(at) >= LAPSE)
            && !self.waiters.iter().any(waits)
    }

    /// Connections that come back or fail by themselves.
    pub(super) fn in_use(&self) -> usize {
        self.opening + self.lent + self.resetting
    }

    fn phase(&mut self, phase: Phase) -> &mut usize {
        match phase {
            Phase::Opening => &mut self.opening,
            Phase::Lent => &mut self.lent,
            Phase::Resetting => &mut self.resetting,
            Phase::Leaving => &mut self.leaving,
        }
    }
}

/// The roles of a database.
pub(super) struct Tenant<K: Connector> {
    pub(super) roles: HashMap<Key, Role<K>>,
    pub(super) held: usize,
    pub(super) waiting: usize,
    /// When it began to wait or was served last; the smallest is served next.
    pub(super) turn: u64,
    closed_before: u64,
}

/// All connections and all waiting requests.
pub(super) struct State<K: Connector> {
    pub(super) settings: Settings,
    pub(super) tenants: HashMap<DatabaseName, Tenant<K>>,
    pub(super) held: usize,
    pub(super) idle: usize,
    pub(super) waiting: usize,
    pub(super) gate: Gate,
    pub(super) troubles: HashMap<Key, Trouble>,
    pub(super) counters: Counters,
    events: u64,
}

impl<K: Connector> State<K> {
    pub(super) fn new(settings: Settings, gate: Gate) -> Self {
        Self {
            settings,
            gate,
            tenants: HashMap::new(),
            held: 0,
            idle: 0,
            waiting: 0,
            troubles: HashMap::new(),
            counters: Counters::default(),
            events: 0,
        }
    }

    /// The number of the next event.
    pub(super) fn next_event(&mut self) -> u64 {
        self.events += 1;
        self.events
    }

    /// Takes an idle connection of the login's role: the one used last by the same session, else
    /// the one used last. The flag tells that another session used it.
    pub(super) fn claim(
        &mut self,
        login: &Login,
        now: Instant,
    ) -> Option<(Box<Entry<K::Connection>>, bool)> {
        let tenant = self.tenants.get_mut(&login.database)?;
        let role = tenant.roles.get_mut(&Key::from(login))?;
        // What is open began with other settings than this one's connections do.
        if login.sharing.has_strangers() {
            if !role.strangers {
                return None;
            }
            role.strangers_at = Some(now);
        } else if role.has_lapsed(now) {
            return None;
        }
        let session = Some(login.sharing);
        let last = role.idle.len().checked_sub(1)?;
        let place = role.idle.iter().rposition(|entry| entry.session == session);
        let mut entry = role.idle.remove(place.unwrap_or(last));
        role.lent += 1;
        self.idle -= 1;
        self.counters.reused += 1;
        let switched = switch(&mut entry, login.sharing);
        Some((entry, switched))
    }

    pub(super) fn role_mut(&mut self, key: &Key) -> Option<&mut Role<K>> {
        self.tenants.get_mut(&key.database)?.roles.get_mut(key)
    }

    /// The tenant and role of the key, made when they are not there.
    pub(super) fn place(&mut self, key: &Key) -> &mut Tenant<K> {
        let tenant = self
            .tenants
            .entry(key.database.clone())
            .or_insert_with(|| Tenant {
                roles: HashMap::new(),
                held: 0,
                waiting: 0,
                turn: 0,
                closed_before: 0,
            });
        tenant.roles.entry(key.clone()).or_insert_with(Role::new);
        tenant
    }

    /// Moves a counted connection from one phase to another.
    pub(super) fn shift(&mut self, key: &Key, from: Phase, to: Phase) {
        if let Some(role) = self.role_mut(key) {
            *role.phase(from) -= 1;
            *role.phase(to) += 1;
        }
    }

    /// Counts a connection that will be opened; there must be room.
    pub(super) fn count_opening(&mut self, key: &Key) -> u64 {
        let event = self.next_event();
        self.held += 1;
        let tenant = self.place(key);
        tenant.held += 1;
        tenant.turn = event;
        if let Some(role) = tenant.roles.get_mut(key) {
            role.opening += 1;
        }
        event
    }

    /// Ends the phase of a connection that stays.
    pub(super) fn end(&mut self, key: &Key, phase: Phase) {
        if let Some(role) = self.role_mut(key) {
            *role.phase(phase) -= 1;
        }
    }

    /// Stops counting a connection whose phase has ended.
    pub(super) fn forget(&mut self, key: &Key) {
        self.held -= 1;
        if let Some(tenant) = self.tenants.get_mut(&key.database) {
            tenant.held -= 1;
        }
        self.counters.closed += 1;
        self.tidy(key);
    }

    /// Removes what holds and awaits nothing.
    pub(super) fn tidy(&mut self, key: &Key) {
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

    /// Puts a connection to the idle ones.
    pub(super) fn rest(&mut self, mut entry: Box<Entry<K::Connection>>, now: Instant) {
        entry.idle_since = now;
        self.idle += 1;
        if let Some(role) = self
            .tenants
            .get_mut(&entry.key.database)
            .and_then(|tenant| tenant.roles.get_mut(&entry.key))
        {
            role.idle.push(entry);
        }
    }

    /// Takes the least recently used idle connection, of all or of one database.
    pub(super) fn evict(
        &mut self,
        tenant: Option<&DatabaseName>,
    ) -> Option<Box<Entry<K::Connection>>> {
        let key = self
            .tenants
            .iter()
            .filter(|(name, _)| tenant.is_none_or(|wanted| wanted == *name))
            .flat_map(|(_, tenant)| tenant.roles.values())
            .filter_map(|role| role.idle.first())
            .min_by_key(|entry| entry.idle_since)
            .map(|entry| entry.key.clone())?;
        let entry = self.role_mut(&key)?.idle.remove(0);
        self.idle -= 1;
        self.counters.evicted += 1;
        self.forget(&key);
        Some(entry)
    }

    /// Whether a connection is too old, or its database or role was closed meanwhile.
    pub(super) fn is_retired(&self, entry: &Entry<K::Connection>, now: Instant) -> bool {
        let closed = self.tenants.get(&entry.key.database).is_some_and(|tenant| {
            let role = tenant.roles.get(&entry.key);
            entry.serial < tenant.closed_before
                || role.is_some_and(|role| entry.serial < role.closed_before)
        });
        closed || now.duration_since(entry.opened) >= self.settings.life
    }

    /// Closes the idle connections of a database or of one role in it, and marks the others to
    /// be closed when they come back; says how many those are.
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

    /// Stops counting connections taken from the idle ones, and has them closed.
    pub(super) fn drop_idle(
        &mut self,
        entries: Vec<Box<Entry<K::Connection>>>,
        actions: &mut Vec<Action<K>>,
    ) {
        for entry in entries {
            self.idle -= 1;
            self.forget(&entry.key);
            actions.push(Action::Close(entry));
        }
    }

    /// Closes what has been idle or has lived too long.
    pub(super) fn expire(&mut self, now: Instant, actions: &mut Vec<Action<K>>) {
        let (idle, life) = (self.settings.idle, self.settings.life);
        let mut expired = Vec::new();
        for role in self.tenants.values_mut().flat_map(|t| t.roles.values_mut()) {
            expired.extend(role.idle.extract_if(.., |entry| {
                now.duration_since(entry.idle_since) >= idle
                    || now.duration_since(entry.opened) >= life
            }));
        }
        self.drop_idle(expired, actions);
        self.forget_troubles(now);
    }
}

/// Notes who uses the connection now, and tells whether somebody else did before.
pub(super) fn switch<C>(entry: &mut Entry<C>, sharing: Sharing) -> bool {
    let before = entry.session.replace(sharing);
    before.is_some_and(|before| before != sharing)
}
