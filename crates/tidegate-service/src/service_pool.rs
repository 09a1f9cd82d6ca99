//! A small pool of service connections to one database.

use std::sync::Arc;
use std::time::Duration;

use deadpool::Runtime;
use deadpool::managed::{Pool, PoolError, TimeoutType};
use parking_lot::Mutex;
use tidegate_sql::{DatabaseName, Error, Result};
use tidegate_wire::backoff::{Backoff, Jitter};
use tidegate_wire::{Config, ConnectError, ConnectFault, is_lock_table_error};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};

use super::service_manager::ServiceManager;
use super::session::ServiceSession;
use super::tls::Tls;

/// How long a statement of the service waits for a connection.
pub(super) const WAIT: Duration = Duration::from_secs(5);
/// The `retry_after` of an error, unless the back-off of the circuit breaker determines it.
pub(super) const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Refuses new service connections for a time after PostgreSQL could not be reached or had no free
/// connection. The time grows with each failure. The two values are the back-off, and the instant
/// at which connections are allowed again; `None` if they are not refused.
pub(super) struct ServiceCircuitBreaker(Mutex<(Backoff, Option<Instant>)>);

impl ServiceCircuitBreaker {
    pub(super) fn new(jitter: Jitter) -> Self {
        Self(Mutex::new((Backoff::new(jitter), None)))
    }

    /// Fails while new connections are refused.
    fn check(&self) -> Result<()> {
        let until = self.0.lock().1;
        let rest = until.map(|until| until.saturating_duration_since(Instant::now()));
        match rest {
            Some(retry_after) if !retry_after.is_zero() => Err(Error::Unavailable {
                retry_after,
                source: None,
            }),
            _ => Ok(()),
        }
    }

    fn failed(&self) -> Duration {
        let (backoff, until) = &mut *self.0.lock();
        let now = Instant::now();
        match until {
            // A concurrent attempt has failed and has already set the delay.
            Some(until) if *until > now => *until - now,
            _ => {
                let delay = backoff.fail();
                *until = Some(now + delay);
                delay
            }
        }
    }

    pub(super) fn succeeded(&self) {
        let (backoff, until) = &mut *self.0.lock();
        if until.take().is_some() {
            backoff.succeed();
        }
    }
}

/// A pool of connections to one database. Clones share the connections.
#[derive(Clone)]
pub(super) struct ServicePool {
    pool: Pool<ServiceManager>,
    tls: Tls,
    circuit_breaker: Arc<ServiceCircuitBreaker>,
    /// One permit for each connection that the pool may have.
    permits: Arc<Semaphore>,
}

impl ServicePool {
    pub(super) fn new(
        config: &Arc<Config>,
        database: &DatabaseName,
        options: &str,
        size: usize,
        circuit_breaker: Arc<ServiceCircuitBreaker>,
    ) -> Result<Self, ConnectError> {
        let tls = Tls::new(config)?;
        let manager = ServiceManager::new(config, database, options);
        let pool = Pool::builder(manager)
            .max_size(size)
            .runtime(Runtime::Tokio1)
            .wait_timeout(Some(WAIT))
            .build()
            .map_err(|error| ConnectError::Protocol(error.to_string()))?;
        Ok(Self {
            pool,
            tls,
            circuit_breaker,
            permits: Arc::new(Semaphore::new(size)),
        })
    }

    /// Waits for a permit to use one of the pool's connections.
    pub(super) async fn permit(&self) -> Result<OwnedSemaphorePermit> {
        let permit = timeout(WAIT, self.permits.clone().acquire_owned()).await;
        let timed_out = Error::PoolTimeout {
            retry_after: RETRY_AFTER,
        };
        permit.map_err(|_| timed_out)?.map_err(Error::internal)
    }

    /// Checks out an idle connection, or opens one.
    pub(super) async fn session(&self) -> Result<ServiceSession> {
        if self.pool.status().available == 0 {
            self.circuit_breaker.check()?;
        }
        match self.pool.get().await {
            Ok(object) => {
                self.circuit_breaker.succeeded();
                Ok(ServiceSession::new(object, self.tls.clone()))
            }
            Err(PoolError::Timeout(TimeoutType::Wait)) => Err(Error::PoolTimeout {
                retry_after: RETRY_AFTER,
            }),
            Err(PoolError::Backend(error)) => Err(self.refused(error)),
            Err(error) => {
                Err(self.refused(ConnectError::Unreachable(std::io::Error::other(error))))
            }
        }
    }

    fn refused(&self, error: ConnectError) -> Error {
        // PostgreSQL is up, but its lock table is full. The circuit breaker does not count this as
        // a failure, because the guard of the lock table makes room before the next attempt.
        if matches!(&error, ConnectError::Refused(reported) if is_lock_table_error(reported)) {
            return error.into_sql(RETRY_AFTER);
        }
        match error.fault() {
            ConnectFault::Unavailable | ConnectFault::Full => {
                error.into_sql(self.circuit_breaker.failed())
            }
            _ => error.into_sql(RETRY_AFTER),
        }
    }

    /// While there are more than `size` connections, closes the connections that have been idle
    /// longest. Connections in use stay open. Returns how many connections above `size` are left.
    pub(super) fn trim(&self, size: usize) -> usize {
        loop {
            match self.occupancy() {
                (open, Some(idle)) if open > size => drop(self.expire(idle)),
                (open, _) => return open.saturating_sub(size),
            }
        }
    }

    /// Closes the idle connections immediately, and other connections when they are returned.
    pub(super) fn close(&self) {
        self.pool.close();
    }

    /// The number of open connections, and the longest time for which one of them has been idle;
    /// `None` if none is idle.
    pub(super) fn occupancy(&self) -> (usize, Option<Duration>) {
        let mut longest = None;
        self.pool.retain(|_, metrics| {
            longest = longest.max(Some(metrics.last_used()));
            true
        });
        (self.pool.status().size, longest)
    }

    /// Closes connections that have been idle for at least `time`. Returns whether any connection
    /// is left, idle or in use.
    pub(super) fn expire(&self, time: Duration) -> bool {
        self.pool.retain(|_, metrics| metrics.last_used() < time);
        self.pool.status().size > 0
    }
}
