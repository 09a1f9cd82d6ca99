//! Handles enum labels that were added or renamed after the enum was read. The change log does not
//! report such a change of an enum, so a new label first appears in a row.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use tidegate_changelog::LogError;
use tidegate_values::{Type, TypeKind};

use crate::catalog_query::{CatalogReader, oid_array, text};
use crate::decode::change::{ChangeKind, RowChange};
use crate::decode::decoder::ChangeDecoder;
use crate::decode::type_cache::{EnumLabel, TypeCache};

/// The minimum time between two lookups of the same label. The catalog lacks a label that was
/// renamed after the row was written. Without this minimum, every row with such a label would cause
/// a lookup.
const REQUERY_AFTER: Duration = Duration::from_secs(10);

const LABELS: &str = "\
    SELECT e.enumtypid::text, e.enumlabel::text FROM pg_catalog.pg_enum e \
    WHERE e.enumtypid = ANY (:types::oid[]) ORDER BY e.enumtypid, e.enumsortorder";

/// The labels in a change that are missing in the cached enums, except labels that were looked up
/// less than [`REQUERY_AFTER`] ago.
pub(crate) fn unknown(types: &TypeCache, change: &RowChange) -> Vec<EnumLabel> {
    let ChangeKind::Row(_, tuple) = &change.kind else {
        return Vec::new();
    };
    let mut unknown = change.schema.unknown_labels(tuple);
    if !unknown.is_empty() {
        let mut queried = types.queried_labels.lock();
        queried.retain(|_, at| at.elapsed() < REQUERY_AFTER);
        unknown.retain(|label| !queried.contains_key(label));
    }
    unknown
}

/// Reads the labels of the enums in `unknown` again, and gives the change a schema with these
/// labels.
///
/// # Errors
///
/// [`LogError::Unavailable`] if the query fails, for example because PostgreSQL does not respond.
pub(crate) async fn refresh(
    catalog: &CatalogReader,
    types: &TypeCache,
    decoder: &mut ChangeDecoder,
    unknown: Vec<EnumLabel>,
    change: &mut RowChange,
) -> Result<(), LogError> {
    let enums: Vec<u32> = unknown.iter().map(|(r#type, _)| *r#type).collect();
    let labels = look_up(catalog, &enums)
        .await
        .map_err(|error| LogError::Unavailable(Box::new(error)))?;
    let updated = types.update(|all| {
        for r#type in all.values_mut() {
            if let Some(current) = with_labels(r#type, &labels) {
                *r#type = current;
            }
        }
    });
    let now = Instant::now();
    let queried = unknown.into_iter().map(|label| (label, now));
    types.queried_labels.lock().extend(queried);
    change.schema = decoder.update_types(&change.schema, &updated);
    Ok(())
}

async fn look_up(
    catalog: &CatalogReader,
    enums: &[u32],
) -> tidegate_sql::Result<HashMap<u32, Vec<String>>> {
    let enums = oid_array(enums);
    let outcome = catalog.query_snapshot(&[], &[(LABELS, &[&enums])]).await?;
    let mut labels: HashMap<u32, Vec<String>> = HashMap::new();
    for row in outcome.rows().iter().flatten() {
        let r#type = text(row, 0)
            .parse()
            .map_err(tidegate_sql::Error::internal)?;
        labels.entry(r#type).or_default().push(text(row, 1).into());
    }
    Ok(labels)
}

/// The type with its labels from `labels`; `None` if the type is neither an enum nor a domain over
/// an enum, or if `labels` lacks the labels of the enum.
fn with_labels(r#type: &Type, labels: &HashMap<u32, Vec<String>>) -> Option<Type> {
    let kind = match r#type.kind() {
        TypeKind::Enum(_) => TypeKind::Enum(labels.get(&r#type.oid())?.clone()),
        TypeKind::Domain(inner) => TypeKind::Domain(with_labels(inner, labels)?),
        _ => return None,
    };
    let (name, schema) = (r#type.name().to_owned(), r#type.schema().to_owned());
    Some(Type::new(name, r#type.oid(), kind, schema))
}
