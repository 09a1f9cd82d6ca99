//! A cache of the APIs of all schemas in use.

use std::sync::Arc;

use tidegate_catalog::Schema;
use tokio::sync::OnceCell;
use tokio::task::spawn_blocking;

use crate::api::Api;
use crate::cache::Cache;
use crate::error::{Code, Error};
use crate::limits::{Limits, RoleLimits};

/// The largest number of cached schemas with their APIs.
const MAX_ENTRIES: usize = 1_024;
/// A rough limit on the memory of all cached APIs together, in bytes.
const BYTES: usize = 512 << 20;
/// A rough estimate of the memory of an API without relations, in bytes.
const EMPTY: usize = 64 << 10;
/// A rough estimate of the memory that each relation adds to an API, in bytes.
const RELATION: usize = 2 << 10;

/// The APIs of schemas, each built on first use. Roles that see the same schema share its API,
/// unless they have limits of their own. A changed schema counts as a new schema.
#[derive(Debug)]
pub struct ApiCache {
    by_schema: Cache<usize, Arc<CachedApis>>,
    feed: bool,
    limits: Limits,
    roles: Box<[RoleLimits]>,
}

#[derive(Debug)]
struct CachedApis {
    /// The schema. Its memory address is the key of this entry in the cache. The reference keeps
    /// the schema alive, so that the address is not reused.
    schema: Arc<Schema>,
    /// The APIs of the schema: one for each role with limits of its own, in the order of
    /// [`ApiCache::roles`], and one for all other roles.
    apis: Box<[OnceCell<Arc<Api>>]>,
}

impl ApiCache {
    /// An empty cache. The APIs have subscriptions if `feed` is true. `roles` are the roles with
    /// limits of their own.
    pub fn new(feed: bool, limits: Limits, roles: Vec<RoleLimits>) -> Self {
        Self {
            by_schema: Cache::new(MAX_ENTRIES, BYTES),
            feed,
            limits,
            roles: roles.into(),
        }
    }

    /// The API of a schema for a role. If it is not cached, it is built on a blocking thread,
    /// because building takes about 10 ms for a thousand tables.
    ///
    /// # Errors
    ///
    /// If building the API panics.
    pub async fn of(&self, schema: &Arc<Schema>, role: &str) -> Result<Arc<Api>, Error> {
        let address = Arc::as_ptr(schema).addr();
        let slot = self.by_schema.get(&address).unwrap_or_else(|| {
            // A schema to which only this cache refers is an old version, so its entry is removed.
            self.by_schema
                .retain(|slot: &Arc<CachedApis>| Arc::strong_count(&slot.schema) > in_slot(slot));
            let slot = Arc::new(CachedApis {
                schema: Arc::clone(schema),
                apis: (0..=self.roles.len()).map(|_| OnceCell::new()).collect(),
            });
            let size = EMPTY + RELATION * schema.relations().count();
            self.by_schema.put(address, Arc::clone(&slot), size);
            slot
        });
        let own = self.roles.iter().position(|own| &*own.role == role);
        let feed = self.feed;
        let limits = own.map_or(self.limits, |at| self.roles[at].with(self.limits));
        let make = || async {
            let schema = Arc::clone(&slot.schema);
            let made = spawn_blocking(move || Arc::new(Api::new(schema, feed, limits)));
            made.await
                .map_err(|_| Error::new(Code::Internal, "internal error"))
        };
        let api = &slot.apis[own.unwrap_or(self.roles.len())];
        api.get_or_try_init(make).await.cloned()
    }
}

/// The number of references to the schema that a cache entry holds: its own, and one in each API.
fn in_slot(slot: &CachedApis) -> usize {
    1 + slot.apis.iter().filter(|api| api.initialized()).count()
}
