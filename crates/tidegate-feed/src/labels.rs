//! Labels that enums got after they were learnt: nothing in the log tells of them but the rows that
//! hold them.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use tidegate_sql::log::LogError;
use tidegate_sql::{Principal, Type, TypeKind};

use crate::change::{Change, Event};
use crate::database::Database;
use crate::question::{ask, text};
use crate::transaction::Assembler;

/// How long a label that was asked for in vain is not asked for again: it has got another name since.
const AGAIN: Duration = Duration::from_secs(10);

const LABELS: &str = "\
    SELECT e.enumtypid::text, e.enumlabel::text FROM pg_catalog.pg_enum e \
    WHERE e.enumtypid = ANY (:types::oid[]) ORDER BY e.enumtypid, e.enumsortorder";

/// A label and the number of its enum.
pub(crate) type Label = (u32, Box<[u8]>);

/// The labels of a change that nobody knows; none of those that were asked for just now.
pub(crate) fn strange(database: &Database, change: &Change) -> Vec<Label> {
    let Event::Row(_, tuple) = &change.event else {
        return Vec::new();
    };
    let mut strange = change.shape.strange_labels(tuple);
    if !strange.is_empty() {
        let mut asked = database.asked_labels.lock();
        asked.retain(|_, at| at.elapsed() < AGAIN);
        strange.retain(|label| !asked.contains_key(label));
    }
    strange
}

/// Learns the labels of enums anew, and gives the change a shape that knows them.
///
/// # Errors
/// [`LogError::Unavailable`] when PostgreSQL does not answer.
pub(crate) async fn learn(
    database: &Database,
    assembler: &mut Assembler,
    strange: Vec<Label>,
    change: &mut Change,
) -> Result<(), LogError> {
    let enums: Vec<u32> = strange.iter().map(|(r#type, _)| *r#type).collect();
    let labels = look_up(database, &enums).await;
    let labels = labels.map_err(|error| LogError::Unavailable(Box::new(error)))?;
    let types = {
        let mut types = database.types.lock();
        let mut all = HashMap::clone(&types);
        for r#type in all.values_mut() {
            if let Some(today) = relabelled(r#type, &labels) {
                *r#type = today;
            }
        }
        *types = all.into();
        types.clone()
    };
    let now = Instant::now();
    let asked = strange.into_iter().map(|label| (label, now));
    database.asked_labels.lock().extend(asked);
    change.shape = assembler.retype(&change.shape, &types);
    Ok(())
}

async fn look_up(
    database: &Database,
    enums: &[u32],
) -> tidegate_sql::Result<HashMap<u32, Vec<String>>> {
    let who = Principal::Catalog(database.name.clone());
    let list: Vec<String> = enums.iter().map(u32::to_string).collect();
    let list = format!("{{{}}}", list.join(","));
    let asked = ask(&*database.executor, &who, &[], &[(LABELS, &[&list])]).await?;
    let mut labels: HashMap<u32, Vec<String>> = HashMap::new();
    for row in asked.answers().iter().flatten() {
        let r#type = text(row, 0)
            .parse()
            .map_err(tidegate_sql::Error::internal)?;
        labels.entry(r#type).or_default().push(text(row, 1).into());
    }
    Ok(labels)
}

/// An enum, or a domain over one, with the labels of today.
fn relabelled(r#type: &Type, labels: &HashMap<u32, Vec<String>>) -> Option<Type> {
    let kind = match r#type.kind() {
        TypeKind::Enum(_) => TypeKind::Enum(labels.get(&r#type.oid())?.clone()),
        TypeKind::Domain(inner) => TypeKind::Domain(relabelled(inner, labels)?),
        _ => return None,
    };
    let (name, schema) = (r#type.name().to_owned(), r#type.schema().to_owned());
    Some(Type::new(name, r#type.oid(), kind, schema))
}
