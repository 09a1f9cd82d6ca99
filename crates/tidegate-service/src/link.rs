//! A small pool of the service's connections to one database.

use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::{Manager, ManagerConfig, Pool, PoolError, RecyclingMethod, Runtime};
use parking_lot::Mutex;
use tidegate_sql::{DatabaseName, Error, Result};
use tidegate_wire::backoff::{Backoff, Jitter};
use tidegate_wire::{Config, ConnectError, ConnectFault, says_lock_table_full};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};

use super::connect::settings;
use super::refusal;
use super::session::ServiceSession;
use super::tls::Tls;

/// How long work of the service waits for one of its connections.
pub(super) const WAIT: Duration = Duration::from_secs(5);
/// When work that found no free connection may come again.
pub(super) const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Whether PostgreSQL can be reached, as far as the service's connections know.
pub(super) struct Reach(Mutex<(Backoff, Option<Instant>)>);

impl Reach {
    pub(super) fn new(jitter: Jitter) -> Self {
        Self(Mutex::new((Backoff::new(jitter), None)))
    }

    /// Refuses while PostgreSQL was found down just now.
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
            // Another attempt of the same round.
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

/// A pool to one database; clones share it.
#[derive(Clone)]
pub(super) struct Link {
    pool: Pool,
    tls: Tls,
    reach: Arc<Reach>,
    turns: Arc<Semaphore>,
}

impl Link {
    pub(super) fn new(
        config: &Config,
        database: &DatabaseName,
        options: &str,
        size: usize,
        reach: Arc<Reach>,
    ) -> Result<Self, ConnectError> {
        let tls = Tls::new(config)?;
        let recycling = ManagerConfig {
            recycling_method: RecyclingMethod::Fast,
        };
        let settings = settings(config, database, options);
        let manager = Manager::from_config(settings, tls.clone(), recycling);
        let pool = Pool::builder(manager)
            .max_size(size)
            .runtime(Runtime::Tokio1)
            .wait_timeout(Some(WAIT))
            .create_timeout(Some(config.connect_timeout))
            .build()
            .map_err(|error| ConnectError::Protocol(error.to_string()))?;
        Ok(Self {
            pool,
            tls,
            reach,
            turns: Arc::new(Semaphore::new(size)),
        })
    }

    /// A permit to use one of the connections, as soon as there is one.
    pub(super) async fn turn(&self) -> Result<OwnedSemaphorePermit> {
        let turn = timeout(WAIT, self.turns.clone().acquire_owned()).await;
        let timed_out = Error::PoolTimeout {
            retry_after: RETRY_AFTER,
        };
        turn.map_err(|_| timed_out)?.map_err(Error::internal)
    }

    /// A connection on which nothing runs.
    pub(super) async fn session(&self) -> Result<ServiceSession> {
        if self.pool.status().available == 0 {
            self.reach.check()?;
        }
        match self.pool.get().await {
            Ok(object) => {
                self.reach.succeeded();
                Ok(ServiceSession::new(object, self.tls.clone()))
            }
            Err(PoolError::Timeout(deadpool_postgres::TimeoutType::Wait)) => {
                Err(Error::PoolTimeout {
                    retry_after: RETRY_AFTER,
                })
            }
            Err(PoolError::Backend(error)) => Err(self.refused(refusal::of_connection(&error))),
            Err(error) => {
                Err(self.refused(ConnectError::Unreachable(std::io::Error::other(error))))
            }
        }
    }

    fn refused(&self, error: ConnectError) -> Error {
        // PostgreSQL is there; room is made for the next attempt.
        if matches!(&error, ConnectError::Refused(said) if says_lock_table_full(said)) {
            return error.into_sql(RETRY_AFTER);
        }
        match error.fault() {
            ConnectFault::Away | ConnectFault::Full => error.into_sql(self.reach.failed()),
            _ => error.into_sql(RETRY_AFTER),
        }
    }

    /// Closes the idle connections; those in use follow.
    pub(super) fn close(&self) {
        self.pool.close();
    }

    /// How many connections are open, and for how long one of them has been idle at most.
    pub(super) fn occupancy(&self) -> (usize, Option<Duration>) {
        let mut longest = None;
        self.pool.retain(|_, metrics| {
            longest = longest.max(Some(metrics.last_used()));
            true
        });
        (self.pool.status().size, longest)
    }

    /// Closes connections that have been idle for longer than `time`; answers whether any is left.
    pub(super) fn expire(&self, time: Duration) -> bool {
        self.pool.retain(|_, metrics| metrics.last_used() < time);
        self.pool.status().size > 0
    }
}
