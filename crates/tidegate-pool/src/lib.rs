#![doc = include_str!("../README.md")]

mod acquire_error;
mod checkout;
mod circuit_breaker;
mod connect;
mod connector;
mod counters;
mod eviction;
mod login_time;
mod pooled_connection;
mod recycle;
mod role;
mod scheduler;
mod server_limit;
mod settings;
#[cfg(test)]
mod simulation;
mod state;
mod stats;

use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tidegate_sql::{DatabaseName, Error, Login, Result, RoleName};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout, timeout_at};

pub use connector::{Cause, Connector, OpenError, PoolKey, Recycle, ResetFailed};
pub use counters::{Counters, WAIT_BOUNDS};
pub use pooled_connection::PooledConnection;
pub use settings::Settings;
pub use stats::{PoolStats, RoleStats};

use tidegate_wire::backoff::{Backoff, Jitter};

use acquire_error::AcquireError;
use circuit_breaker::CircuitBreaker;
use pooled_connection::PoolEntry;
use role::Phase;
use state::{Action, State};

/// The interval at which idle connections and waiting requests are checked.
const SWEEP: Duration = Duration::from_secs(1);

/// A pool of connections. Clones share the connections.
pub struct Pool<K: Connector> {
    inner: Arc<Inner<K>>,
}

struct Inner<K: Connector> {
    connector: K,
    limits: Settings,
    runtime: Handle,
    state: Mutex<State<K>>,
}

impl<K: Connector> Pool<K> {
    /// Creates an empty pool. Must be called within a tokio runtime, in which the pool's tasks run.
    pub fn new(connector: K, settings: Settings, jitter: Jitter) -> Self {
        let circuit_breaker = CircuitBreaker::new(Backoff::new(jitter));
        let inner = Arc::new(Inner {
            connector,
            limits: settings.clone(),
            runtime: Handle::current(),
            state: Mutex::new(State::new(settings, circuit_breaker)),
        });
        inner.runtime.spawn(sweep(Arc::downgrade(&inner)));
        Self { inner }
    }

    /// Checks out a connection of `login`. An idle connection is returned immediately. Otherwise
    /// the request waits until the limits of the pool allow a connection.
    ///
    /// # Errors
    ///
    /// - [`Error::PoolTimeout`] if no connection became free in time, or too many requests wait
    ///   already.
    /// - [`Error::Unavailable`] if PostgreSQL cannot be reached or is full, or refuses the role's
    ///   password or settings ([`tidegate_sql::LoginRefused`]).
    /// - [`Error::Rejected`] with 28000 or 42501 if the role may not log in.
    /// - [`Error::NoDatabase`] if the database does not exist.
    pub async fn acquire(&self, login: &Login) -> Result<PooledConnection<K>> {
        self.acquire_until(login, Instant::now() + self.inner.limits.wait)
            .await
    }

    /// Checks out a connection as [`Pool::acquire`] does, but waits until `until` at the latest.
    /// Use it for a request that may already have waited because its caller occupied too many
    /// connections.
    ///
    /// # Errors
    ///
    /// The errors of [`Pool::acquire`].
    pub async fn acquire_until(
        &self,
        login: &Login,
        until: Instant,
    ) -> Result<PooledConnection<K>> {
        loop {
            let mut connection = match self.claim(login) {
                Some(connection) => connection,
                None => self.inner.wait(login, until).await?,
            };
            if self.inner.connector.is_open(&mut connection) {
                return Ok(connection);
            }
            connection.discard();
        }
    }

    fn claim(&self, login: &Login) -> Option<PooledConnection<K>> {
        let (entry, changed) = self.inner.state.lock().claim(login, Instant::now())?;
        Some(PooledConnection::new(self.inner.clone(), entry, changed))
    }

    /// Whether one request may keep a connection of the login's role for a long time. The result is
    /// `true` if the role holds at least two connections. Requests that need a connection of their
    /// own then use the other connections. The result is also `true` if the role may hold only one
    /// connection, because no other connection can be opened for such requests.
    pub fn can_use_one_alone(&self, login: &Login) -> bool {
        let state = self.inner.state.lock();
        let role = state.role(&PoolKey::from(login));
        role.is_some_and(|role| {
            let limit = state.settings.for_role(role.is_shared());
            role.held() > 1 || limit == 1
        })
    }

    /// Closes the idle connections to a database immediately, and connections in use when they are
    /// returned. Returns the number of connections in use. [`Pool::stats`] shows when the
    /// connections in use are closed.
    pub fn close(&self, database: &DatabaseName) -> usize {
        self.inner
            .change(|state, actions| state.close(database, None, actions))
    }

    /// Closes the connections of one role, in the way [`Pool::close`] does for a database.
    pub fn close_role(&self, database: &DatabaseName, role: &RoleName) -> usize {
        self.inner
            .change(|state, actions| state.close(database, Some(role), actions))
    }

    /// Closes the connections of a role whose settings may have changed. Does nothing if all of
    /// them serve anonymous callers or members, because those sessions start with fixed settings
    /// that the role cannot change.
    pub fn close_for_new_settings(&self, database: &DatabaseName, role: &RoleName) {
        let fixed = |state: &State<K>, trusted| {
            state.has_fixed_settings(&PoolKey {
                database: database.clone(),
                role: role.clone(),
                trusted,
            })
        };
        self.inner.change(|state, actions| {
            // `has_fixed_settings` is true for an unknown role, so a role without connections is
            // also skipped.
            if !(fixed(state, false) && fixed(state, true)) {
                state.close(database, Some(role), actions);
            }
        });
    }

