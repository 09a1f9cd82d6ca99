//! Resets the sessions of connections that requests return, and closes unusable connections.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout};
use tracing::{info, warn};

use super::Inner;
use super::connector::{Connector, Recycle};
use super::pooled_connection::PoolEntry;
use super::role::Phase;

/// If a reset takes longer than this time, its connection counts as checked out.
const QUICK_RESET: Duration = Duration::from_millis(20);
/// If the backend of a closed connection takes longer than this time to end, its end is logged.
const SLOW_END: Duration = Duration::from_secs(2);

impl<K: Connector> Inner<K> {
    /// Closes an unusable connection. While PostgreSQL still runs a statement of the connection,
    /// the connection counts against the limit of its role, so that the number of statements that
    /// cannot be interrupted stays limited.
    pub(super) fn discard_busy(self: &Arc<Self>, entry: Box<PoolEntry<K>>, phase: Phase) {
        if !self.connector.may_run(&entry.connection) {
            let now = Instant::now();
            return self.change(|state, actions| {
                state.leave_phase(&entry.key, phase);
                state.discard(entry, now, actions);
            });
        }
        let now = Instant::now();
        self.change(|state, actions| {
            state.shift(&entry.key, phase, Phase::Closing);
            state.balance(now, actions);
        });
        self.runtime.spawn(self.clone().close_and_wait(entry));
    }

    async fn close_and_wait(self: Arc<Self>, entry: Box<PoolEntry<K>>) {
        let PoolEntry {
            connection, key, ..
        } = *entry;
        let began = Instant::now();
        self.connector.close_and_wait(connection).await;
        let now = Instant::now();
        if now.duration_since(began) > SLOW_END {
            info!(%key, after = ?now.duration_since(began), "statement that ignored a cancel request has ended");
        }
        self.change(|state, actions| {
            state.leave_phase(&key, Phase::Closing);
            state.uncount(&key);
            state.balance(now, actions);
        });
    }

    pub(super) fn begin_reset(self: &Arc<Self>, entry: Box<PoolEntry<K>>) {
        {
            let mut state = self.state.lock();
            state.counters.resets += 1;
            state.shift(&entry.key, Phase::CheckedOut, Phase::Resetting);
        }
        self.runtime.spawn(self.clone().reset(entry));
    }

    async fn reset(self: Arc<Self>, mut entry: Box<PoolEntry<K>>) {
        let (done, phase) = self.reset_in_time(&mut entry).await;
        // The connection is checked again, because it may have broken after its reset succeeded.
        let recycle = self.connector.recycle(&mut entry.connection);
        let certain = done && recycle == Recycle::Reuse;
        if certain {
            let now = Instant::now();
            return self.change(|state, actions| state.put_back(entry, phase, now, actions));
        }
        warn!(key = %entry.key, "a session could not be reset; its connection is closed");
        self.state.lock().counters.reset_failures += 1;
        self.discard_busy(entry, phase);
    }

    /// Resets a session. Returns whether the reset succeeded, and the phase in which the connection
    /// is counted. If the reset takes longer than usual, the connection counts as checked out, so
    /// that waiting requests no longer rely on it.
    async fn reset_in_time(self: &Arc<Self>, entry: &mut PoolEntry<K>) -> (bool, Phase) {
        let mut reset = self.connector.reset(&mut entry.connection);
        if let Ok(outcome) = timeout(QUICK_RESET, &mut reset).await {
            return (outcome.is_ok(), Phase::Resetting);
        }
        let now = Instant::now();
        self.change(|state, actions| {
            state.shift(&entry.key, Phase::Resetting, Phase::CheckedOut);
            state.balance(now, actions);
        });
        let outcome = timeout(self.limits.reset, reset).await;
        (matches!(outcome, Ok(Ok(()))), Phase::CheckedOut)
    }
}
