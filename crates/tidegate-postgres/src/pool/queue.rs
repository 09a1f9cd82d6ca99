//! Who gets the next connection.
//!
//! Databases take turns; within a database the request that came first is served first, unless
//! its role has all the connections that it may have. Every decision is taken in one place each:
//! [`State::enter`] when a request comes, [`State::settle`] when a connection becomes free,
//! [`State::balance`] when there may be room for another one.

use tidegate_sql::{Login, Sharing};
use tokio::time::Instant;

use super::connector::{Connector, Key};
use super::state::{Action, Entry, Phase, Reply, Role, State, Tenant, Waiter, switch};
use super::verdict::Verdict;

/// The place of a waiting request: the turn of its database, then its own number.
type Rank = (u64, u64);

impl<K: Connector> State<K> {
    /// Queues a request; its number is needed to leave again.
    pub(super) fn enter(
        &mut self,
        login: &Login,
        reply: Reply<K>,
        now: Instant,
        actions: &mut Vec<Action<K>>,
    ) -> Result<u64, Verdict> {
        let key = Key::from(login);
        self.refuse_early(&key, now)?;
        self.begin_anew(&key, login.sharing, now, actions);
        let number = self.next_event();
        let tenant = self.place(&key);
        if tenant.waiting == 0 {
            tenant.turn = number;
        }
        tenant.waiting += 1;
        if let Some(role) = tenant.roles.get_mut(&key) {
            // For as long as anything is held for it: what is opened meanwhile may go to either.
            if login.sharing.has_strangers() {
                role.strangers = true;
                role.strangers_at = Some(now);
            }
            role.waiters.push_back(Waiter {
                number,
                since: now,
                sharing: login.sharing,
                reply,
            });
        }
        self.waiting += 1;
        self.balance(now, actions);
        Ok(number)
    }

    /// Closes what is open where strangers come to a role that was one user's, without their pins,
    /// or that user to a role to which strangers come no more.
    fn begin_anew(
        &mut self,
        key: &Key,
        sharing: Sharing,
        now: Instant,
        actions: &mut Vec<Action<K>>,
    ) {
        let Some(role) = self.role_mut(key) else {
            return;
        };
        let strangers = sharing.has_strangers();
        let anew = if strangers {
            !role.strangers
        } else {
            role.has_lapsed(now)
        };
        if anew {
            role.strangers = strangers;
            self.close(&key.database, Some(&key.role), actions);
        }
    }

    fn refuse_early(&mut self, key: &Key, now: Instant) -> Result<(), Verdict> {
        if let Some(verdict) = self.refusal(key, now) {
            return Err(verdict.clone());
        }
        let tenant = self.tenants.get(&key.database).map_or(0, |t| t.waiting);
        if self.waiting >= self.settings.queue || tenant >= self.settings.tenant_queue() {
            self.counters.rejected += 1;
            return Err(Verdict::Exhausted);
        }
        Ok(())
    }

    /// Takes a request out of the queue; `false` when it was answered already.
    pub(super) fn leave(&mut self, key: &Key, number: u64) -> bool {
        let Some(role) = self.role_mut(key) else {
            return false;
        };
        let Some(place) = role.waiters.iter().position(|w| w.number == number) else {
            return false;
        };
        role.waiters.remove(place);
        self.count_served(key);
        self.tidy(key);
        true
    }

    fn count_served(&mut self, key: &Key) {
        self.waiting -= 1;
        if let Some(tenant) = self.tenants.get_mut(&key.database) {
            tenant.waiting -= 1;
        }
    }

    /// Finds the use of a connection that has become free: the request of its role that waits
    /// longest, another role's whose turn it is, or none.
    pub(super) fn settle(
        &mut self,
        entry: Box<Entry<K::Connection>>,
        from: Phase,
        now: Instant,
        actions: &mut Vec<Action<K>>,
    ) {
        self.end(&entry.key, from);
        if self.is_retired(&entry, now) {
            return self.discard(entry, now, actions);
        }
        if self.waiting == 0 {
            return self.rest(entry, now);
        }
        // What was opened for a role serves it at least once.
        let rival = match from {
            Phase::Opening | Phase::Leaving => None,
            Phase::Lent | Phase::Resetting => self.rival_rank(&entry, now),
        };
        match (self.own_rank(&entry.key), rival) {
            (None, _) => {
                self.rest(entry, now);
                self.balance(now, actions);
            }
            (Some(own), Some(rival)) if rival < own => self.discard(entry, now, actions),
            (Some(_), _) => self.lend(entry, now, actions),
        }
    }

    /// Closes a connection whose phase has ended and gives its place away.
    pub(super) fn discard(
        &mut self,
        entry: Box<Entry<K::Connection>>,
        now: Instant,
        actions: &mut Vec<Action<K>>,
    ) {
        self.forget(&entry.key);
        actions.push(Action::Close(entry));
        self.balance(now, actions);
    }

