//! Opens connections in tasks of their own, so that a login continues if the request that caused it
//! is cancelled.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until, timeout};
use tracing::{info, warn};

use super::Inner;
use super::acquire_error::AcquireError;
use super::connector::{Cause, Connector, OpenError, PoolKey};
use super::pooled_connection::PoolEntry;
use super::role::{Phase, Role};
use super::state::{Action, State, TenantConnections};

/// How long no connection is opened for a role after PostgreSQL refused a login of the role.
const REFUSAL_DELAY: Duration = Duration::from_secs(1);

/// The maximum time for which a login waits until the connection that it replaces is closed.
const CLOSE: Duration = Duration::from_millis(250);

#[derive(Debug, thiserror::Error)]
#[error("no answer within {0:?}")]
struct NoResponse(Duration);

impl<K: Connector> Inner<K> {
    /// Opens a connection and adds it to the pool. If `evicted` is given, closes that connection
    /// first.
    pub(super) async fn open(
        self: Arc<Self>,
        key: PoolKey,
        serial: u64,
        evicted: Option<Box<PoolEntry<K>>>,
    ) {
        if let Some(entry) = evicted {
            self.close_first(entry).await;
        }
        match self.connect(&key).await {
            Ok(connection) => self.opened(key, serial, connection),
            Err(failure) => self.failed(&key, &failure),
        }
    }

    async fn connect(&self, key: &PoolKey) -> Result<K::Connection, OpenError> {
        let fixed_settings = self.state.lock().has_fixed_settings(key);
        self.connect_with(key, fixed_settings).await
    }

    async fn connect_with(
        &self,
        key: &PoolKey,
        fixed_settings: bool,
    ) -> Result<K::Connection, OpenError> {
        let limit = self.limits.open;
        let timed_out = |_| OpenError::Unreachable(Arc::new(NoResponse(limit)));
        let began = Instant::now();
        let attempt = timeout(limit, self.connector.open(key, fixed_settings));
        let connection = attempt.await.map_err(timed_out)??;
        self.state.lock().login_time.measured(began.elapsed());
        Ok(connection)
    }

    /// Closes a connection and waits until PostgreSQL has freed its slot, because PostgreSQL may
    /// have no other slot. If this takes longer than [`CLOSE`], returns while the connection is
    /// still being closed.
    async fn close_first(&self, entry: Box<PoolEntry<K>>) {
        let closing = timeout(self.limits.reset, self.connector.close(entry.connection));
        let closing = self.runtime.spawn(closing);
        if timeout(CLOSE, closing).await.is_err() {
            warn!(key = %entry.key, "closing an idle connection is slow");
        }
    }

    fn opened(self: &Arc<Self>, key: PoolKey, serial: u64, connection: K::Connection) {
        let now = Instant::now();
        let entry = Box::new(PoolEntry {
            connection,
            key,
            serial,
            opened: now,
            idle_since: now,
            session: None,
        });
        self.change(|state, actions| {
            state.counters.opened += 1;
            state.circuit_breaker.close();
            let (held, capacity) = (state.held, state.settings.capacity);
            state.server_limit.granted(held, capacity, now);
            state.put_back(entry, Phase::Opening, now, actions);
        });
    }

    fn failed(self: &Arc<Self>, key: &PoolKey, failure: &OpenError) {
        report(key, failure);
        let now = Instant::now();
        let (start_probe, fixed_settings) = self.change(|state, actions| {
            // `has_fixed_settings` is called first, because `uncount` removes the role if it has no
            // other connection and no waiting request.
            let fixed_settings = state.has_fixed_settings(key);
            state.counters.open_failures += 1;
            state.leave_phase(key, Phase::Opening);
            let start_probe = state.record_failure(key, failure, now, actions);
            state.uncount(key);
            state.balance(now, actions);
            (start_probe, fixed_settings)
        });
        if start_probe {
            self.runtime.spawn(probe_until_up(
                Arc::downgrade(self),
                key.clone(),
                fixed_settings,
            ));
        }
    }

    /// Tries once to reach PostgreSQL. Returns `true` if no further probe is needed, because
    /// PostgreSQL responded or the circuit breaker is closed.
    async fn probe(self: &Arc<Self>, key: &PoolKey, fixed_settings: bool) -> bool {
        match self.connect_with(key, fixed_settings).await {
            Err(OpenError::Unreachable(cause)) => {
                let mut state = self.state.lock();
                if state.circuit_breaker.is_open() {
                    state.circuit_breaker.probe_failed(cause, Instant::now());
                }
                return !state.circuit_breaker.is_open();
            }
            Ok(connection) => self.keep_probe(key, fixed_settings, connection),
            // PostgreSQL refused the login, so the server is up.
            Err(_) => self.change(|state, _| state.circuit_breaker.close()),
        }
        info!("PostgreSQL is reachable again");
        true
    }

    /// Adds the connection of a probe to the pool if the limits allow it and
    /// [`Role::has_fixed_settings`] has not changed since the probe began. Otherwise closes the
    /// connection.
    fn keep_probe(
        self: &Arc<Self>,
        key: &PoolKey,
        fixed_settings: bool,
        connection: K::Connection,
    ) {
        let now = Instant::now();
        let serial = {
            let mut state = self.state.lock();
            state.circuit_breaker.close();
            let same_settings = state
                .role_mut(key)
                .is_none_or(|role| role.has_fixed_settings == fixed_settings);
            (same_settings && state.has_room(key, now)).then(|| {
                let serial = state.count_opening(key);
                if let Some(role) = state.role_mut(key) {
                    role.has_fixed_settings = fixed_settings;
                }
                serial
            })
        };
        match serial {
            Some(serial) => self.opened(key.clone(), serial, connection),
            None => drop(self.runtime.spawn(self.connector.close(connection))),
        }
    }
}

