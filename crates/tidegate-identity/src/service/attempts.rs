//! Counts attempts, and refunds successful attempts.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::{AttemptKey, AttemptLimit, AttemptOutcome, Error, Ports, Result};

/// For each counter, the number of attempts that this node has counted and whose result is not
/// known yet.
#[derive(Debug, Default)]
pub(super) struct PendingAttempts(Mutex<HashMap<AttemptKey, u32>>);

/// The maximum wait that a refused attempt reports while other attempts of the same counter are
/// pending. It is short, because a pending attempt is refunded if it succeeds.
const PENDING_RETRY: Duration = Duration::from_secs(1);

impl PendingAttempts {
    fn counts(&self) -> MutexGuard<'_, HashMap<AttemptKey, u32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(&self, key: &AttemptKey) {
        *self.counts().entry(key.clone()).or_default() += 1;
    }

    fn leave(&self, key: &AttemptKey) {
        let mut counts = self.counts();
        match counts.get_mut(key) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(counts.remove(key)),
        }
    }

    fn has(&self, key: &AttemptKey) -> bool {
        self.counts().contains_key(key)
    }
}

/// The attempts that one request has counted. Only [`refund`](Self::refund) refunds them. Dropping
/// this value refunds nothing, so an aborted attempt counts as a failed attempt.
pub struct CountedAttempts<'a> {
    ports: &'a Ports,
    pending: &'a PendingAttempts,
    counted: Vec<AttemptKey>,
}

impl<'a> CountedAttempts<'a> {
    pub(super) fn new(ports: &'a Ports, pending: &'a PendingAttempts) -> Self {
        Self {
            ports,
            pending,
            counted: Vec::new(),
        }
    }

    /// Counts an attempt; [`Error::TooManyAttempts`] if the attempt must not proceed.
    pub async fn count(&mut self, key: AttemptKey, limit: &AttemptLimit) -> Result<()> {
        let now = self.ports.clock.now();
        match self.ports.store.count_attempt(&key, limit, now).await? {
            AttemptOutcome::Allowed => {
                self.pending.enter(&key);
                self.counted.push(key);
                Ok(())
            }
            AttemptOutcome::Refused { until } => {
                let wait = until.since(now);
                let soon = self.pending.has(&key);
                Err(Error::TooManyAttempts {
                    retry_after: if soon { wait.min(PENDING_RETRY) } else { wait },
                })
            }
        }
    }

    /// Refunds all attempts. Callers do so if the attempts succeeded or no secret was checked.
    pub async fn refund(self) -> Result<()> {
        for key in &self.counted {
            self.ports.store.refund_attempt(key).await?;
        }
        Ok(())
    }
}

impl fmt::Debug for CountedAttempts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CountedAttempts")
            .field(&self.counted)
            .finish()
    }
}

impl Drop for CountedAttempts<'_> {
    fn drop(&mut self) {
        for key in &self.counted {
            self.pending.leave(key);
        }
    }
}
