//! Opening connections, in tasks of their own, so that the login goes on when its request is gone.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tidegate_sql::Error;
use tokio::time::{Instant, sleep_until, timeout};
use tracing::{info, warn};

use super::Inner;
use super::acquire_error::AcquireError;
use super::connector::{Cause, Connector, Key, LoginFault, OpenError, Repaired};
use super::login_failures::Turn;
use super::role::{Entry, Phase, Role};
use super::state::{Action, State, Tenant};

/// How long no connection is opened for a role after PostgreSQL refused one.
const REFUSED: Duration = Duration::from_secs(1);

/// How long a login waits for the end of the connection whose place it takes.
const CLOSE: Duration = Duration::from_millis(250);

/// PostgreSQL did not answer the attempt.
#[derive(Debug, thiserror::Error)]
#[error("no answer within {0:?}")]
struct NoAnswer(Duration);

impl<K: Connector> Inner<K> {
    /// Opens one connection, in the place of `evicted` if given, and puts it to use.
    pub(super) async fn open(
        self: Arc<Self>,
        key: Key,
        serial: u64,
        evicted: Option<Box<Entry<K::Connection>>>,
    ) {
        if let Some(entry) = evicted {
            self.close_first(entry).await;
        }
        match self.attempt(&key).await {
            Ok(connection) => self.opened(key, serial, connection),
            Err(failure) => self.failed(&key, &failure),
        }
    }

    async fn attempt(&self, key: &Key) -> Result<K::Connection, OpenError> {
        match self.connect(key).await {
            Err(OpenError::Login(fault, cause)) => {
                let admitted = self.ask(key, self.repair.admits(key), &fault, &cause);
                let admitted = admitted.await;
                if let Err(OpenError::Barred { .. }) = admitted {
                    self.state.lock().let_repair(key);
                }
                admitted?;
                self.repaired(key, &fault, &cause).await
            }
            outcome => outcome,
        }
    }

    /// Connects once the role has its password again: from this attempt, or from another one that
    /// is at it already.
    async fn repaired(
        &self,
        key: &Key,
        fault: &LoginFault,
        cause: &Cause,
    ) -> Result<K::Connection, OpenError> {
        let told = || OpenError::Login(fault.clone(), cause.clone());
        let turn = self.state.lock().may_repair(key, Instant::now());
        match turn {
            Turn::Ours(under_way) => {
                warn!(%key, error = %cause, "the role cannot log in; it is repaired");
                let answer = self.ask(key, self.repair.repair(key, fault), fault, cause);
                let answer = answer.await;
                // An administrator who cannot log in, say, has not tried it yet.
                let tried = matches!(answer, Ok(Repaired::Mended | Repaired::Held));
                let outcome = match answer {
                    Ok(Repaired::Mended) => self.connect(key).await,
                    Ok(Repaired::NotToBlame | Repaired::Held) => Err(told()),
                    Err(failure) => Err(failure),
                };
                let in_vain = tried && matches!(outcome, Err(OpenError::Login(..)));
                let now = Instant::now();
                self.state.lock().note_repair(key, in_vain, now);
                drop(under_way);
                outcome
            }
            Turn::Theirs(mut over) => {
                // An error is the end of it too.
                drop(timeout(self.limits.open, over.changed()).await);
                self.connect(key).await
            }
            Turn::Past => Err(told()),
        }
    }

    async fn connect(&self, key: &Key) -> Result<K::Connection, OpenError> {
        let shared = self.state.lock().is_shared(key);
        self.connect_as(key, shared).await
    }

    async fn connect_as(&self, key: &Key, shared: bool) -> Result<K::Connection, OpenError> {
        let limit = self.limits.open;
        let silence = |_| OpenError::Unreachable(Arc::new(NoAnswer(limit)));
        let began = Instant::now();
        let attempt = timeout(limit, self.connector.open(key, shared));
        let connection = attempt.await.map_err(silence)??;
        self.state.lock().login_time.measured(began.elapsed());
        Ok(connection)
    }

    /// Closes a connection and waits until PostgreSQL has given its place up, since it may have no
    /// other one. A connection that does not close in time goes on closing in the background.
    async fn close_first(&self, entry: Box<Entry<K::Connection>>) {
        let closing = timeout(self.limits.reset, self.connector.close(entry.connection));
        let closing = self.runtime.spawn(closing);
        if timeout(CLOSE, closing).await.is_err() {
            warn!(key = %entry.key, "an idle connection takes long to close");
        }
    }

    /// What an administrator says or does about a role that cannot log in. PostgreSQL has just
    /// answered that role, so a silence concerns nobody else: a lock on its row, for instance.
    async fn ask<T>(
        &self,
        key: &Key,
        administrator: impl Future<Output = tidegate_sql::Result<T>>,
        fault: &LoginFault,
        cause: &Cause,
    ) -> Result<T, OpenError> {
        let Ok(answer) = timeout(self.limits.open, administrator).await else {
            warn!(%key, "no answer about a role that is to be looked at or repaired");
            return Err(OpenError::Login(fault.clone(), cause.clone()));
        };
        answer.map_err(|error| match error {
            Error::NoDatabase => OpenError::NoDatabase,
            Error::Rejected(said) => OpenError::Barred {
                said,
                cause: cause.clone(),
            },
            error => {
                warn!(%key, %error, "the role could not be looked at or repaired");
                OpenError::Login(fault.clone(), cause.clone())
            }
        })
    }

