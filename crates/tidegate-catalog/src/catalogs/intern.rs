//! Schemas by what their documents say, so that equal ones are kept once.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tidegate_sql::DatabaseName;

use crate::error::Result;
use crate::model::Schema;

/// A database and the digest of a document.
type Key = (DatabaseName, [u64; 2]);

/// The schemas that somebody holds.
#[derive(Default)]
pub(super) struct Intern {
    /// By 128 bits under keys of this process, which nobody outside can make meet.
    schemas: Mutex<HashMap<Key, Weak<Schema>>>,
    hashers: [RandomState; 2],
    versions: AtomicU64,
}

impl Intern {
    /// The schema of a document, and whether it is a new one.
    pub(super) fn schema(
        &self,
        database: &DatabaseName,
        document: &str,
    ) -> Result<(Arc<Schema>, bool)> {
        let [one, other] = &self.hashers;
        let digest = [one.hash_one(document), other.hash_one(document)];
        let key = (database.clone(), digest);
        if let Some(known) = self.schemas.lock().get(&key).and_then(Weak::upgrade) {
            return Ok((known, false));
        }
        let version = self.versions.fetch_add(1, Ordering::Relaxed) + 1;
        let schema = Arc::new(Schema::parse(document)?.with_version(version));
        self.schemas.lock().insert(key, Arc::downgrade(&schema));
        Ok((schema, true))
    }

    /// Forgets those that nobody holds any more.
    pub(super) fn forget_dropped(&self) {
        self.schemas
            .lock()
            .retain(|_, schema| schema.strong_count() > 0);
    }
}
