//! How many connections a pool may hold, for whom and for how long.

use std::time::Duration;

/// The bounds of a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Connections at most, of all roles together, those being opened or reset included.
    pub capacity: usize,
    /// Connections at most of a role that one user has. A role that anonymous callers share gets a
    /// quarter of `capacity`, a database half of it.
    pub per_role: usize,
    /// Requests that may wait at most; of one database half as many.
    pub queue: usize,
    /// How long a request waits at most.
    pub wait: Duration,
    /// How long a connection serves the waiting requests of its role, before it is given up for
    /// another database that waits: without it an overloaded pool would do nothing but log in.
    pub turn: Duration,
    /// How long a connection may be idle.
    pub idle: Duration,
    /// How long a connection may live.
    pub life: Duration,
    /// How long opening a connection may take.
    pub open: Duration,
    /// How long a reset may take.
    pub reset: Duration,
    /// Whether the quick reads of a session may share a connection while many run at once.
    pub share: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            capacity: 77,
            per_role: 8,
            queue: 1_000,
            wait: Duration::from_secs(5),
            turn: Duration::from_millis(500),
            idle: Duration::from_mins(1),
            life: Duration::from_mins(30),
            open: Duration::from_secs(5),
            reset: Duration::from_secs(5),
            share: true,
        }
    }
}

impl Settings {
    /// The share of one node: 80 % of what PostgreSQL grants to ordinary roles, divided by the
    /// number of nodes.
    ///
    /// `max_connections` and `reserved` (the sum of `superuser_reserved_connections` and, from
    /// PostgreSQL 16, `reserved_connections`) are the server's settings.
    pub fn for_server(max_connections: usize, reserved: usize, nodes: usize) -> Self {
        let free = max_connections.saturating_sub(reserved);
        Self {
            capacity: (free * 4 / 5 / nodes.max(1)).max(1),
            ..Self::default()
        }
    }

    /// Connections at most of one database.
    pub(super) fn per_tenant(&self) -> usize {
        (self.capacity / 2).max(1)
    }

    /// Connections at most of a role that one user has, in fact.
    pub fn of_user(&self) -> usize {
        self.per_role.clamp(1, self.per_tenant())
    }

    /// Connections at most of a role; `shared` when several callers use them.
    pub(super) fn for_role(&self, shared: bool) -> usize {
        if shared {
            (self.capacity / 4).max(1)
        } else {
            self.per_role.max(1)
        }
    }

    /// Requests of one database that may wait at most.
    pub(super) fn tenant_queue(&self) -> usize {
        (self.queue / 2).max(1)
    }
}
