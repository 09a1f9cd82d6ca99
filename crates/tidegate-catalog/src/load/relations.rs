//! Reads the relations of schemas as a role sees them. A relation whose version is known is
//! returned without its document.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use tidegate_sql::{DatabaseName, Executor, Principal, QueryOptions, RoleName, Statement};
use tidegate_values::Parameter;

use super::{run, statement};
use crate::error::{Error, Result};

static RELATIONS: LazyLock<Arc<Statement>> =
    LazyLock::new(|| statement(include_str!("relations.sql")));

/// The rows of one schema in the result of `relations.sql`.
pub(crate) struct SchemaRows {
    /// The types of the columns of the schema's relations, as a JSON array.
    pub(crate) types: String,
    pub(crate) relations: Vec<RelationRow>,
}

/// A row of the result of `relations.sql`.
pub(crate) struct RelationRow {
    /// The version of the relation. It changes when the document or the type of a column changes,
    /// and differs from the versions of other relations.
    pub(crate) version: i64,
    /// A text that changes when the type of a column changes.
    pub(crate) types: String,
    /// The document of the relation as a JSON object; `None` if this version is in the list
    /// `known`.
    pub(crate) document: Option<String>,
}

/// Reads the relations of `schema`, or of all schemas that the role may use if `schema` is `None`.
/// A relation whose version is in `known` is returned without its document. The result is empty if
/// the role does not exist.
///
/// The statement runs as [`Principal::Catalog`]; the role is a parameter.
///
/// # Errors
///
/// [`Error::Sql`] if the statement fails.
pub(crate) async fn relations(
    executor: &dyn Executor,
    (database, role): (&DatabaseName, &RoleName),
    schema: Option<&str>,
    known: impl Iterator<Item = i64>,
    options: &QueryOptions,
) -> Result<BTreeMap<String, SchemaRows>> {
    let known: Vec<_> = known.map(|version| version.to_string()).collect();
    let known = format!("{{{}}}", known.join(","));
    let value = |name: &str, ask_views: &str| match name {
        "role" => Parameter::Text(role.as_str().into()),
        "known" => Parameter::Text(known.as_str().into()),
        "ask_views" => Parameter::Text(ask_views.into()),
        _ => schema.map_or(Parameter::Null, |schema| Parameter::Text(schema.into())),
    };
    let ask = |ask_views: &'static str| {
        let principal = Principal::Catalog(database.clone());
        run(
            executor,
            principal,
            &RELATIONS,
            move |name| value(name, ask_views),
            options,
        )
    };
    let rows = match ask("true").await {
        Err(error) if is_about_a_view(&error) => ask("false").await,
        rows => rows,
    }?;
    group(rows)
}

/// Whether the cause of an error may be a view or foreign table for which PostgreSQL cannot
/// determine the allowed writes, for example because the library of a foreign data wrapper is
/// missing. [`relations`] then repeats the query without determining these writes, so that one such
/// relation does not make the whole schema unusable. Returns `false` for timeouts, conflicts and a
/// lack of resources.
fn is_about_a_view(error: &Error) -> bool {
    let Error::Sql(error) = error else {
        return false;
    };
    let passing = ["55P03", "57014", "40001", "40P01"];
    let odd = |sqlstate: &str| !passing.contains(&sqlstate) && !sqlstate.starts_with("53");
    error.sqlstate().is_some_and(odd)
}

/// Groups the rows by schema. A row with an empty version describes the schema itself; its document
/// is the list of types.
fn group(rows: Vec<Vec<String>>) -> Result<BTreeMap<String, SchemaRows>> {
    let mut schemas = BTreeMap::new();
    let mut relations = Vec::with_capacity(rows.len());
    for row in rows {
        let [name, version, types, document] =
            <[String; 4]>::try_from(row).map_err(|_| Error::UnexpectedResult)?;
        if version.is_empty() {
            let schema = SchemaRows {
                types: document,
                relations: Vec::new(),
            };
            schemas.insert(name, schema);
            continue;
        }
        let relation = RelationRow {
            version: version.parse().map_err(|_| Error::UnexpectedResult)?,
            types,
            document: (!document.is_empty()).then_some(document),
        };
        relations.push((name, relation));
    }
    for (name, relation) in relations {
        let schema = schemas.get_mut(&name).ok_or(Error::UnexpectedResult)?;
        schema.relations.push(relation);
    }
    Ok(schemas)
}
