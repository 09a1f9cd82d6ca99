//! Looks up types by OID.

use std::collections::HashMap;

use tidegate_sql::Error;
use tidegate_values::Type;
use tidegate_wire::version;
use tokio::time::Instant;

use super::internal_query::InternalQuery;
use crate::connection::Connection;
use crate::metadata::{MetadataCache, TREE_13, TREE_14, TypeRow, build};

/// Returns the types with these OIDs in the same order. Types that are not cached are read from
/// `pg_catalog` in one round trip.
pub(super) async fn resolve_types(
    connection: &mut Connection,
    metadata: &MetadataCache,
    oids: &[u32],
    deadline: Option<Instant>,
) -> Result<Vec<Type>, Error> {
    let generation = metadata.generation();
    let (known, missing) = metadata.known(oids, Instant::now());
    if missing.is_empty() {
        return Ok(known.into_iter().flatten().collect());
    }
    let entries = read_types(connection, &missing, deadline).await?;
    metadata.keep_types(&missing, &entries, generation);
    let found = known.into_iter().zip(oids);
    Ok(found
        .map(|(known, oid)| known.unwrap_or_else(|| build(*oid, &entries, 0)))
        .collect())
}

async fn read_types(
    connection: &mut Connection,
    oids: &[u32],
    deadline: Option<Instant>,
) -> Result<HashMap<u32, TypeRow>, Error> {
    let text = if version::has_multiranges(connection.server_version()) {
        TREE_14
    } else {
        TREE_13
    };
    let list: Vec<String> = oids.iter().map(u32::to_string).collect();
    let parameter = format!("{{{}}}", list.join(","));
    let query = InternalQuery {
        text,
        parameters: &[&parameter],
        // No role switch is needed, because every role may read `pg_catalog`.
        switch: None,
        is_kept: false,
        deadline,
    };
    let mut entries = HashMap::new();
    let mut take = |row: tidegate_values::RawRow<'_>| {
        let (oid, entry) = TypeRow::read(row)?;
        entries.insert(oid, entry);
        Some(())
    };
    let outcome = connection
        .run_internal_query(&query, TypeRow::COLUMNS, &mut take)
        .await?;
    outcome.map_err(|error| Error::internal(error.rejection.message))?;
    Ok(entries)
}
