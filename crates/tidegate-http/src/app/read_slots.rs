//! How many statements of anonymous callers run at once, so that they take few connections from
//! the default user's methods and GraphQL requests.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use tidegate_sql::DatabaseName;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Statements at once in a database on this node.
const SLOTS: usize = 4;

/// A statement's place, which it has until this is dropped.
pub(crate) type ReadSlot = OwnedSemaphorePermit;

/// The places of each database.
#[derive(Default)]
pub(crate) struct ReadSlots(Mutex<HashMap<DatabaseName, Arc<Semaphore>>>);

impl ReadSlots {
    /// Waits for a place in a database that is a tenant's; none when there is none in time.
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
