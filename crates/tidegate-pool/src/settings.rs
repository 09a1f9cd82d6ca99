//! The limits of a pool.

use std::time::Duration;

/// The limits of a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The limit on the connections of all roles together, including those being opened or reset.
    pub capacity: usize,
    /// The limit on the connections of a role that only one user uses. A role that several callers
    /// share may have a quarter of `capacity`, and a database half of `capacity`.
    pub per_role: usize,
    /// The limit on waiting requests. One database may have half of this number.
    pub queue: usize,
    /// The maximum time for which a request waits for a connection.
    pub wait: Duration,
    /// How long a connection serves the waiting requests of its role. After this time it may be
    /// closed, to make room for a connection of another role with waiting requests. Without this
    /// time an overloaded pool would spend all its time on logins.
    pub min_service: Duration,
    /// How long a connection may be idle before it is closed.
    pub idle: Duration,
    /// The maximum lifetime of a connection.
    pub max_lifetime: Duration,
    /// How long opening a connection may take.
    pub open: Duration,
    /// How long a reset may take.
    pub reset: Duration,
    /// Whether quick reads may be multiplexed while many run at the same time.
    pub multiplex: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            capacity: 77,
            per_role: 8,
            queue: 1_000,
            wait: Duration::from_secs(5),
            min_service: Duration::from_millis(500),
            idle: Duration::from_mins(1),
            max_lifetime: Duration::from_mins(30),
            open: Duration::from_secs(5),
            reset: Duration::from_secs(5),
            multiplex: true,
        }
    }
}

impl Settings {
    /// The limit on the connections of one database.
    pub(super) fn per_tenant(&self) -> usize {
        (self.capacity / 2).max(1)
    }

    /// The limit on the connections of a role that only one user uses: `per_role`, but at most the
    /// limit of a database.
    pub fn of_user(&self) -> usize {
        self.per_role.clamp(1, self.per_tenant())
    }

    /// The limit on the connections of a role. `shared` says whether several callers share these
    /// connections.
    pub(super) fn for_role(&self, shared: bool) -> usize {
        if shared {
            (self.capacity / 4).max(1)
        } else {
            self.per_role.max(1)
        }
    }

    /// The limit on the connections of a shared role that one caller may use at a time: `per_role`,
    /// but at most half of the role's limit, so that slow statements of one caller do not block the
    /// others.
    pub fn of_caller(&self) -> usize {
        self.per_role.min(self.for_role(true) / 2).max(1)
    }

    /// The limit on the waiting requests of one database.
    pub fn tenant_queue(&self) -> usize {
        (self.queue / 2).max(1)
    }
}
