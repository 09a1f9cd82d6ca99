//! What becomes of a connection that a request gives back.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout};
use tracing::{info, warn};

use super::Inner;
use super::connector::{Condition, Connector};
use super::entry::Entry;
use super::role::Phase;

/// How long a reset takes when nothing is in its way.
const QUICK_RESET: Duration = Duration::from_millis(20);
/// The end of a terminated backend is logged when it took longer.
const STUBBORN: Duration = Duration::from_secs(2);

impl<K: Connector> Inner<K> {
    pub(super) fn give_back(
        self: &Arc<Self>,
        entry: Box<Entry<K::Connection>>,
        condition: Condition,
    ) {
        if condition == Condition::ResetDue {
            return self.begin_reset(entry);
        }
        let now = Instant::now();
        if condition == Condition::Ready {
            return self.change(|state, actions| state.put_back(entry, Phase::Lent, now, actions));
        }
        self.discard_busy(entry, Phase::Lent);
    }

    /// Closes a connection that cannot be used again. While PostgreSQL still works for it, it
    /// counts among those of its role: nothing else would bound how many statements run that
    /// cannot be interrupted.
    fn discard_busy(self: &Arc<Self>, entry: Box<Entry<K::Connection>>, phase: Phase) {
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
        self.runtime.spawn(self.clone().close_and_wait(entry));
    }

    async fn close_and_wait(self: Arc<Self>, entry: Box<Entry<K::Connection>>) {
        let Entry {
            connection, key, ..
        } = *entry;
        let began = Instant::now();
        self.connector.see_off(connection).await;
        let now = Instant::now();
        if now.duration_since(began) > STUBBORN {
            info!(%key, after = ?now.duration_since(began), "statement that ignored a cancel request has ended");
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
            return self.change(|state, actions| state.put_back(entry, phase, now, actions));
        }
        warn!(key = %entry.key, "a session could not be reset; its connection is closed");
        self.state.lock().counters.reset_failures += 1;
        self.discard_busy(entry, phase);
    }

    /// Resets a session. One that takes longer than usual counts as lent from then on, so that
    /// waiting requests no longer rely on it.
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
}
