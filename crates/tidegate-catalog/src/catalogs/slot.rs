//! A cache entry for one schema of a database, or for all its schemas.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::lock::Mutex as AsyncMutex;
use parking_lot::RwLock;

use super::Schemas;
use super::loaded::Loaded;
use crate::error::Result;

/// The loaded schemas, and the epoch in which the load began.
type CurrentLoad = (Loaded, u64);

/// The roles for which a loaded schema is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Validity {
    /// The schema is valid for all roles of the group.
    Group,
    /// The schema may be valid only for the role as which it was loaded, because the role's
    /// privileges changed.
    Role,
}

/// Schemas and the roles for which they are valid.
pub(super) type FoundSchemas = (Schemas, Validity);

/// A cache entry for schemas, as the roles of one group see them.
#[derive(Default)]
pub(super) struct SchemaSlot {
    loaded: RwLock<Option<CurrentLoad>>,
    loading: AsyncMutex<()>,
    used: AtomicU64,
}

impl SchemaSlot {
    pub(super) fn touch(&self, now: u64) {
        self.used.store(now, Ordering::Relaxed);
    }

    pub(super) fn age(&self, now: u64) -> u64 {
        now.saturating_sub(self.used())
    }

    /// The cache's tick counter at the last use.
    pub(super) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// The schemas; `None` if they were not loaded in the epoch `required` or later.
    pub(super) fn current(&self, required: u64) -> Option<Schemas> {
        let loaded = self.loaded.read();
        let fresh = loaded.as_ref().filter(|(_, epoch)| *epoch >= required);
        fresh.map(|(loaded, _)| Arc::clone(&loaded.schemas))
    }

    /// The last loaded version of the schemas, even if it is stale; `None` before the first load.
    pub(super) fn last_loaded(&self) -> Option<Schemas> {
        self.loaded().map(|loaded| loaded.schemas)
    }

    /// The last loaded version, with the data that makes the next load cheaper; `None` before the
    /// first load.
    pub(super) fn loaded(&self) -> Option<Loaded> {
        let loaded = self.loaded.read();
        loaded.as_ref().map(|(loaded, _)| loaded.clone())
    }

    pub(super) fn is_older_than(&self, epoch: u64) -> bool {
        let loaded = self.loaded.read();
        loaded.as_ref().is_none_or(|(_, loaded)| *loaded < epoch)
    }

    /// Reloads the schemas with `refresh`, unless another task did so while this one waited.
    /// Schemas that are not valid for the whole group are returned but not cached.
    pub(super) async fn load<F>(
        &self,
        epoch: impl Fn() -> u64,
        refresh: impl FnOnce(Option<Loaded>) -> F,
    ) -> Result<FoundSchemas>
    where
        F: Future<Output = Result<(Loaded, Validity)>>,
    {
        let _guard = self.loading.lock().await;
        // The epoch is read before the load, so that a change during the load makes the result
        // stale.
        let epoch = epoch();
        if !self.is_older_than(epoch)
            && let Some(schemas) = self.last_loaded()
        {
            return Ok((schemas, Validity::Group));
        }
        let (loaded, validity) = refresh(self.loaded()).await?;
        let schemas = Arc::clone(&loaded.schemas);
        if validity == Validity::Group {
            *self.loaded.write() = Some((loaded, epoch));
        }
        Ok((schemas, validity))
    }
}
