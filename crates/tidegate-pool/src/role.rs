//! The connections of one role in one database, and the requests that wait for them.

use std::collections::VecDeque;
use std::time::Duration;

use tidegate_sql::RoleUse;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::acquire_error::AcquireError;
use super::connector::{Connector, PoolKey};
use super::entry::PoolEntry;
use super::pooled_connection::PooledConnection;

/// How long after its last anonymous caller a role still counts as shared.
const ANONYMOUS_FOR: Duration = Duration::from_mins(1);

/// Receives the connection or the error of a waiting request.
pub(super) type Reply<K> = oneshot::Sender<Result<PooledConnection<K>, AcquireError>>;

/// The phase of a connection that is not idle.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Opening,
    CheckedOut,
    Resetting,
    /// Unusable, and the server may still run something for it.
    Leaving,
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
    /// Anonymous callers share the role, so its sessions start with pinned settings.
    pub(super) anonymous: bool,
    /// When an anonymous caller last asked for it.
    pub(super) anonymous_at: Option<Instant>,
    /// Ordered by their last use, the oldest first.
    pub(super) idle: Vec<Box<PoolEntry<K>>>,
    pub(super) opening: usize,
    pub(super) checked_out: usize,
    pub(super) resetting: usize,
    pub(super) leaving: usize,
    pub(super) waiters: VecDeque<Waiter<K>>,
    /// When its latest connection was opened.
    pub(super) logged_in: Option<Instant>,
    /// Until when no connection is opened for it.
    pub(super) paused_until: Option<Instant>,
    pub(super) closed_before: u64,
}

impl<K: Connector> Role<K> {
    pub(super) fn new(key: PoolKey) -> Self {
        Self {
            key,
            anonymous: false,
            anonymous_at: None,
            idle: Vec::new(),
            opening: 0,
            checked_out: 0,
            resetting: 0,
            leaving: 0,
            waiters: VecDeque::new(),
            logged_in: None,
            paused_until: None,
            closed_before: 0,
        }
    }

    pub(super) fn held(&self) -> usize {
        self.idle.len() + self.in_use() + self.leaving
    }

    /// Whether several callers use its connections.
    pub(super) fn is_shared(&self) -> bool {
        self.anonymous || self.key.trusted
    }

    /// Connections that will return or fail without further action.
    pub(super) fn in_use(&self) -> usize {
        self.opening + self.checked_out + self.resetting
    }

    /// Connections that are logged in and can serve requests, now or later.
    fn warm(&self) -> usize {
        self.idle.len() + self.checked_out + self.resetting
    }

    /// Whether closing an idle connection would leave the role without any.
    pub(super) fn has_only_one(&self) -> bool {
        self.warm() + self.opening == 1
    }

    /// Whether it has no connection and none is being opened.
    pub(super) fn is_cold(&self) -> bool {
        self.warm() + self.opening == 0
    }

    /// The total time that its requests have waited since its latest login. Earlier waiting is not
    /// counted, because that login served it.
    fn waited(&self, now: Instant) -> Duration {
        let times = self.waiters.iter().map(|waiter| {
            let since = self
                .logged_in
                .map_or(waiter.since, |at| at.max(waiter.since));
            now - since
        });
        times.sum()
    }

    /// Whether its requests have waited long enough for another login of this `price`, given the
    /// `limit` of the role's connections. The first connection is free. Otherwise each login in
    /// progress must be paid for first and counts as serving one request, like a reset in progress.
    /// No more logins run at a time than the role has connections, so that a burst of requests does
    /// not open a connection for each.
    pub(super) fn deserves_another(&self, price: Duration, limit: usize, now: Instant) -> bool {
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

    /// Takes an idle connection: the one that the same session used last, otherwise the one used
    /// last.
    pub(super) fn take_idle(&mut self, role_use: RoleUse) -> Option<Box<PoolEntry<K>>> {
        let last = self.idle.len().checked_sub(1)?;
        let session = Some(role_use);
        let place = self.idle.iter().rposition(|entry| entry.session == session);
        Some(self.idle.remove(place.unwrap_or(last)))
    }

    /// Whether anonymous callers shared the role and no longer do. While one waits it is still
    /// shared, because the next connection would lack the pinned settings.
    pub(super) fn has_lapsed(&self, now: Instant) -> bool {
        let waits = |waiter: &Waiter<K>| waiter.role_use.is_anonymous();
        self.anonymous
            && self
                .anonymous_at
                .is_none_or(|at| now.duration_since(at) >= ANONYMOUS_FOR)
            && !self.waiters.iter().any(waits)
    }

    pub(super) fn phase(&mut self, phase: Phase) -> &mut usize {
        match phase {
            Phase::Opening => &mut self.opening,
            Phase::CheckedOut => &mut self.checked_out,
            Phase::Resetting => &mut self.resetting,
            Phase::Leaving => &mut self.leaving,
        }
    }
}
