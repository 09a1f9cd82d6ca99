//! Converts the rows of the table of methods.

use serde::Serialize;
use tidegate_methods::{Definition, MethodName, Record, Signature, StringMap};
use tidegate_values::OutputFormat;

use crate::error::{Error, Result};
use crate::row::Record as Row;

/// A row to be written, in the form that `json_to_recordset` expects.
#[derive(Serialize)]
pub(super) struct NewRow<'a> {
    name: &'a str,
    q: &'a str,
    type_hints: &'a StringMap,
    type_formats: &'a StringMap,
    output_format: Option<&'static str>,
    creator: &'a str,
    by_owner: bool,
    signature: Option<String>,
}

/// The user who defined a method, and whether the tenant's owner wrote its statement.
#[derive(Clone, Copy)]
pub(super) struct Author<'a> {
    pub(super) creator: &'a str,
    pub(super) by_owner: bool,
}

impl<'a> NewRow<'a> {
    pub(super) fn of(
        definition: &'a Definition,
        author: Author<'a>,
        signature: Option<&Signature>,
    ) -> Self {
        Self {
            name: definition.name.as_str(),
            q: &definition.q,
            type_hints: &definition.type_hints,
            type_formats: &definition.type_formats,
            output_format: definition.output_format_name(),
            creator: author.creator,
            by_owner: author.by_owner,
            signature: signature.map(Signature::to_json),
        }
    }
}

/// The rows as a JSON array, which a statement reads with `json_to_recordset`.
pub(super) fn document(rows: &[NewRow<'_>]) -> Result<String> {
    serde_json::to_string(rows).map_err(Error::failed)
}

/// The names as a JSON array.
pub(super) fn names<'a>(names: impl IntoIterator<Item = &'a MethodName>) -> Result<String> {
    let names: Vec<&str> = names.into_iter().map(MethodName::as_str).collect();
    serde_json::to_string(&names).map_err(Error::failed)
}

pub(super) fn read(row: &mut Row<'_>) -> Result<Record> {
    let definition = Definition {
        name: MethodName::parse(row.text()?).map_err(Error::failed)?,
        q: row.string()?,
        type_hints: serde_json::from_str(row.text()?).map_err(Error::failed)?,
        type_formats: serde_json::from_str(row.text()?).map_err(Error::failed)?,
        output_format: row.optional_text()?.map(output_format).transpose()?,
    };
    Ok(Record {
        definition,
        creator: row.string()?,
        by_owner: row.boolean()?,
        signature: row.optional_text()?.and_then(Signature::from_json),
        version: row.count()?,
    })
}

fn output_format(name: &str) -> Result<OutputFormat> {
    OutputFormat::parse(name).ok_or_else(|| Error::failed("a method has an unknown output format"))
}
