//! Resolves the type names that callers write in type hints.

use postgres_types::FromSql;
use tidegate_sql::{Error, InputError, TypeHint};
use tidegate_values::{Type, TypeKind};
use tidegate_wire::is_outage;

use super::internal_query::InternalQuery;
use super::type_lookup::resolve_types;
use crate::connection::Connection;
use crate::metadata::LONGEST_TYPE_NAME;
use crate::statement::StatementTask;

/// Selects the OID of the type with the name `$1`. The name may be a synonym, have a schema, or
/// name an array (`X[]` or `_X`). A type modifier is ignored.
const RESOLVE: &str = "SELECT pg_catalog.to_regtype($1)::pg_catalog.oid";

/// The longest name in bytes that is sent to PostgreSQL. Longer names are refused, because
/// PostgreSQL parses a name in quadratic time and cannot interrupt the parsing. All valid names are
/// shorter: a schema and a type of 63 bytes each, quoted, with every quote doubled, with modifiers
/// and brackets.
const LONGEST_SENT: usize = 512;

/// The type of each hint of the statement; `None` for a placeholder without a hint.
/// `initial_names` says whether names resolve as at the start of the session. If they do not,
/// cached types are neither used nor stored.
pub(super) async fn resolve_hints(
    connection: &mut Connection,
    task: &StatementTask<'_>,
    initial_names: bool,
) -> Result<Vec<Option<Type>>, Error> {
    let mut types = Vec::with_capacity(task.bound.hints.len());
    for (place, hint) in task.bound.hints.iter().enumerate() {
        let Some(TypeHint(name)) = hint else {
            types.push(None);
            continue;
        };
        let found = if initial_names {
            cached_hint_type(connection, task, name).await?
        } else {
            query_hint_type(connection, task, name).await?
        };
        let Some(found) = found else {
            let placeholder = task.bound.statement.placeholders().get(place);
            return Err(Error::Input(InputError::UnknownHint {
                name: placeholder.cloned().unwrap_or_default(),
                hint: shortened(name),
            }));
        };
        types.push(Some(found));
    }
    Ok(types)
}

async fn cached_hint_type(
    connection: &mut Connection,
    task: &StatementTask<'_>,
    name: &str,
) -> Result<Option<Type>, Error> {
    let (role, metadata) = (&task.login.role, task.metadata);
    let known = metadata.hint(role, name);
    if known.is_some() {
        return Ok(known);
    }
    let generation = metadata.generation();
    let found = query_hint_type(connection, task, name).await?;
    if let Some(found) = &found {
        metadata.keep_hint(role, name, found, generation);
    }
    Ok(found)
}

async fn query_hint_type(
    connection: &mut Connection,
    task: &StatementTask<'_>,
    name: &str,
) -> Result<Option<Type>, Error> {
    if name.contains('\0') || name.len() > LONGEST_SENT {
        return Ok(None);
    }
    let query = InternalQuery {
        text: RESOLVE,
        parameters: &[name],
        switch: task.switch,
        is_kept: false,
        deadline: task.deadline,
    };
    let mut oid = None;
    let mut take = |row: tidegate_values::RawRow<'_>| {
        if let Some(raw) = row.values().next()? {
            oid = Some(u32::from_sql(&Type::OID, raw).ok()?);
        }
        Some(())
    };
    match connection.run_internal_query(&query, 1, &mut take).await? {
        Ok(()) => {}
        Err(error) if is_outage(&error.rejection.sqlstate) => {
            return Err(connection.rejected(error, task.bound));
        }
        // PostgreSQL reports an error, such as a syntax error, for text that is not a type
        // name.
        Err(_) => return Ok(None),
    }
    let Some(oid) = oid else { return Ok(None) };
    let types = resolve_types(connection, task.metadata, &[oid], task.deadline).await?;
    Ok(types
        .into_iter()
        .next()
        .filter(|found| *found.kind() != TypeKind::Pseudo))
}

/// The name, shortened for an error message.
fn shortened(name: &str) -> String {
    let mut characters = name.chars();
    let mut shortened: String = characters.by_ref().take(LONGEST_TYPE_NAME).collect();
    if characters.next().is_some() {
        shortened.push('…');
    }
    shortened
}
