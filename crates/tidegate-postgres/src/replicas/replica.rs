//! One replica.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tidegate_sql::{DatabaseName, WalPosition};
use tokio::sync::watch;

use super::primary::Primary;
use crate::executor::UserExecutor;

/// A standby that answers reads.
pub(super) struct Replica {
    address: String,
    pub(super) users: UserExecutor,
    /// The position up to which the replica has replayed the WAL; `None` while it is not used.
    replayed: watch::Receiver<Option<WalPosition>>,
    /// The databases with definitions that the replica may not have replayed, and the position
    /// after these definitions.
    outdated: Mutex<HashMap<DatabaseName, WalPosition>>,
    answered: AtomicU64,
    failed: AtomicU64,
}

/// The state of a replica, for metrics.
#[derive(Clone, Debug)]
pub struct ReplicaStatus {
    /// The host and port.
    pub address: String,
    /// Whether reads go to the replica, because it responds and lags behind the primary by less
    /// than a second.
    pub used: bool,
    /// How many bytes of the primary's WAL the replica has not replayed; `None` while the replica
    /// does not respond.
    pub lag: Option<u64>,
    /// How many reads the replica has answered.
    pub answered: u64,
    /// How many reads ran on the primary after they had failed on the replica.
    pub failed: u64,
}

impl Replica {
    pub(super) fn new(
        address: String,
        users: UserExecutor,
        replayed: watch::Receiver<Option<WalPosition>>,
    ) -> Self {
        Self {
            address,
            users,
            replayed,
            outdated: Mutex::default(),
            answered: AtomicU64::new(0),
            failed: AtomicU64::new(0),
        }
    }

    pub(super) fn status(&self, primary: &Primary) -> ReplicaStatus {
        let (replayed, required) = (self.replayed(), primary.required());
        let lag = |replayed: WalPosition| primary.flushed().0.saturating_sub(replayed.0);
        ReplicaStatus {
            address: self.address.clone(),
            used: replayed.is_some_and(|replayed| replayed >= required),
            lag: replayed.map(lag),
            answered: self.answered.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
        }
    }

    fn replayed(&self) -> Option<WalPosition> {
        *self.replayed.borrow()
    }

    /// Excludes this replica from reads of the database until it has replayed the WAL up to
    /// `position`.
    pub(super) fn require(&self, database: &DatabaseName, position: WalPosition) {
        self.outdated.lock().insert(database.clone(), position);
    }

    /// Whether the replica has replayed everything up to `needed`, and all definitions of the
    /// database that are known to have changed. If the replica has replayed such definitions since
    /// the previous call, clears the cached data of the database, which may be older than these
    /// definitions.
    pub(super) fn has(&self, database: &DatabaseName, needed: WalPosition) -> bool {
        let Some(replayed) = self.replayed().filter(|replayed| *replayed >= needed) else {
            return false;
        };
        let mut outdated = self.outdated.lock();
        match outdated.get(database) {
            None => true,
            Some(definition) if *definition > replayed => false,
            Some(_) => {
                self.users.redefined(database);
                outdated.remove(database);
                true
            }
        }
    }

    /// Completes when the replica is no longer used, or is too far behind the primary.
    pub(super) async fn until_unused(&self, primary: &Primary) {
        let mut replayed = self.replayed.clone();
        let is_unused = |at: &Option<WalPosition>| at.is_none_or(|at| at < primary.required());
        // An error means that the monitor has ended, at shutdown.
        let _ = replayed.wait_for(is_unused).await;
    }

    pub(super) fn count_answered(&self) {
        self.answered.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_failed(&self) {
        self.failed.fetch_add(1, Ordering::Relaxed);
    }
}

impl fmt::Debug for Replica {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replica")
            .field("address", &self.address)
            .field("replayed", &self.replayed())
            .finish_non_exhaustive()
    }
}
