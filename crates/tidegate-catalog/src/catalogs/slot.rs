//! A cached load of one schema of a database, or of all its schemas.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::lock::Mutex as Turn;
use parking_lot::RwLock;

use super::Schemas;
use super::loaded::Loaded;
use super::tenant::Tenant;
use crate::error::Result;

/// The schemas, and of which epoch of the database they are at least.
type Current = (Loaded, u64);

/// Which roles a loaded schema is valid for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sight {
    /// All roles of the group.
    Group,
    /// Perhaps only the role as which they were loaded: its rights have changed.
    Role,
}

/// Schemas and who sees them.
pub(super) type Found = (Schemas, Sight);

/// A place for loaded schemas.
#[derive(Default)]
pub(super) struct Slot {
    loaded: RwLock<Option<Current>>,
    turn: Turn<()>,
    used: AtomicU64,
}

impl Slot {
    pub(super) fn touch(&self, now: u64) {
        self.used.store(now, Ordering::Relaxed);
    }

    pub(super) fn age(&self, now: u64) -> u64 {
        now.saturating_sub(self.used())
    }

    /// The tick in which it was used last.
    pub(super) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// The loaded schemas, if they are at least as new as the epoch `required`.
    pub(super) fn current(&self, required: u64) -> Option<Schemas> {
        let loaded = self.loaded.read();
        let fresh = loaded.as_ref().filter(|(_, epoch)| *epoch >= required);
        fresh.map(|(loaded, _)| Arc::clone(&loaded.schemas))
    }

    /// What was loaded last, however old it is.
    pub(super) fn kept(&self) -> Option<Schemas> {
        self.loaded().map(|loaded| loaded.schemas)
    }

    /// The same with what makes the next version cheaper to load.
    pub(super) fn loaded(&self) -> Option<Loaded> {
        let loaded = self.loaded.read();
        loaded.as_ref().map(|(loaded, _)| loaded.clone())
    }

    pub(super) fn is_older_than(&self, epoch: u64) -> bool {
        let loaded = self.loaded.read();
        loaded.as_ref().is_none_or(|(_, loaded)| *loaded < epoch)
    }

    /// Brings it up to date by `refresh`, unless that has happened while this waited for its turn.
    /// A result that is not valid for the whole group is returned, but not cached.
    pub(super) async fn load<F>(
        &self,
        tenant: &Tenant,
        refresh: impl FnOnce(Option<Loaded>) -> F,
    ) -> Result<Found>
    where
        F: Future<Output = Result<(Loaded, Sight)>>,
    {
        let _turn = self.turn.lock().await;
        // What happens to the database while it is loaded belongs to the next epoch.
        let epoch = tenant.epoch();
        if !self.is_older_than(epoch)
            && let Some(schemas) = self.kept()
        {
            return Ok((schemas, Sight::Group));
        }
        let (loaded, sight) = refresh(self.loaded()).await?;
        let schemas = Arc::clone(&loaded.schemas);
        if sight == Sight::Group {
            *self.loaded.write() = Some((loaded, epoch));
        }
        Ok((schemas, sight))
    }
}
