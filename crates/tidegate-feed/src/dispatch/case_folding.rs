//! Reads from PostgreSQL how the collations of a table's columns fold case.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tidegate_filter::CaseFolding;

use crate::catalog_query::{CatalogReader, quoted, text};
use crate::dispatch::predicate::Predicate;
use crate::error::{Error, Result};

const COLLATIONS: &str = "\
    SELECT a.attname::text, n.nspname::text, c.collname::text \
    FROM pg_catalog.pg_attribute a \
    JOIN pg_catalog.pg_collation c ON c.oid = a.attcollation \
    JOIN pg_catalog.pg_namespace n ON n.oid = c.collnamespace \
    WHERE a.attrelid = :relation::oid AND a.attnum > 0 AND NOT a.attisdropped";

/// The schema and the name of a collation.
type CollationName = (Box<str>, Box<str>);

/// The case folding of each collation that a filter has needed so far; `None` if the service cannot
/// reproduce the rules of the collation.
#[derive(Default)]
pub(crate) struct CaseFoldingCache(Mutex<HashMap<CollationName, Option<Arc<CaseFolding>>>>);

impl CaseFoldingCache {
    /// Sets, in a filter, the case folding of the columns that the filter compares
    /// case-insensitively.
    ///
    /// # Errors
    ///
    /// [`Error::Filter`] if a collation folds case by rules that the service cannot reproduce;
    /// [`Error::Privileges`] if a query to PostgreSQL fails.
    pub(crate) async fn load(
        &self,
        catalog: &CatalogReader,
        relation: u32,
        predicate: &mut Predicate,
    ) -> Result<()> {
        let columns = predicate.case_folded_columns();
        if columns.is_empty() {
            return Ok(());
        }
        let relation = relation.to_string();
        let queries: [(&str, &[&str]); 1] = [(COLLATIONS, &[&relation])];
        let outcome = catalog.query_snapshot(&[], &queries).await;
        let outcome = outcome.map_err(|error| Error::Privileges(Arc::new(error)))?;
        let mut by_column = HashMap::new();
        for row in outcome.rows().iter().flatten() {
            let (column, collation) = (text(row, 0), (text(row, 1), text(row, 2)));
            if columns.contains(&&*column) {
                by_column.insert(column, self.of(catalog, &collation).await?);
            }
        }
        predicate.set_case_folding(&by_column);
        Ok(())
    }

    /// The case folding of a collation, from the cache or from PostgreSQL.
    async fn of(
        &self,
        catalog: &CatalogReader,
        collation: &CollationName,
    ) -> Result<Arc<CaseFolding>> {
        let cached = self.0.lock().get(collation).cloned();
        let folding = if let Some(folding) = cached {
            folding
        } else {
            let lower = match lower(catalog, collation, CaseFolding::SAMPLE).await {
                // The encoding of the database lacks some characters of the sample, so the sample
                // with only ASCII letters is used.
                Err(tidegate_sql::Error::Rejected(_)) => {
                    lower(catalog, collation, CaseFolding::ASCII).await
                }
                lower => lower,
            };
            let lower = lower.map_err(|error| Error::Privileges(Arc::new(error)))?;
            let folding = CaseFolding::of(&lower).map(Arc::new);
            self.0.lock().insert(collation.clone(), folding.clone());
            folding
        };
        folding.ok_or_else(|| {
            Error::Filter(format!(
                "case-insensitive comparison under the collation `{}` is not supported in \
                 subscriptions",
                collation.1
            ))
        })
    }
}

/// Runs PostgreSQL's `lower` function on a sample under a collation.
async fn lower(
    catalog: &CatalogReader,
    (schema, name): &CollationName,
    sample: &str,
) -> tidegate_sql::Result<Box<str>> {
    let (schema, name) = (quoted(schema), quoted(name));
    let query = format!("SELECT pg_catalog.lower(:sample::text COLLATE {schema}.{name})");
    let outcome = catalog.query_snapshot(&[], &[(&query, &[sample])]).await?;
    let results = outcome.rows();
    let row = results.iter().flatten().next();
    Ok(row.map(|row| text(row, 0)).unwrap_or_default())
}
