//! Counting attempts, with a refund for those that succeed.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::{AttemptKey, AttemptLimit, AttemptOutcome, Clock, Error, Result, Store};

/// The attempts on this node that are counted but not decided yet, by counter.
#[derive(Debug, Default)]
pub(crate) struct PendingAttempts(Mutex<HashMap<AttemptKey, u32>>);

/// The retry delay while other attempts are undecided: they may succeed and be refunded soon.
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

/// Attempts that are counted but not decided yet. Dropping them keeps the count: an aborted attempt
/// counts.
pub(crate) struct CountedAttempts<'a> {
    store: &'a dyn Store,
    clock: &'a dyn Clock,
    pending: &'a PendingAttempts,
    counted: Vec<AttemptKey>,
}

impl<'a> CountedAttempts<'a> {
    pub(crate) fn new(
        store: &'a dyn Store,
        clock: &'a dyn Clock,
        pending: &'a PendingAttempts,
    ) -> Self {
        Self {
            store,
            clock,
            pending,
            counted: Vec::new(),
        }
    }

    /// Counts an attempt; [`Error::TooManyAttempts`] if it must not proceed.
    pub(crate) async fn count(&mut self, key: AttemptKey, limit: &AttemptLimit) -> Result<()> {
        let now = self.clock.now();
        match self.store.count_attempt(&key, limit, now).await? {
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

    /// Refunds all attempts: they succeeded, or nothing was tried.
    pub(crate) async fn refund(self) -> Result<()> {
        for key in &self.counted {
            self.store.refund_attempt(key).await?;
        }
        Ok(())
    }
}

impl Drop for CountedAttempts<'_> {
    fn drop(&mut self) {
        for key in &self.counted {
            self.pending.leave(key);
        }
    }
}
