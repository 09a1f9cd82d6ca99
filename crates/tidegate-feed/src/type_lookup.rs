//! From the numbers of types that are not built in to the types.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tidegate_sql::{Principal, Terms, Type};
use tracing::warn;

use crate::database::Database;
use crate::question::{ask, bind};

const NAMES: &str = "\
    SELECT t.oid::text, pg_catalog.format_type(t.oid, NULL) FROM pg_catalog.pg_type t \
    WHERE t.oid = ANY (:types::oid[]) ORDER BY t.oid";

/// Learns types; a type that is gone again is shown as text. The service asks, in `pg_catalog`.
pub(crate) async fn resolve(database: &Database, unknown: &[u32]) -> Arc<HashMap<u32, Type>> {
    let learnt = match look_up(database, unknown).await {
        Ok(learnt) => learnt,
        Err(error) => {
            warn!(database = %database.name, %error, "types of the log could not be looked up");
            HashMap::new()
        }
    };
    let mut types = database.types.lock();
    let mut all = HashMap::clone(&types);
    all.extend(learnt);
    *types = Arc::new(all);
    types.clone()
}

async fn look_up(database: &Database, unknown: &[u32]) -> tidegate_sql::Result<HashMap<u32, Type>> {
    let who = Principal::Catalog(database.name.clone());
    let list: Vec<String> = unknown.iter().map(u32::to_string).collect();
    let list = format!("{{{}}}", list.join(","));
    let asked = ask(&*database.executor, &who, &[], &[(NAMES, &[&list])]).await?;
    let named: Vec<(u32, String)> = asked
        .answers()
        .iter()
        .flatten()
        .filter_map(|row| Some((row.first()?.as_deref()?.parse().ok()?, row.get(1)?.clone()?)))
        .collect();
    if named.is_empty() {
        return Ok(HashMap::new());
    }
    // PostgreSQL describes NULLs of these types; nothing of the database is touched.
    let nulls: Vec<String> = named
        .iter()
        .map(|(_, name)| format!("NULL::{name}"))
        .collect();
    let statement = bind(&format!("SELECT {}", nulls.join(", ")), &[])?;
    let terms = Terms {
        deadline: Some(Instant::now() + Duration::from_secs(10)),
    };
    let described = database.executor.describe(&who, &statement, &terms).await?;
    let types = described.columns.into_iter().map(|column| column.r#type);
    Ok(named.into_iter().map(|(oid, _)| oid).zip(types).collect())
}