/// Tries to connect with growing delays, until PostgreSQL responds or the pool is dropped.
async fn probe_until_up<K: Connector>(
    pool: std::sync::Weak<Inner<K>>,
    key: PoolKey,
    fixed_settings: bool,
) {
    loop {
        let next = pool
            .upgrade()
            .and_then(|pool| pool.state.lock().circuit_breaker.next_probe());
        let Some(next) = next else {
            return;
        };
        sleep_until(next).await;
        match pool.upgrade() {
            Some(pool) if !pool.probe(&key, fixed_settings).await => {}
            _ => return,
        }
    }
}

/// Logs why a connection could not be opened.
fn report(key: &PoolKey, failure: &OpenError) {
    if let OpenError::Login(cause) = failure {
        let command = key.repair_command();
        warn!(%key, error = %cause, command, "PostgreSQL refuses the login of the role");
        return;
    }
    let cause = std::error::Error::source(failure).map_or_else(String::new, ToString::to_string);
    warn!(%key, error = %failure, cause, "cannot connect to PostgreSQL");
}

impl<K: Connector> State<K> {
    /// Handles a failed login. Returns whether the calling function must start to probe the server.
    fn record_failure(
        &mut self,
        key: &PoolKey,
        failure: &OpenError,
        now: Instant,
        actions: &mut Vec<Action<K>>,
    ) -> bool {
        let refused = match failure {
            OpenError::Unreachable(cause) => return self.circuit_breaker.trip(cause.clone(), now),
            OpenError::Full(cause) => {
                self.server_is_full(cause, now);
                return false;
            }
            OpenError::Limited(_)
            | OpenError::Login(_)
            | OpenError::AccessDenied { .. }
            | OpenError::NoDatabase
            | OpenError::Internal(_) => AcquireError::of(failure.clone(), REFUSAL_DELAY),
        };
        if let OpenError::Limited(_) = failure
            && self.wait_within_limit(key, now, actions)
        {
            return false;
        }
        if let OpenError::AccessDenied { .. } = failure {
            // Open connections must no longer serve a role that may not log in.
            self.close(&key.database, Some(&key.role), actions);
        }
        self.refuse(key, &refused, actions);
        if !matches!(failure, OpenError::Internal(_)) {
            self.store_refusal(key, now + REFUSAL_DELAY, refused);
        }
        false
    }

    /// Stores an error. Until `until`, new requests of the role that would have to wait for a
    /// connection fail with this error.
    fn store_refusal(&mut self, key: &PoolKey, until: Instant, error: AcquireError) {
        self.refusals.insert(key.clone(), (until, error));
    }

    /// The stored error for requests of the role; `None` if there is none or it has expired.
    pub(super) fn refusal(&self, key: &PoolKey, now: Instant) -> Option<&AcquireError> {
        let (until, error) = self.refusals.get(key)?;
        (now < *until).then_some(error)
    }

    /// Lowers the limit to the number of connections that the pool has. `self.held` still includes
    /// the login that failed.
    fn server_is_full(&mut self, cause: &Cause, now: Instant) {
        let held = self.held - 1;
        if self.server_limit.refused(held, cause.clone(), now) {
            warn!(
                held,
                "max_connections reached; requests wait for pooled connections"
            );
        }
    }

    /// Handles a login that failed because of a `CONNECTION LIMIT` of the role or database. If the
    /// role has no connection in use, closes an idle connection of another role in the database.
    /// Returns whether the role's requests can wait, for a connection of the role or for the slot
    /// of the closed connection.
    fn wait_within_limit(
        &mut self,
        key: &PoolKey,
        now: Instant,
        actions: &mut Vec<Action<K>>,
    ) -> bool {
        let in_use = self.role(key).is_some_and(|role| role.in_use() > 0);
        let evicted = if in_use {
            None
        } else {
            let victim = self.victim_in(&key.database, now);
            victim.and_then(|victim| self.evict(&victim))
        };
        let may_wait = in_use || evicted.is_some();
        actions.extend(evicted.map(Action::Close));
        if let Some(role) = self.role_mut(key)
            && may_wait
        {
            role.paused_until = Some(now + REFUSAL_DELAY);
        }
        may_wait
    }

    /// Whether the role has fixed settings ([`Role::has_fixed_settings`]). Also true for a role
    /// that has neither connections nor waiting requests.
    pub(super) fn has_fixed_settings(&self, key: &PoolKey) -> bool {
        self.role(key).is_none_or(|role| role.has_fixed_settings)
    }

    /// Whether all limits allow another connection of the role.
    fn has_room(&self, key: &PoolKey, now: Instant) -> bool {
        let tenant = self.tenants.get(&key.database);
        let limit = |role: &Role<K>| self.settings.for_role(role.is_shared());
        self.held < self.capacity(now)
            && tenant.map_or(0, TenantConnections::busy) < self.settings.per_tenant()
            && self.role(key).is_none_or(|role| role.held() < limit(role))
    }
}
