//! Interns schemas and relations by their content, so that equal ones are stored once.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, Hash, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tidegate_sql::DatabaseName;

use crate::document::{self, RelationDocument};
use crate::error::Result;
use crate::model::Schema;

/// A digest of 128 bits. Its key is random in each process, so that a client cannot construct a
/// collision.
pub(super) type Digest = [u64; 2];
type SchemaKey = (DatabaseName, Digest);

/// The schemas and relations by their digests. The references are weak, so that a schema is dropped
/// with the last reference outside of this cache.
#[derive(Default)]
pub(super) struct Intern {
    schemas: Mutex<HashMap<SchemaKey, Weak<Schema>>>,
    parts: Mutex<HashMap<SchemaKey, Weak<RelationDocument>>>,
    hashers: [RandomState; 2],
    versions: AtomicU64,
}

impl Intern {
    pub(super) fn digest(&self, value: impl Hash) -> Digest {
        let [one, other] = &self.hashers;
        [one.hash_one(&value), other.hash_one(&value)]
    }

    /// Returns the relation with this digest. If there is none, calls `read` to parse it.
    pub(super) fn part(
        &self,
        database: &DatabaseName,
        digest: Digest,
        read: impl FnOnce() -> Result<RelationDocument>,
    ) -> Result<Arc<RelationDocument>> {
        let key = (database.clone(), digest);
        if let Some(known) = self.parts.lock().get(&key).and_then(Weak::upgrade) {
            return Ok(known);
        }
        let part = Arc::new(read()?);
        self.parts.lock().insert(key, Arc::downgrade(&part));
        Ok(part)
    }

    /// Returns the schema that consists of `relations`, and whether it is new. Each relation comes
    /// with its digest, and the relations are sorted by name.
    pub(super) fn schema(
        &self,
        database: &DatabaseName,
        name: &str,
        relations: &[(Digest, Arc<RelationDocument>)],
    ) -> Result<(Arc<Schema>, bool)> {
        let digests: Vec<_> = relations.iter().map(|(digest, _)| *digest).collect();
        let key = (database.clone(), self.digest((name, digests)));
        if let Some(known) = self.schemas.lock().get(&key).and_then(Weak::upgrade) {
            return Ok((known, false));
        }
        let version = self.versions.fetch_add(1, Ordering::Relaxed) + 1;
        let parts: Vec<_> = relations.iter().map(|(_, part)| Arc::clone(part)).collect();
        let schema = document::schema(name.into(), &parts)?.with_version(version);
        let schema = Arc::new(schema);
        self.schemas.lock().insert(key, Arc::downgrade(&schema));
        Ok((schema, true))
    }

    /// Drops the schemas and relations to which there are no other references.
    pub(super) fn forget_dropped(&self) {
        self.schemas
            .lock()
            .retain(|_, schema| schema.strong_count() > 0);
        self.parts.lock().retain(|_, part| part.strong_count() > 0);
    }
}
