//! The connections of one role in one database, and the requests that wait for them.

use std::collections::VecDeque;
use std::time::Duration;

use tidegate_sql::RoleUse;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::acquire_error::AcquireError;
use super::connector::{Connector, PoolKey};
use super::pooled_connection::{PoolEntry, PooledConnection};

/// The channel on which a waiting request receives its connection or error.
pub(super) type Reply<K> = oneshot::Sender<Result<PooledConnection<K>, AcquireError>>;

/// The phase of a connection that is not idle.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Opening,
    /// A request uses the connection, or its reset takes longer than usual.
    CheckedOut,
    Resetting,
    /// The connection is unusable, and the server may still run a statement of it.
    Closing,
}

/// A waiting request.
pub(super) struct Waiter<K: Connector> {
    pub(super) number: u64,
    pub(super) since: Instant,
    pub(super) role_use: RoleUse,
    pub(super) reply: Reply<K>,
}

/// The connections of a role in a database.
pub(super) struct Role<K: Connector> {
    pub(super) key: PoolKey,
    /// Whether the role's sessions start with fixed settings, which the role cannot change, because
    /// anonymous callers or members share the role.
    pub(super) has_fixed_settings: bool,
    /// The time at which an anonymous caller or a member most recently requested a connection of
    /// the role; `None` if none has.
    pub(super) fixed_settings_requested_at: Option<Instant>,
    /// The idle connections, ordered by their last use, the oldest first.
    pub(super) idle: Vec<Box<PoolEntry<K>>>,
    pub(super) opening: usize,
    pub(super) checked_out: usize,
    pub(super) resetting: usize,
    pub(super) closing: usize,
    pub(super) waiters: VecDeque<Waiter<K>>,
    /// When the role's latest connection was opened; `None` before the first one.
    pub(super) logged_in: Option<Instant>,
    /// The time until which no connection is opened for the role, because a `CONNECTION LIMIT` was
    /// reached; `None` if there is no such delay.
    pub(super) paused_until: Option<Instant>,
    /// Connections with a lower [`PoolEntry::serial`] are closed when they are returned.
    pub(super) closed_before: u64,
}

impl<K: Connector> Role<K> {
    pub(super) fn new(key: PoolKey) -> Self {
        Self {
            key,
            has_fixed_settings: false,
            fixed_settings_requested_at: None,
            idle: Vec::new(),
            opening: 0,
            checked_out: 0,
            resetting: 0,
            closing: 0,
            waiters: VecDeque::new(),
            logged_in: None,
            paused_until: None,
            closed_before: 0,
        }
    }

    pub(super) fn held(&self) -> usize {
        self.idle.len() + self.in_use() + self.closing
    }

    /// Whether several callers share the role's connections.
    pub(super) fn is_shared(&self) -> bool {
        self.has_fixed_settings || self.key.trusted
    }

    /// How many connections are being opened, used or reset. They become free without further
    /// action of the pool.
    pub(super) fn in_use(&self) -> usize {
        self.opening + self.checked_out + self.resetting
    }

    /// How many connections are logged in and can serve requests, either now or after their current
    /// use.
    fn warm(&self) -> usize {
        self.idle.len() + self.checked_out + self.resetting
    }

    /// Whether the role has exactly one connection, including one that is being opened.
    pub(super) fn has_only_one(&self) -> bool {
        self.warm() + self.opening == 1
    }

    /// Whether the role has no connection and none is being opened.
    pub(super) fn is_cold(&self) -> bool {
        self.warm() + self.opening == 0
    }

    /// The sum of the times for which the role's requests have waited since the role's latest
    /// login. Waiting before the latest login is not counted, because it was the reason for that
    /// login.
    fn waited(&self, now: Instant) -> Duration {
        let times = self.waiters.iter().map(|waiter| {
            let since = self
                .logged_in
                .map_or(waiter.since, |at| at.max(waiter.since));
            now - since
        });
        times.sum()
    }

    /// Whether another connection of the role should be opened now. `limit` is the limit on the
    /// role's connections, and `price` the total waiting time that justifies one login.
    ///
    /// The role's first connection is opened as soon as a request waits. For each further
    /// connection there are three conditions:
    ///
    /// - More requests wait than connections are being opened or reset.
    /// - Fewer connections of the role are being opened than are open already. So a burst of
    ///   requests does not open a connection for each request.
    /// - The total waiting time of the requests is at least `price` for each login in progress,
    ///   plus `price` for the new login.
    pub(super) fn needs_login(&self, price: Duration, limit: usize, now: Instant) -> bool {
        if self.held() >= limit || self.paused_until.is_some_and(|until| now < until) {
            return false;
        }
        if self.is_cold() {
            return !self.waiters.is_empty();
        }
        let logins = u32::try_from(self.opening + 1).unwrap_or(u32::MAX);
        self.waiters.len() > self.opening + self.resetting
            && self.opening < self.warm()
            && self.waited(now) >= price.saturating_mul(logins)
    }

    pub(super) fn phase(&mut self, phase: Phase) -> &mut usize {
        match phase {
            Phase::Opening => &mut self.opening,
            Phase::CheckedOut => &mut self.checked_out,
            Phase::Resetting => &mut self.resetting,
            Phase::Closing => &mut self.closing,
        }
    }
}
