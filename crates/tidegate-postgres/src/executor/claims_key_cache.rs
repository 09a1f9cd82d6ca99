//! The keys that seal the claims of members, cached for each database.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use parking_lot::Mutex;
use tidegate_sql::{
    BoundStatement, DatabaseName, Executor, Principal, QueryOptions, Result, Statement,
};
use tidegate_wire::outage;
use tokio::time::Instant;

use crate::claims_key::{CLAIMS_GENERATION, ClaimsKey};
use crate::purity::{statement, text_rows};

/// Reads the generation of the key from the functions of the database, as text.
static GENERATION: LazyLock<Arc<Statement>> = LazyLock::new(|| {
    statement(&format!(
        "SELECT g.generation::pg_catalog.text FROM ({CLAIMS_GENERATION}) g (generation)"
    ))
});

/// The time limit of the query [`GENERATION`].
const LIMIT: Duration = Duration::from_secs(5);

/// Derives the key of a database from the key's generation.
pub(super) type DeriveKey = dyn Fn(&DatabaseName, i32) -> ClaimsKey + Send + Sync;

/// The keys of all databases in which members have run statements.
pub(super) struct ClaimsKeyCache {
    derive: Box<DeriveKey>,
    keys: Mutex<HashMap<DatabaseName, Arc<CachedKey>>>,
}

/// The key of one database.
#[derive(Default)]
struct CachedKey {
    /// The key, and the time at which its loading began; `None` before it is loaded.
    loaded: Mutex<Option<(ClaimsKey, Instant)>>,
    /// Held while the key is loaded. Other requests wait for the lock and share the result.
    loading: tokio::sync::Mutex<()>,
}

impl ClaimsKeyCache {
    pub(super) fn new(derive: Box<DeriveKey>) -> Self {
        Self {
            derive,
            keys: Mutex::default(),
        }
    }

    /// Forgets the key of a database that is dropped.
    pub(super) fn forget(&self, database: &DatabaseName) {
        self.keys.lock().remove(database);
    }

    fn cached(&self, database: &DatabaseName) -> Arc<CachedKey> {
        let mut keys = self.keys.lock();
        if let Some(known) = keys.get(database) {
            return known.clone();
        }
        keys.entry(database.clone()).or_default().clone()
    }
}

impl fmt::Debug for ClaimsKeyCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClaimsKeyCache").finish_non_exhaustive()
    }
}

/// Looks up the key of one database.
pub(super) struct KeyLookup<'a> {
    pub(super) keys: &'a ClaimsKeyCache,
    pub(super) service: &'a dyn Executor,
    pub(super) database: &'a DatabaseName,
}

impl KeyLookup<'_> {
    /// Returns the database's key, from the cache if possible. `refused` is the key that the
    /// database has rejected; `None` if it has rejected none. If the cached key equals `refused`,
    /// the key is loaded again. Concurrent calls share one load.
    pub(super) async fn get(&self, refused: Option<ClaimsKey>) -> Result<ClaimsKey> {
        let (cached, requested) = (self.keys.cached(self.database), Instant::now());
        let loaded = *cached.loaded.lock();
        if let Some((key, _)) = loaded
            && refused != Some(key)
        {
            return Ok(key);
        }
        let _loading = cached.loading.lock().await;
        let loaded = *cached.loaded.lock();
        if let Some((key, began)) = loaded
            && began >= requested
        {
            return Ok(key);
        }
        let began = Instant::now();
        let key = self.load().await?;
        *cached.loaded.lock() = Some((key, began));
        Ok(key)
    }

    async fn load(&self) -> Result<ClaimsKey> {
        let who = Principal::Catalog(self.database.clone());
        let options = QueryOptions {
            deadline: Some((Instant::now() + LIMIT).into_std()),
            ..QueryOptions::default()
        };
        let bound = BoundStatement::without_values(&GENERATION)?;
        let rows = text_rows(self.service, &who, &bound, &options).await?;
        let generation = rows.iter().flatten().next();
        match generation.and_then(|text| text.parse().ok()) {
            Some(generation) => Ok((self.keys.derive)(self.database, generation)),
            None => Err(outage(format!(
                "the functions of claims are missing in the database {}, or belong to another role",
                self.database
            ))),
        }
    }
}
