//! The connections of one role in one database, and the requests that wait for them.

use std::collections::VecDeque;
use std::time::Duration;

use tidegate_sql::RoleUse;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::acquire_error::AcquireError;
use super::connector::{Connector, Key};
use super::entry::Entry;
use super::lease::Lease;

/// How long after the last anonymous caller a role counts as one user's again.
const ANONYMOUS_FOR: Duration = Duration::from_mins(1);

/// Where the answer for a waiting request goes.
pub(super) type Reply<K> = oneshot::Sender<Result<Lease<K>, AcquireError>>;

/// What a connection that is not idle is doing.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Opening,
    Lent,
    Resetting,
    /// To be closed, while the server still works for it.
    Leaving,
}

/// A request that waits.
pub(super) struct Waiter<K: Connector> {
    pub(super) number: u64,
    pub(super) since: Instant,
    pub(super) role_use: RoleUse,
    pub(super) reply: Reply<K>,
}

/// The connections of a role in a database.
pub(super) struct Role<K: Connector> {
    pub(super) key: Key,
    /// Anonymous callers share it, so its sessions start with pinned settings.
    pub(super) anonymous: bool,
    /// When an anonymous caller asked for it last.
    pub(super) anonymous_at: Option<Instant>,
    /// The least recently used first.
    pub(super) idle: Vec<Box<Entry<K::Connection>>>,
    pub(super) opening: usize,
    pub(super) lent: usize,
    pub(super) resetting: usize,
    pub(super) leaving: usize,
    pub(super) waiters: VecDeque<Waiter<K>>,
    /// When it got its latest connection.
    pub(super) logged_in: Option<Instant>,
    /// Until when no connection is opened for it.
    pub(super) paused_until: Option<Instant>,
    pub(super) closed_before: u64,
}

impl<K: Connector> Role<K> {
    pub(super) fn new(key: Key) -> Self {
        Self {
            key,
            anonymous: false,
            anonymous_at: None,
            idle: Vec::new(),
            opening: 0,
            lent: 0,
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

    /// Connections that come back or fail by themselves.
    pub(super) fn in_use(&self) -> usize {
        self.opening + self.lent + self.resetting
    }

    /// Connections that have logged in and can serve requests, now or later.
    fn warm(&self) -> usize {
        self.idle.len() + self.lent + self.resetting
    }

    /// Whether closing an idle connection would leave the role without any.
    pub(super) fn has_only_one(&self) -> bool {
        self.warm() + self.opening == 1
    }

    /// Whether it has no connection and none is being opened.
    pub(super) fn is_cold(&self) -> bool {
        self.warm() + self.opening == 0
    }

    /// The sum of the times for which its requests have waited since its latest login: what they
    /// waited for that one says nothing about the next.
    fn waited(&self, now: Instant) -> Duration {
        let times = self.waiters.iter().map(|waiter| {
            let since = self
                .logged_in
                .map_or(waiter.since, |at| at.max(waiter.since));
            now - since
        });
        times.sum()
    }

    /// Whether its requests have waited long enough to pay for a login of this `price`, of the
    /// `limit` connections that the role may have. The first connection is free. Otherwise each
    /// login under way is paid for first, and counts for one request, as a reset under way does;
    /// and no more logins run at a time than the role has connections, so that a burst of a few
    /// requests behind one login does not open one connection for each.
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

    /// Takes an idle connection: the one used last by the same session, else the one used last.
    pub(super) fn take_idle(&mut self, role_use: RoleUse) -> Option<Box<Entry<K::Connection>>> {
        let last = self.idle.len().checked_sub(1)?;
        let session = Some(role_use);
        let place = self.idle.iter().rposition(|entry| entry.session == session);
        Some(self.idle.remove(place.unwrap_or(last)))
    }

    /// Whether the role was shared by anonymous callers and no longer is, as far as can be told.
    /// None of them may wait for it: the next connection will lack their pinned settings.
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
            Phase::Lent => &mut self.lent,
            Phase::Resetting => &mut self.resetting,
            Phase::Leaving => &mut self.leaving,
        }
    }
}
