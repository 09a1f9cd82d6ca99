//! What the pool tells about itself.

use super::connector::{Connector, Key};
use super::counters::Counters;
use super::state::State;

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
    /// Connections that are not in use.
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

impl PoolStats {
    /// Connections that a request or PostgreSQL still uses: checked out, being reset, or to be closed
    /// while their last statement still runs.
    pub fn busy(&self) -> usize {
        let of = |role: &RoleStats| role.lent + role.resetting + role.leaving;
        self.roles.iter().map(of).sum()
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
