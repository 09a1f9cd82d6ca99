//! What the pool tells about itself.

use std::time::Duration;

use super::connector::{Connector, Key};
use super::state::State;

/// The upper bounds of [`Counters::waits`], in milliseconds; the last bucket has none.
pub const WAIT_BOUNDS: [u64; 8] = [1, 5, 25, 100, 250, 500, 1_000, 2_500];

/// The pool at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolStats {
    /// Connections at most.
    pub capacity: usize,
    /// Connections counted now, in every phase.
    pub held: usize,
    /// Requests that wait.
    pub waiting: usize,
    /// Whether PostgreSQL could be reached when that was last tried.
    pub reachable: bool,
    /// The roles that hold or await connections, in no order.
    pub roles: Vec<RoleStats>,
    /// What happened since the start.
    pub counters: Counters,
}

/// The connections of one role in one database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoleStats {
    /// The database and the role.
    pub key: Key,
    /// Connections that nobody uses.
    pub idle: usize,
    /// Connections that requests use.
    pub lent: usize,
    /// Connections being opened.
    pub opening: usize,
    /// Connections being reset.
    pub resetting: usize,
    /// Connections whose statement has not stopped, though its backend is to be terminated.
    pub leaving: usize,
    /// Requests that wait.
    pub waiting: usize,
}

/// Events since the start; they only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Idle connections lent at once.
    pub reused: u64,
    /// Connections opened.
    pub opened: u64,
    /// Attempts to open one that failed.
    pub open_failures: u64,
    /// Connections closed, for whatever reason, failed attempts included.
    pub closed: u64,
    /// Of those, idle ones that made room for another role.
    pub evicted: u64,
    /// Resets begun.
    pub resets: u64,
    /// Resets that failed, which closed the connection.
    pub reset_failures: u64,
    /// Requests that waited as long as they may.
    pub timeouts: u64,
    /// Requests refused because the queue was full.
    pub rejected: u64,
    /// Requests that waited and got a connection, by how long: within each of
    /// [`WAIT_BOUNDS`], and longer.
    pub waits: [u64; 9],
    /// Sum of those waits in microseconds.
    pub waited_micros: u64,
}

impl PoolStats {
    /// Connections for which somebody or PostgreSQL still works: lent, being reset, or good for
    /// nothing any more while their last statement runs on.
    pub fn busy(&self) -> usize {
        let of = |role: &RoleStats| role.lent + role.resetting + role.leaving;
        self.roles.iter().map(of).sum()
    }
}

impl Counters {
    pub(super) fn waited(&mut self, time: Duration) {
        let millis = time.as_millis();
        let bucket = WAIT_BOUNDS
            .iter()
            .position(|bound| millis < u128::from(*bound));
        self.waits[bucket.unwrap_or(WAIT_BOUNDS.len())] += 1;
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.waited_micros = self.waited_micros.saturating_add(micros);
    }
}

impl<K: Connector> State<K> {
    pub(super) fn stats(&self) -> PoolStats {
        let roles = self.tenants.values().flat_map(|tenant| {
            tenant.roles.values().map(|role| RoleStats {
                key: role.key.clone(),
                idle: role.idle.len(),
                lent: role.lent,
                opening: role.opening,
                resetting: role.resetting,
                leaving: role.leaving,
                waiting: role.waiters.len(),
            })
        });
        PoolStats {
            capacity: self.settings.capacity,
            held: self.held,
            waiting: self.waiting,
            reachable: !self.circuit_breaker.is_open(),
            roles: roles.collect(),
            counters: self.counters,
        }
    }
}
