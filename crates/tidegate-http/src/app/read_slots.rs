//! Limits how many SQL statements of the default user run at the same time in a database on this
//! node, if the tenant's `anonymous_sql` is `read`. Without a limit, these statements could take
//! all connections, and methods and GraphQL requests of anonymous callers would wait.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use tidegate_sql::DatabaseName;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The maximum number of SQL statements of anonymous callers that run at the same time on this node
/// in one database.
const SLOTS: usize = 4;

/// The slot of a running statement. Dropping it frees the slot.
pub(crate) type ReadSlot = OwnedSemaphorePermit;

/// The slots of each database. They are created on first use.
#[derive(Default)]
pub(crate) struct ReadSlots(Mutex<HashMap<DatabaseName, Arc<Semaphore>>>);

impl ReadSlots {
    /// Waits for a slot of a database; `None` if no slot becomes free before `until`.
    pub(crate) async fn enter(&self, database: &DatabaseName, until: Instant) -> Option<ReadSlot> {
        let slots = Arc::clone(
            self.0
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .entry(database.clone())
                .or_insert_with(|| Arc::new(Semaphore::new(SLOTS))),
        );
        let entered = tokio::time::timeout_at(until.into(), slots.acquire_owned()).await;
        entered.ok()?.ok()
    }
}
