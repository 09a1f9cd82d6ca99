//! What a role asked for of a database: one schema, or all of them.

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
        now.saturating_sub(self.used.load(Ordering::Relaxed))
    }

    /// What may be served now.
    pub(super) fn current(&self, tenant: &Tenant) -> Option<Schemas> {
        let required = tenant.required();
        let loaded = self.loaded.read();
        let fresh = loaded.as_ref().filter(|(_, epoch)| *epoch >= required);
        fresh.map(|(loaded, _)| Arc::clone(&loaded.schemas))
    }

    /// What was loaded last, however old it is.
    pub(super) fn kept(&self) -> Option<Schemas> {
        let loaded = self.loaded.read();
        loaded
            .as_ref()
            .map(|(loaded, _)| Arc::clone(&loaded.schemas))
    }

    pub(super) fn is_older_than(&self, epoch: u64) -> bool {
        let loaded = self.loaded.read();
        loaded.as_ref().is_none_or(|(_, loaded)| *loaded < epoch)
    }

    /// Brings it up to date by `refresh`, unless that has happened while we waited for our turn.
    pub(super) async fn load<F>(
        &self,
        tenant: &Tenant,
        refresh: impl FnOnce(Loaded) -> F,
    ) -> Result<Schemas>
    where
        F: Future<Output = Result<Loaded>>,
    {
        let _turn = self.turn.lock().await;
        // What happens to the database while it is loaded belongs to the next epoch.
        let epoch = tenant.epoch();
        if !self.is_older_than(epoch)
            && let Some(schemas) = self.kept()
        {
            return Ok(schemas);
        }
        let before = self
            .loaded
            .read()
            .as_ref()
            .map(|(loaded, _)| loaded.clone());
        let loaded = refresh(before.unwrap_or_default()).await?;
        let schemas = Arc::clone(&loaded.schemas);
        *self.loaded.write() = Some((loaded, epoch));
        Ok(schemas)
    }
}
