//! The pool of connections that logged in as users.
//!
//! A connection belongs to one role in one database and is lent to one request at a time. A role
//! has few of them, all roles together have a fixed number, and a database has at most half of
//! that. When the number is reached, the connection that nobody has used for longest makes room;
//! when all are in use, requests wait in turn by database, for a bounded time, in a bounded
//! queue. What comes back is lent again only when its state is certain: the [`Connector`] judges,
//! and resets run in the background.

mod connector;
mod gate;
mod lease;
mod opening;
mod queue;
mod settings;
mod state;
mod stats;
mod trouble;

mod verdict;

use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tidegate_sql::{DatabaseName, Error, Login, Result, RoleName};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};
use tracing::{info, warn};

pub(crate) use connector::turned_away;
pub use connector::{
    Cause, Condition, Connector, Key, LoginFault, NoRepair, OpenError, Repair, Repaired,
    ResetFailed,
};
pub use lease::Lease;
pub use settings::Settings;
pub use stats::{Counters, PoolStats, RoleStats, WAIT_BOUNDS};

use crate::backoff::{Backoff, Jitter};
use gate::Gate;
use state::{Action, Entry, Phase, State};
use verdict::Verdict;

/// How long a reset takes when nothing is in its way.
const QUICK_RESET: Duration = Duration::from_millis(20);
/// The end of a terminated backend that took longer is told.
const STUBBORN: Duration = Duration::from_secs(2);
/// How often idle connections are looked through.
const SWEEP: Duration = Duration::from_secs(1);

/// A pool; clones share it.
pub struct Pool<K: Connector> {
    inner: Arc<Inner<K>>,
}

struct Inner<K: Connector> {
    connector: K,
    repair: Arc<dyn Repair>,
    limits: Settings,
    runtime: Handle,
    state: Mutex<State<K>>,
}

impl<K: Connector> Pool<K> {
    /// A pool without connections yet. Must be called on a tokio runtime; its tasks run there.
    pub fn new(connector: K, repair: Arc<dyn Repair>, settings: Settings, jitter: Jitter) -> Self {
        let gate = Gate::new(Backoff::new(jitter));
        let inner = Arc::new(Inner {
            connector,
            repair,
            limits: settings.clone(),
            runtime: Handle::current(),
            state: Mutex::new(State::new(settings, gate)),
        });
        inner.runtime.spawn(sweep(Arc::downgrade(&inner)));
        Self { inner }
    }

    /// A connection that logged in as the role of `login`: an idle one at once, else as soon as
    /// the pool's bounds allow it.
    ///
    /// # Errors
    ///
    /// [`Error::PoolTimeout`] when none became free in time or too many wait already;
    /// [`Error::Unavailable`] when PostgreSQL cannot be reached or is full, or the role's password
    /// could not be set anew; [`Error::Rejected`] with 28000 or 42501 when the role may not log in;
    /// [`Error::NoDatabase`] when the database is not there.
    pub async fn acquire(&self, login: &Login) -> Result<Lease<K>> {
        while let Some(mut lease) = self.claim(login) {
            if self.inner.connector.is_open(&mut lease) {
                return Ok(lease);
            }
            lease.discard();
        }
        self.inner.wait(login).await
    }

    fn claim(&self, login: &Login) -> Option<Lease<K>> {
        let (entry, changed) = self.inner.state.lock().claim(login, Instant::now())?;
        Some(Lease::new(self.inner.clone(), entry, changed))
    }

    /// Closes the connections to a database: the idle ones at once, the others when they come
    /// back. Answers how many those are; [`Pool::stats`] tells when they are gone.
    pub fn close(&self, database: &DatabaseName) -> usize {
        self.inner
            .change(|state, actions| state.close(database, None, actions))
    }

    /// Closes the connections of one role, as [`Pool::close`] does for a database.
    pub fn close_role(&self, database: &DatabaseName, role: &RoleName) -> usize {
        self.inner
            .change(|state, actions| state.close(database, Some(role), actions))
    }

