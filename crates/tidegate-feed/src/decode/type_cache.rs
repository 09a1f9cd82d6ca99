//! The types of a database, except built-in types, as they were most recently read from the
//! catalog.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use tidegate_changelog::LogError;
use tidegate_values::Type;

use crate::catalog_query::CatalogReader;
use crate::decode::type_lookup;

/// The OID of an enum, and one of its labels.
pub(crate) type EnumLabel = (u32, Box<[u8]>);

/// Types by OID. A task that looks up types gets a reference to the whole map, which never changes.
/// An update stores a new map.
#[derive(Default)]
pub(crate) struct TypeCache {
    types: Mutex<Arc<HashMap<u32, Type>>>,
    /// The enum labels that were looked up recently, each with the time of the lookup.
    pub(super) queried_labels: Mutex<HashMap<EnumLabel, Instant>>,
}

impl TypeCache {
    pub(crate) fn current(&self) -> Arc<HashMap<u32, Type>> {
        self.types.lock().clone()
    }

    /// Replaces the map by a changed copy, and returns the copy.
    pub(crate) fn update(
        &self,
        change: impl FnOnce(&mut HashMap<u32, Type>),
    ) -> Arc<HashMap<u32, Type>> {
        let mut types = self.types.lock();
        let mut changed = HashMap::clone(&types);
        change(&mut changed);
        *types = Arc::new(changed);
        types.clone()
    }

    /// Reads unknown types from the catalog, adds them, and returns the new map. A type that no
    /// longer exists stays unknown, and its values are delivered as text.
    ///
    /// # Errors
    ///
    /// [`LogError::Unavailable`] if the query fails, for example because PostgreSQL does not
    /// respond.
    pub(crate) async fn resolve(
        &self,
        catalog: &CatalogReader,
        unknown: &[u32],
    ) -> Result<Arc<HashMap<u32, Type>>, LogError> {
        let found = type_lookup::look_up(catalog, unknown)
            .await
            .map_err(|error| LogError::Unavailable(Box::new(error)))?;
        Ok(self.update(|types| types.extend(found)))
    }
}