    /// Reports that PostgreSQL is reachable again. Requests then open connections immediately
    /// instead of waiting for the next probe.
    pub fn resume(&self) {
        let now = Instant::now();
        self.inner.change(|state, actions| {
            state.circuit_breaker.close();
            state.balance(now, actions);
        });
    }

    /// The limits with which the pool was created. They do not show later changes of the capacity
    /// by [`Pool::set_capacity`].
    pub fn settings(&self) -> &Settings {
        &self.inner.limits
    }

    /// Changes the limit on the connections of all roles together. If the pool holds more
    /// connections, it closes idle connections immediately, and others when they are returned.
    /// Returns how many connections above the limit are left.
    pub fn set_capacity(&self, capacity: usize) -> usize {
        let now = Instant::now();
        self.inner
            .change(|state, actions| state.set_capacity(capacity, now, actions))
    }

    /// The current state and the counters since the start.
    pub fn stats(&self) -> PoolStats {
        self.inner.state.lock().stats()
    }

    /// The keys of the roles that have connections or waiting requests, in no particular order.
    pub fn keys(&self) -> Vec<PoolKey> {
        let stats = self.stats();
        stats.roles.into_iter().map(|role| role.key).collect()
    }

    /// The connector that opens and closes the connections of the pool.
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
    /// Runs `change` on the state under the lock. Then performs the actions that it has added,
    /// without the lock.
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

    fn return_connection(self: &Arc<Self>, entry: Box<PoolEntry<K>>, recycle: Recycle) {
        if recycle == Recycle::Reset {
            return self.begin_reset(entry);
        }
        let now = Instant::now();
        if recycle == Recycle::Reuse {
            return self
                .change(|state, actions| state.put_back(entry, Phase::CheckedOut, now, actions));
        }
        self.discard_busy(entry, Phase::CheckedOut);
    }

    fn perform(self: &Arc<Self>, action: Action<K>) {
        match action {
            Action::Open(key, serial, evicted) => {
                let opening = self.clone().open(key, serial, evicted);
                self.runtime.spawn(opening);
            }
            Action::Close(entry) => {
                let closing = self.connector.close(entry.connection);
                self.runtime.spawn(timeout(self.limits.reset, closing));
            }
            // If the request was cancelled, dropping the connection returns it to the pool.
            Action::CheckOut(reply, entry, changed) => {
                drop(reply.send(Ok(PooledConnection::new(self.clone(), entry, changed))));
            }
            Action::Refuse(reply, error) => drop(reply.send(Err(error))),
        }
    }

    async fn wait(
        self: &Arc<Self>,
        login: &Login,
        deadline: Instant,
    ) -> Result<PooledConnection<K>> {
        let (reply, receiver) = oneshot::channel();
        let now = Instant::now();
        let number = self.change(|state, actions| {
            if let Some((entry, changed)) = state.claim(login, now) {
                actions.push(Action::CheckOut(reply, entry, changed));
                return Ok(None);
            }
            state.enqueue(login, reply, now, actions).map(Some)
        })?;
        let queued = QueuedRequest {
            inner: self,
            key: PoolKey::from(login),
            number,
        };
        let outcome = self.reply(receiver, deadline).await;
        if outcome.is_none() && queued.leave() {
            self.state.lock().counters.timeouts += 1;
        }
        match outcome {
            Some(Ok(Ok(connection))) => Ok(connection),
            Some(Ok(Err(error))) => Err(error.into()),
            Some(Err(_)) => Err(Error::internal("the pool dropped a request")),
            None => Err(AcquireError::Exhausted.into()),
        }
    }

    /// Waits for the reply until the deadline; returns `None` after the deadline. During the wait,
    /// checks whether the request has waited long enough for a new connection: first after the time
    /// of a login, then after delays that double.
    async fn reply<T>(
        self: &Arc<Self>,
        mut receiver: oneshot::Receiver<T>,
        deadline: Instant,
    ) -> Option<Result<T, oneshot::error::RecvError>> {
        let mut pause = self.state.lock().login_time.get();
        let mut next = Instant::now() + pause;
        loop {
            match timeout_at(next.min(deadline), &mut receiver).await {
                Ok(outcome) => return Some(outcome),
                Err(_) if next >= deadline => return None,
                Err(_) => {}
            }
            let now = Instant::now();
            self.change(|state, actions| state.balance(now, actions));
            next = now + pause;
            pause *= 2;
        }
    }
}

/// A request in the queue. Dropping this value removes the request from the queue.
struct QueuedRequest<'a, K: Connector> {
    inner: &'a Arc<Inner<K>>,
    key: PoolKey,
    number: Option<u64>,
}

impl<K: Connector> QueuedRequest<'_, K> {
    fn leave(&self) -> bool {
        let number = self.number;
        number.is_some_and(|number| self.inner.state.lock().dequeue(&self.key, number))
    }
}

impl<K: Connector> Drop for QueuedRequest<'_, K> {
    fn drop(&mut self) {
        self.leave();
    }
}

/// Runs until the pool is dropped. Closes connections that have been idle for [`Settings::idle`] or
/// are older than [`Settings::max_lifetime`]. Also serves waiting requests, because a delay that
/// prevented a login may have ended.
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
