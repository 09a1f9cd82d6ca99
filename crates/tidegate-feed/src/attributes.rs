//! Attributes of composite types, and columns of tables whose rows are values: they come, go and
//! get other names without a word in the log, not even for the tables that have such columns.

use std::collections::HashMap;
use std::sync::Arc;

use tidegate_sql::log::LogPosition;
use tidegate_sql::{Type, TypeKind};
use tokio::time::Instant;
use tracing::debug;

use crate::database::Database;
use crate::type_lookup;

/// Reads the attributes of the types in use anew when a look finds that they are others, until it
/// is aborted.
pub(crate) async fn watch(database: Arc<Database>) {
    let mut found = database.found.subscribe();
    let mut seen = Box::default();
    while found.changed().await.is_ok() {
        let attributes = found.borrow_and_update().attributes.clone();
        if attributes == seen {
            continue;
        }
        match renew(&database).await {
            Ok(()) => seen = attributes,
            Err(error) => debug!(%error, "attributes of types could not be looked at"),
        }
    }
}

async fn renew(database: &Database) -> crate::Result<()> {
    let types = database.types.lock().clone();
    let known = types.iter().filter(|(_, known)| has_attributes(known));
    let known: Vec<u32> = known.map(|(oid, _)| *oid).collect();
    let today = type_lookup::look_up(database, &known).await;
    let mut today = today.map_err(|error| crate::Error::Internal(Box::new(error)))?;
    today.retain(|oid, today| types.get(oid) != Some(today));
    if today.is_empty() {
        return Ok(());
    }
    // What committed before is shown as it was then.
    let now = database.log.retain(&database.name, LogPosition::default());
    let deadline = Instant::now() + database.settings.patience;
    database.reach(now.await?, deadline).await?;
    let mut types = database.types.lock();
    let mut all = HashMap::clone(&types);
    all.extend(today);
    *types = all.into();
    Ok(())
}

/// Whether values of a type have attributes somewhere.
pub(crate) fn has_attributes(r#type: &Type) -> bool {
    match r#type.kind() {
        TypeKind::Composite(_) => true,
        TypeKind::Array(inner)
        | TypeKind::Domain(inner)
        | TypeKind::Range(inner)
        | TypeKind::Multirange(inner) => has_attributes(inner),
        _ => false,
    }
}
