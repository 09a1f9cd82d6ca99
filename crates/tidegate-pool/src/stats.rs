//! Statistics of the pool.

use super::connector::{Connector, PoolKey};
use super::counters::Counters;
use super::state::State;

/// The state of the pool at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolStats {
    /// The most connections.
    pub capacity: usize,
    /// Connections counted now, in every phase.
    pub held: usize,
    /// Waiting requests.
    pub waiting: usize,
    /// Whether PostgreSQL was reachable at the last attempt.
    pub reachable: bool,
    /// The roles with connections or waiting requests, in no particular order.
    pub roles: Vec<RoleStats>,
    /// Counters since the start.
    pub counters: Counters,
}

/// The connections of one role in one database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoleStats {
    /// The database and the role.
    pub key: PoolKey,
    /// Idle connections.
    pub idle: usize,
    /// Connections that are checked out.
    pub checked_out: usize,
    /// Connections being opened.
    pub opening: usize,
    /// Connections being reset.
    pub resetting: usize,
    /// Connections whose statement has not stopped, although its backend is to be terminated.
    pub leaving: usize,
    /// Waiting requests.
    pub waiting: usize,
}

impl PoolStats {
    /// Connections that a request or PostgreSQL still uses: checked out, being reset, or waiting
    /// for their last statement to end.
    pub fn busy(&self) -> usize {
        let of = |role: &RoleStats| role.checked_out + role.resetting + role.leaving;
        self.roles.iter().map(of).sum()
    }
}

impl<K: Connector> State<K> {
    pub(super) fn stats(&self) -> PoolStats {
        let roles = self.tenants.values().flat_map(|tenant| {
            tenant.roles.values().map(|role| RoleStats {
                key: role.key.clone(),
                idle: role.idle.len(),
                checked_out: role.checked_out,
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
