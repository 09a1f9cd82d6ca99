//! Watches the attributes of composite types, including row types of tables that are used as types
//! of columns. The change log does not report changes of these attributes.

use std::sync::Arc;

use tidegate_changelog::LogPosition;
use tidegate_values::has_attributes;
use tokio::time::Instant;
use tracing::debug;

use crate::database::database_feed::DatabaseFeed;
use crate::decode::type_lookup;

/// When a poll finds that attributes of the composite types in use have changed, reads these types
/// again. Runs until it is aborted.
pub(crate) async fn watch(database: Arc<DatabaseFeed>) {
    let mut snapshots = database.snapshots.subscribe();
    let mut known = Box::default();
    while snapshots.changed().await.is_ok() {
        let attributes = snapshots.borrow_and_update().attributes.clone();
        if attributes == known {
            continue;
        }
        match refresh(&database).await {
            Ok(()) => known = attributes,
            Err(error) => {
                debug!(database = %database.name, %error, "could not read composite types again");
            }
        }
    }
}

async fn refresh(database: &DatabaseFeed) -> crate::Result<()> {
    let types = database.types.current();
    let composites = types.iter().filter(|(_, one)| has_attributes(one));
    let composites: Vec<u32> = composites.map(|(oid, _)| *oid).collect();
    let current = type_lookup::look_up(&database.catalog, &composites).await;
    let mut current = current.map_err(|error| crate::Error::Internal(Box::new(error)))?;
    current.retain(|oid, current| types.get(oid) != Some(current));
    if current.is_empty() {
        return Ok(());
    }
    // Changes that committed until now must still be decoded with the old attributes. So the stream
    // must have reached the current end of the log before the types are replaced.
    let now = database.log.retain(&database.name, LogPosition::default());
    let deadline = Instant::now() + database.settings.subscribe_timeout;
    let now = now.await?;
    database.stream.wait_until_reached(now, deadline).await?;
    database.types.update(|types| types.extend(current));
    Ok(())
}