    fn opened(self: &Arc<Self>, key: Key, serial: u64, connection: K::Connection) {
        let now = Instant::now();
        let entry = Box::new(Entry {
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
            state.note_login(&entry.key, now);
            state.put_back(entry, Phase::Opening, now, actions);
        });
    }

    fn failed(self: &Arc<Self>, key: &Key, failure: &OpenError) {
        warn!(%key, error = %failure, cause = source(failure), "no connection to PostgreSQL");
        let now = Instant::now();
        let (probe, shared) = self.change(|state, actions| {
            // Before nobody waits for the role any more and it is forgotten.
            let shared = state.is_shared(key);
            state.counters.open_failures += 1;
            state.end(key, Phase::Opening);
            let news = state.take_in(key, failure, now, actions);
            state.forget(key);
            state.balance(now, actions);
            (news, shared)
        });
        if probe {
            self.runtime
                .spawn(probe_until_up(Arc::downgrade(self), key.clone(), shared));
        }
    }

    /// One attempt to find PostgreSQL up; `true` ends the probing.
    async fn probe(self: &Arc<Self>, key: &Key, shared: bool) -> bool {
        match self.connect_as(key, shared).await {
            Err(OpenError::Unreachable(cause)) => {
                let mut state = self.state.lock();
                if state.circuit_breaker.is_open() {
                    state.circuit_breaker.probe_failed(cause, Instant::now());
                }
                return !state.circuit_breaker.is_open();
            }
            Ok(connection) => self.found_up(key, shared, connection),
            // It refused this role or this database, so it is up.
            Err(_) => self.change(|state, _| state.circuit_breaker.close()),
        }
        info!("PostgreSQL is up again");
        true
    }

    /// Keeps the probe's connection when it fits in, and the role is as `shared` as it was.
    fn found_up(self: &Arc<Self>, key: &Key, shared: bool, connection: K::Connection) {
        let now = Instant::now();
        let place = {
            let mut state = self.state.lock();
            state.circuit_breaker.close();
            let alike = state
                .role_mut(key)
                .is_none_or(|role| role.anonymous == shared);
            (alike && state.has_room(key, now)).then(|| {
                let serial = state.count_opening(key);
                if let Some(role) = state.role_mut(key) {
                    role.anonymous = shared;
                }
                serial
            })
        };
        match place {
            Some(serial) => self.opened(key.clone(), serial, connection),
            None => drop(self.runtime.spawn(self.connector.close(connection))),
        }
    }
}

/// Tries to connect, ever less often, until PostgreSQL answers or the pool is gone.
async fn probe_until_up<K: Connector>(pool: std::sync::Weak<Inner<K>>, key: Key, shared: bool) {
    loop {
        let next = pool
            .upgrade()
            .and_then(|pool| pool.state.lock().circuit_breaker.next_probe());
        let Some(next) = next else {
            return;
        };
        sleep_until(next).await;
        match pool.upgrade() {
            Some(pool) if !pool.probe(&key, shared).await => {}
            _ => return,
        }
    }
}

fn source(failure: &OpenError) -> String {
    std::error::Error::source(failure).map_or_else(String::new, ToString::to_string)
}

impl<K: Connector> State<K> {
    /// Draws the conclusions of a failed attempt; answers whether somebody must probe now.
    fn take_in(
        &mut self,
        key: &Key,
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
            | OpenError::Login(..)
            | OpenError::Barred { .. }
            | OpenError::NoDatabase
            | OpenError::Internal(_) => AcquireError::of(failure.clone(), REFUSED),
        };
        if let OpenError::Limited(_) = failure
            && self.wait_within_limit(key, now, actions)
        {
            return false;
        }
        if let OpenError::Barred { .. } = failure {
            // Its open connections must not serve a role that may not log in.
            self.close(&key.database, Some(&key.role), actions);
        }
        self.refuse(key, &refused, actions);
        if !matches!(failure, OpenError::Internal(_)) {
            self.remember_refusal(key, now + REFUSED, refused);
        }
        false
    }

    /// Keeps to the connections that the pool has; the one that failed still counts.
    fn server_is_full(&mut self, cause: &Cause, now: Instant) {
        let held = self.held - 1;
        if self.server_limit.refused(held, cause.clone(), now) {
            warn!(
                held,
                "PostgreSQL has no connection left (max_connections); requests wait for those \
                that the pool holds"
            );
        }
    }

    /// Where the role or its database has a `CONNECTION LIMIT`: whether its requests can wait for
    /// its own connections, or for the place of another role's.
    fn wait_within_limit(&mut self, key: &Key, now: Instant, actions: &mut Vec<Action<K>>) -> bool {
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
            role.paused_until = Some(now + REFUSED);
        }
        may_wait
    }

    /// Whether anonymous callers share the role; one that the pool does not know counts as shared.
    pub(super) fn is_shared(&self, key: &Key) -> bool {
        self.role(key).is_none_or(|role| role.anonymous)
    }

    /// Whether one more connection of the key breaks no bound.
    fn has_room(&self, key: &Key, now: Instant) -> bool {
        let tenant = self.tenants.get(&key.database);
        let limit = |role: &Role<K>| self.settings.for_role(role.is_shared());
        self.held < self.capacity(now)
            && tenant.map_or(0, Tenant::busy) < self.settings.per_tenant()
            && self.role(key).is_none_or(|role| role.held() < limit(role))
    }
}
