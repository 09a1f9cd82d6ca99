//! The APIs of all schemas that are in use.

use std::sync::Arc;

use tidegate_catalog::Schema;
use tokio::sync::OnceCell;
use tokio::task::spawn_blocking;

use crate::api::Api;
use crate::cache::Cache;
use crate::error::{Code, Error};
use crate::limits::{Limits, RoleLimits};

/// APIs at once, and what they may take together by a rough estimate.
const MOST: usize = 1_024;
const BYTES: usize = 512 << 20;
/// What the API of a schema takes, empty and for each relation.
const EMPTY: usize = 64 << 10;
const RELATION: usize = 2 << 10;

/// The APIs of schemas, each made when it is first asked for. Roles that share a schema share its
/// API, but those with limits of their own; a schema that changed is another one.
#[derive(Debug)]
pub struct Apis {
    by_schema: Cache<usize, Arc<Slot>>,
    feed: bool,
    limits: Limits,
    roles: Box<[RoleLimits]>,
}

#[derive(Debug)]
struct Slot {
    /// Keeps the schema's address from being given to another one.
    schema: Arc<Schema>,
    /// For the roles with limits of their own, in their order, and for all others.
    apis: Box<[OnceCell<Arc<Api>>]>,
}

impl Apis {
    /// No APIs yet; they will have subscriptions when changes are fed. Some roles have limits of
    /// their own.
    pub fn new(feed: bool, limits: Limits, roles: Vec<RoleLimits>) -> Self {
        Self {
            by_schema: Cache::new(MOST, BYTES),
            feed,
            limits,
            roles: roles.into(),
        }
    }

    /// The API of a schema for a role. Making one is work for a thread of its own: about ten
    /// milliseconds for a thousand tables.
    ///
    /// # Errors
    ///
    /// Only when that thread dies.
    pub async fn of(&self, schema: &Arc<Schema>, role: &str) -> Result<Arc<Api>, Error> {
        let address = Arc::as_ptr(schema).addr();
        let slot = self.by_schema.get(&address).unwrap_or_else(|| {
            // What nobody else holds is an old version.
            self.by_schema
                .retain(|slot: &Arc<Slot>| Arc::strong_count(&slot.schema) > in_slot(slot));
            let slot = Arc::new(Slot {
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

/// How often a slot itself holds its schema.
fn in_slot(slot: &Slot) -> usize {
    1 + slot.apis.iter().filter(|api| api.initialized()).count()
}