    /// Closes the connections of a role whose sessions would begin with other settings now. Those
    /// that strangers share are pinned to the defaults, and any stranger may change the role's.
    pub fn renew_role(&self, database: &DatabaseName, role: &RoleName) {
        let shares = |state: &State<K>, trusted| {
            state.is_shared(&Key {
                database: database.clone(),
                role: role.clone(),
                trusted,
            })
        };
        self.inner.change(|state, actions| {
            // A role without connections counts as shared.
            if !(shares(state, false) && shares(state, true)) {
                state.close(database, Some(role), actions);
            }
        });
    }

    /// Tells the pool that PostgreSQL answers again, as somebody else has found out; requests
    /// open connections at once instead of waiting for the pool's next probe.
    pub fn resume(&self) {
        let now = Instant::now();
        self.inner.change(|state, actions| {
            state.gate.open();
            state.balance(now, actions);
        });
    }

    /// Its bounds.
    pub fn settings(&self) -> &Settings {
        &self.inner.limits
    }

    /// What the pool holds now and what happened since the start.
    pub fn stats(&self) -> PoolStats {
        self.inner.state.lock().stats()
    }

    /// The databases and roles that hold or await connections.
    pub(crate) fn keys(&self) -> Vec<Key> {
        let stats = self.stats();
        stats.roles.into_iter().map(|role| role.key).collect()
    }

    /// The connector.
    pub fn connector(&self) -> &K {
        &self.inner.connector
    }
}

impl<K: Connector> Clone for Pool<K> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
        }
    }
}

impl<K: Connector> fmt::Debug for Pool<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool")
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}

impl<K: Connector> Inner<K> {
    /// Changes the state and then, without the lock, does what follows from that.
    fn change<T>(
        self: &Arc<Self>,
        change: impl FnOnce(&mut State<K>, &mut Vec<Action<K>>) -> T,
    ) -> T {
        let mut actions = Vec::new();
        let outcome = change(&mut self.state.lock(), &mut actions);
        for action in actions {
            self.perform(action);
        }
        outcome
    }

    fn perform(self: &Arc<Self>, action: Action<K>) {
        match action {
            Action::Open(key, serial) => {
                self.runtime.spawn(self.clone().open(key, serial));
            }
            Action::Close(entry) => {
                let closing = self.connector.close(entry.connection);
                self.runtime.spawn(timeout(self.limits.reset, closing));
            }
            // When nobody waits any more, dropping the lease gives the connection to the next.
            Action::Lend(reply, entry, changed) => {
                drop(reply.send(Ok(Lease::new(self.clone(), entry, changed))));
            }
            Action::Refuse(reply, verdict) => drop(reply.send(Err(verdict))),
        }
    }

    fn give_back(self: &Arc<Self>, entry: Box<Entry<K::Connection>>, condition: Condition) {
        if condition == Condition::ResetDue {
            return self.begin_reset(entry);
        }
        let now = Instant::now();
        if condition == Condition::Ready {
            return self.change(|state, actions| state.settle(entry, Phase::Lent, now, actions));
        }
        self.dismiss(entry, Phase::Lent);
    }

    /// Closes a connection that is good for nothing. What PostgreSQL still does for it counts
    /// against its role's share until that has ended: nothing else would bound how many
    /// statements run that cannot be interrupted.
    fn dismiss(self: &Arc<Self>, entry: Box<Entry<K::Connection>>, phase: Phase) {
        if !self.connector.may_run(&entry.connection) {
            let now = Instant::now();
            return self.change(|state, actions| {
                state.end(&entry.key, phase);
                state.discard(entry, now, actions);
            });
        }
        let now = Instant::now();
        self.change(|state, actions| {
            state.shift(&entry.key, phase, Phase::Leaving);
            state.balance(now, actions);
        });
        self.runtime.spawn(self.clone().see_off(entry));
    }

