//! Letter case under the collations of a table, as PostgreSQL says when it is asked.

use std::collections::HashMap;
use std::sync::Arc;

use tidegate_filter::Letters;
use tidegate_sql::Principal;

use crate::database::Database;
use crate::error::{Error, Result};
use crate::policy::quoted;
use crate::predicate::Predicate;
use crate::question::{ask, text};

const COLLATIONS: &str = "\
    SELECT a.attname::text, n.nspname::text, c.collname::text \
    FROM pg_catalog.pg_attribute a \
    JOIN pg_catalog.pg_collation c ON c.oid = a.attcollation \
    JOIN pg_catalog.pg_namespace n ON n.oid = c.collnamespace \
    WHERE a.attrelid = :relation::oid AND a.attnum > 0 AND NOT a.attisdropped";

/// The schema and the name of a collation.
pub(crate) type Collation = (Box<str>, Box<str>);

/// Has a filter know how its columns fold letters.
///
/// # Errors
/// [`Error::Filter`] where letters are folded as in no other language; [`Error::Rights`] when
/// PostgreSQL does not answer.
pub(crate) async fn learn(
    database: &Database,
    relation: u32,
    predicate: &mut Predicate,
) -> Result<()> {
    let folding = predicate.folding();
    if folding.is_empty() {
        return Ok(());
    }
    let who = Principal::Catalog(database.name.clone());
    let relation = relation.to_string();
    let asked = ask(
        &*database.executor,
        &who,
        &[],
        &[(COLLATIONS, &[&relation])],
    )
    .await;
    let answers = asked.map_err(|error| Error::Rights(Arc::new(error)))?;
    let mut known = HashMap::new();
    for row in answers.answers().iter().flatten() {
        let (column, collation) = (text(row, 0), (text(row, 1), text(row, 2)));
        if folding.contains(&&*column) {
            known.insert(column, letters(database, &collation).await?);
        }
    }
    predicate.learn(&known);
    Ok(())
}

/// The rules of a collation.
async fn letters(database: &Database, collation: &Collation) -> Result<Arc<Letters>> {
    let known = database.letters.lock().get(collation).cloned();
    let letters = if let Some(letters) = known {
        letters
    } else {
        let lower = match lower(database, collation, Letters::SAMPLE).await {
            // The encoding of the database has not all of these letters.
            Err(tidegate_sql::Error::Rejected(_)) => {
                lower(database, collation, Letters::ASCII).await
            }
            lower => lower,
        };
        let lower = lower.map_err(|error| Error::Rights(Arc::new(error)))?;
        let letters = Letters::of(&lower).map(Arc::new);
        let mut known = database.letters.lock();
        known.insert(collation.clone(), letters.clone());
        letters
    };
    letters.ok_or_else(|| {
        Error::Filter(format!(
            "letter case under the collation {} is judged by PostgreSQL only",
            collation.1
        ))
    })
}

async fn lower(
    database: &Database,
    (schema, name): &Collation,
    sample: &str,
) -> tidegate_sql::Result<Box<str>> {
    let who = Principal::Catalog(database.name.clone());
    let (schema, name) = (quoted(schema), quoted(name));
    let query = format!("SELECT pg_catalog.lower(:sample::text COLLATE {schema}.{name})");
    let asked = ask(&*database.executor, &who, &[], &[(&query, &[sample])]).await?;
    let answers = asked.answers();
    let row = answers.iter().flatten().next();
    Ok(row.map(|row| text(row, 0)).unwrap_or_default())
}
