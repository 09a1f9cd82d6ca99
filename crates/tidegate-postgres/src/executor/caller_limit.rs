//! Limits how many connections of an authenticator one user occupies at a time.
//!
//! All users of an authenticator share its connections. Without the limit, slow statements of one
//! user could occupy all of them, and requests of the others would time out. Requests beyond the
//! limit wait for others of the same user.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tidegate_pool::Settings;
use tidegate_sql::{Error, Result, RoleName};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

/// The retry delay that a client is told if its user occupies all the connections that it may.
const RETRY: Duration = Duration::from_secs(1);

/// The users with requests, and the connections that each may still occupy.
pub(super) struct CallerLimit {
    /// The most connections of one user.
    connections: AtomicUsize,
    /// The most waiting requests of one user.
    queue: usize,
    /// The longest wait of a request.
    wait: Duration,
    callers: Mutex<HashMap<RoleName, CallerEntry>>,
}

struct CallerEntry {
    free: Arc<Semaphore>,
    /// How many requests run or wait. The entry is removed when there are none.
    requests: usize,
}

/// The right to occupy one connection, until it is dropped.
pub(super) struct CallerPermit {
    limit: Arc<CallerLimit>,
    role: RoleName,
    /// `None` while the request waits.
    permit: Option<OwnedSemaphorePermit>,
}

impl CallerLimit {
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            connections: AtomicUsize::new(settings.of_caller()),
            queue: settings.queue / 2,
            wait: settings.wait,
            callers: Mutex::default(),
        }
    }

    /// Adapts the limit to changed settings, for users without requests.
    pub(super) fn resize(&self, settings: &Settings) {
        self.connections
            .store(settings.of_caller(), Ordering::Relaxed);
    }

    /// Waits until the user occupies fewer connections than it may.
    ///
    /// # Errors
    ///
    /// [`Error::Deadline`]; [`Error::PoolTimeout`] if the wait is too long, or too many requests of
    /// the user wait already.
    pub(super) async fn acquire(
        self: &Arc<Self>,
        role: &RoleName,
        deadline: Option<Instant>,
    ) -> Result<CallerPermit> {
        let (free, mut permit) = self.enter(role)?;
        if let Ok(taken) = free.clone().try_acquire_owned() {
            permit.permit = Some(taken);
            return Ok(permit);
        }
        let until = Instant::now() + self.wait;
        let hurries = deadline.is_some_and(|deadline| deadline < until);
        let until = deadline.filter(|_| hurries).unwrap_or(until);
        match timeout_at(until, free.acquire_owned()).await {
            Ok(taken) => permit.permit = Some(taken.map_err(Error::internal)?),
            Err(_) if hurries => return Err(Error::Deadline),
            Err(_) => return Err(exhausted()),
        }
        Ok(permit)
    }

    /// Counts a request of a user until the permit is dropped.
    fn enter(self: &Arc<Self>, role: &RoleName) -> Result<(Arc<Semaphore>, CallerPermit)> {
        let connections = self.connections.load(Ordering::Relaxed);
        let mut callers = self.callers.lock();
        let caller = callers.entry(role.clone()).or_insert_with(|| CallerEntry {
            free: Arc::new(Semaphore::new(connections)),
            requests: 0,
        });
        if caller.requests >= connections + self.queue {
            return Err(exhausted());
        }
        caller.requests += 1;
        let permit = CallerPermit {
            limit: self.clone(),
            role: role.clone(),
            permit: None,
        };
        Ok((caller.free.clone(), permit))
    }
}

impl Drop for CallerPermit {
    fn drop(&mut self) {
        drop(self.permit.take());
        let mut callers = self.limit.callers.lock();
        if let Some(caller) = callers.get_mut(&self.role) {
            caller.requests -= 1;
            if caller.requests == 0 {
                callers.remove(&self.role);
            }
        }
    }
}

fn exhausted() -> Error {
    Error::PoolTimeout { retry_after: RETRY }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn one_user_waits_for_itself_only_and_leaves_nothing_behind() {
        let settings = Settings {
            per_role: 2,
            queue: 4,
            ..Settings::default()
        };
        let limit = Arc::new(CallerLimit::new(&settings));
        let [ann, bob] = ["t/ann", "t/bob"].map(RoleName::new);
        let first = limit.acquire(&ann, None).await.unwrap();
        let second = limit.acquire(&ann, None).await.unwrap();
        let late = limit.acquire(&ann, None).await;
        assert!(matches!(late, Err(Error::PoolTimeout { .. })));
        let soon = Some(Instant::now() + Duration::from_millis(10));
        let late = limit.acquire(&ann, soon).await;
        assert!(matches!(late, Err(Error::Deadline)));
        drop(limit.acquire(&bob, None).await.unwrap());
        let (third, freed) = tokio::join!(limit.acquire(&ann, None), async {
            tokio::task::yield_now().await;
            drop(first);
        });
        let () = freed;
        drop((second, third.unwrap()));
        assert!(limit.callers.lock().is_empty());
    }

    #[tokio::test]
    async fn a_user_with_too_many_requests_is_refused_at_once() {
        let settings = Settings {
            per_role: 1,
            queue: 2,
            ..Settings::default()
        };
        let limit = Arc::new(CallerLimit::new(&settings));
        let ann = RoleName::new("t/ann");
        let (_, running) = limit.enter(&ann).unwrap();
        let (_, waiting) = limit.enter(&ann).unwrap();
        assert!(limit.enter(&ann).is_err());
        drop((running, waiting));
        assert!(limit.callers.lock().is_empty());
    }
}