    async fn see_off(self: Arc<Self>, entry: Box<Entry<K::Connection>>) {
        let Entry {
            connection, key, ..
        } = *entry;
        let began = Instant::now();
        self.connector.see_off(connection).await;
        let now = Instant::now();
        if now.duration_since(began) > STUBBORN {
            info!(%key, after = ?now.duration_since(began), "a statement that did not stop has ended");
        }
        self.change(|state, actions| {
            state.end(&key, Phase::Leaving);
            state.forget(&key);
            state.balance(now, actions);
        });
    }

    fn begin_reset(self: &Arc<Self>, entry: Box<Entry<K::Connection>>) {
        {
            let mut state = self.state.lock();
            state.counters.resets += 1;
            state.shift(&entry.key, Phase::Lent, Phase::Resetting);
        }
        self.runtime.spawn(self.clone().reset(entry));
    }

    async fn reset(self: Arc<Self>, mut entry: Box<Entry<K::Connection>>) {
        let (done, phase) = self.reset_in_time(&mut entry).await;
        let condition = self.connector.condition(&mut entry.connection);
        let certain = done && condition == Condition::Ready;
        if certain {
            let now = Instant::now();
            return self.change(|state, actions| state.settle(entry, phase, now, actions));
        }
        warn!(key = %entry.key, "a session could not be reset; its connection is closed");
        self.state.lock().counters.reset_failures += 1;
        self.dismiss(entry, phase);
    }

    /// Resets. What takes longer than usual counts as lent from then on, so that those who wait
    /// no longer rely on it.
    async fn reset_in_time(self: &Arc<Self>, entry: &mut Entry<K::Connection>) -> (bool, Phase) {
        let mut reset = self.connector.reset(&mut entry.connection);
        if let Ok(outcome) = timeout(QUICK_RESET, &mut reset).await {
            return (outcome.is_ok(), Phase::Resetting);
        }
        let now = Instant::now();
        self.change(|state, actions| {
            state.shift(&entry.key, Phase::Resetting, Phase::Lent);
            state.balance(now, actions);
        });
        let outcome = timeout(self.limits.reset, reset).await;
        (matches!(outcome, Ok(Ok(()))), Phase::Lent)
    }

    async fn wait(self: &Arc<Self>, login: &Login) -> Result<Lease<K>> {
        let (reply, answer) = oneshot::channel();
        let now = Instant::now();
        let number = self.change(|state, actions| {
            if let Some((entry, changed)) = state.claim(login, now) {
                actions.push(Action::Lend(reply, entry, changed));
                return Ok(None);
            }
            state.enter(login, reply, now, actions).map(Some)
        })?;
        let place = Place {
            inner: self,
            key: Key::from(login),
            number,
        };
        let outcome = timeout(self.limits.wait, answer).await;
        if outcome.is_err() && place.leave() {
            self.state.lock().counters.timeouts += 1;
        }
        match outcome {
            Ok(Ok(Ok(lease))) => Ok(lease),
            Ok(Ok(Err(verdict))) => Err(verdict.into()),
            Ok(Err(_)) => Err(Error::internal("the pool dropped a request")),
            Err(_) => Err(Verdict::Exhausted.into()),
        }
    }
}

/// A request's place in the queue, which it leaves when its future is dropped.
struct Place<'a, K: Connector> {
    inner: &'a Arc<Inner<K>>,
    key: Key,
    number: Option<u64>,
}

impl<K: Connector> Place<'_, K> {
    fn leave(&self) -> bool {
        let number = self.number;
        number.is_some_and(|number| self.inner.state.lock().leave(&self.key, number))
    }
}

impl<K: Connector> Drop for Place<'_, K> {
    fn drop(&mut self) {
        self.leave();
    }
}

/// Closes what is idle or old, and looks after requests whose pause is over.
async fn sweep<K: Connector>(pool: Weak<Inner<K>>) {
    loop {
        tokio::time::sleep(SWEEP).await;
        let Some(pool) = pool.upgrade() else {
            return;
        };
        let now = Instant::now();
        pool.change(|state, actions| {
            state.expire(now, actions);
            state.balance(now, actions);
        });
    }
}