    /// Gives a connection to the request of its role that waits longest.
    fn lend(
        &mut self,
        mut entry: Box<Entry<K::Connection>>,
        now: Instant,
        actions: &mut Vec<Action<K>>,
    ) {
        let event = self.next_event();
        let Some(tenant) = self.tenants.get_mut(&entry.key.database) else {
            return;
        };
        tenant.turn = event;
        let Some(role) = tenant.roles.get_mut(&entry.key) else {
            return;
        };
        let Some(waiter) = role.waiters.pop_front() else {
            return;
        };
        role.lent += 1;
        self.counters.waited(now.duration_since(waiter.since));
        self.count_served(&entry.key);
        let switched = switch(&mut entry, waiter.sharing);
        actions.push(Action::Lend(waiter.reply, entry, switched));
    }

    fn own_rank(&self, key: &Key) -> Option<Rank> {
        let tenant = self.tenants.get(&key.database)?;
        let waiter = tenant.roles.get(key)?.waiters.front()?;
        Some((tenant.turn, waiter.number))
    }

    /// The first request of another role that this connection's place would serve, once the
    /// connection has served its own role for long enough.
    fn rival_rank(&self, entry: &Entry<K::Connection>, now: Instant) -> Option<Rank> {
        if now.duration_since(entry.opened) < self.settings.turn || self.gate.is_down() {
            return None;
        }
        self.next_in_turn(Some(&entry.key), now)
            .map(|(rank, _)| rank)
    }

    /// Opens connections as long as somebody lacks one and may have it.
    pub(super) fn balance(&mut self, now: Instant, actions: &mut Vec<Action<K>>) {
        if self.waiting == 0 {
            return;
        }
        if let Some(verdict) = self.gate.verdict(now) {
            return self.refuse_hopeless(&verdict, actions);
        }
        while let Some((_, key)) = self.next_in_turn(None, now) {
            self.make_room(&key, actions);
            let serial = self.count_opening(&key);
            actions.push(Action::Open(key, serial));
        }
    }

    /// Closes an idle connection where the role's next one would be one too many.
    fn make_room(&mut self, key: &Key, actions: &mut Vec<Action<K>>) {
        let tenant = self.tenants.get(&key.database).map_or(0, |t| t.held);
        let evicted = if tenant >= self.settings.per_tenant() {
            self.evict(Some(&key.database))
        } else if self.held >= self.settings.capacity {
            self.evict(None)
        } else {
            None
        };
        actions.extend(evicted.map(Action::Close));
    }

    /// The role whose turn it is, among those that lack a connection and may have one. With
    /// `freed`, as if the connection of that role were closed.
    pub(super) fn next_in_turn(&self, freed: Option<&Key>, now: Instant) -> Option<(Rank, Key)> {
        if self.held >= self.settings.capacity && self.idle == 0 && freed.is_none() {
            return None;
        }
        let waiting = self.tenants.iter().filter(|(_, tenant)| tenant.waiting > 0);
        waiting
            .filter(|(name, tenant)| {
                tenant.held < self.settings.per_tenant()
                    || freed.is_some_and(|key| key.database == **name)
                    || tenant.roles.values().any(|role| !role.idle.is_empty())
            })
            .filter_map(|(_, tenant)| {
                let (number, key) = self.first_lacking(tenant, now)?;
                Some(((tenant.turn, number), key))
            })
            .min_by_key(|(rank, _)| *rank)
            .map(|(rank, key)| (rank, key.clone()))
    }

    /// The role of a tenant whose request waits longest, among those that lack a connection.
    fn first_lacking<'t>(&self, tenant: &'t Tenant<K>, now: Instant) -> Option<(u64, &'t Key)> {
        let lacks = |key: &Key, role: &Role<K>| {
            role.waiters.len() > role.opening + role.resetting
                && role.held() < self.settings.for_role(role.strangers || key.trusted)
                && role.paused_until.is_none_or(|until| until <= now)
        };
        tenant
            .roles
            .iter()
            .filter(|(key, role)| lacks(key, role))
            .filter_map(|(key, role)| Some((role.waiters.front()?.number, key)))
            .min_by_key(|(number, _)| *number)
    }

    /// Answers the requests of roles to which no connection will come back.
    fn refuse_hopeless(&mut self, verdict: &Verdict, actions: &mut Vec<Action<K>>) {
        let hopeless: Vec<Key> = self
            .tenants
            .values()
            .flat_map(|tenant| tenant.roles.iter())
            .filter(|(_, role)| role.in_use() == 0 && !role.waiters.is_empty())
            .map(|(key, _)| key.clone())
            .collect();
        for key in hopeless {
            self.refuse(&key, verdict, actions);
        }
    }

    /// Answers all waiting requests of a role.
    pub(super) fn refuse(&mut self, key: &Key, verdict: &Verdict, actions: &mut Vec<Action<K>>) {
        let Some(role) = self.role_mut(key) else {
            return;
        };
        let waiters = std::mem::take(&mut role.waiters);
        for waiter in waiters {
            self.count_served(key);
            actions.push(Action::Refuse(waiter.reply, verdict.clone()));
        }
        self.tidy(key);
    }
}
