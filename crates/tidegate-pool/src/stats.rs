//! Statistics of the pool.

use super::connector::{Connector, PoolKey};
use super::counters::Counters;
use super::state::State;

/// The state of the pool at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolStats {
    /// The configured limit on connections.
    pub capacity: usize,
    /// How many connections the pool holds, in all phases together.
    pub held: usize,
    /// How many requests wait.
    pub waiting: usize,
    /// Whether PostgreSQL was reachable at the most recent attempt.
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
    /// How many connections are idle.
    pub idle: usize,
    /// How many connections are checked out.
    pub checked_out: usize,
    /// How many connections are being opened.
    pub opening: usize,
    /// How many connections are being reset.
    pub resetting: usize,
    /// How many connections are unusable but may still run a statement.
    pub closing: usize,
    /// How many requests wait.
    pub waiting: usize,
}

impl PoolStats {
    /// How many connections are checked out, being reset, or being closed while a statement may
    /// still run on them.
    pub fn busy(&self) -> usize {
        let of = |role: &RoleStats| role.checked_out + role.resetting + role.closing;
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
                closing: role.closing,
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
