//! Subscriptions to the rows of a table without GraphQL.

use std::fmt::Write as _;

use bytes::Bytes;
use serde_json::json;
use serde_json::value::RawValue;
use tidegate_catalog::Schema;
use tidegate_feed::{Cursor, Operation, Operations, Selection};
use tidegate_values::json::{self, JsonKind};

use super::message::MessageFields;
use super::subscribe::{Refusal, RequestedSubscription, predicate};

/// The form in which the events of a table subscription are written: messages with batches of
/// changes.
pub(super) struct RawFrame {
    pub id: Box<str>,
    /// The name of the database, as JSON.
    database: String,
    /// The name of the table with its schema, as JSON.
    relation: String,
    /// The columns that formed the primary key when the subscription started.
    key: Vec<Box<str>>,
    /// The columns that the client requested; by default all columns that are not generated.
    shown: Vec<Box<str>>,
}

/// Reads a subscribe message. Returns the requested subscription, and the form in which its events
/// are written.
pub(super) fn requested(
    fields: &MessageFields<'_>,
    schema: &Schema,
    database: &str,
) -> Result<(RequestedSubscription, RawFrame), Refusal> {
    let invalid =
        |invalid: super::message::InvalidMessage| Refusal::new(invalid.code, invalid.message);
    let name = fields.required("rel").map_err(invalid)?;
    let unknown = || Refusal::new("not_found", format!("there is no table {name:?}"));
    let id = schema.find(&name).ok_or_else(unknown)?;
    let relation = schema.relation(id);
    let shown = match fields.find("columns") {
        Some(columns) => columns_of(columns)?,
        None => relation
            .columns
            .iter()
            .filter(|column| column.generated.is_none())
            .map(|column| column.name.clone())
            .collect(),
    };
    for column in &shown {
        if relation.find_column(column).is_none() {
            return Err(Refusal::new(
                "bad_user_input",
                format!("`columns`: there is no column {column:?}"),
            ));
        }
    }
    let key: Vec<Box<str>> = relation.primary_key.as_ref().map_or_else(Vec::new, |key| {
        let columns = key.columns.iter();
        columns
            .map(|id| relation.column(*id).name.clone())
            .collect()
    });
    let mut selected: Vec<&str> = shown.iter().map(|name| &**name).collect();
    selected.extend(
        key.iter()
            .map(|name| &**name)
            .filter(|name| !shown.iter().any(|one| **one == **name)),
    );
    let requested = RequestedSubscription {
        key: "".into(),
        relation: relation.oid,
        operations: operations(fields)?,
        selection: Selection::of(selected).with_key(),
        predicate: predicate(fields.find("where").map(RawValue::get), schema, id)?,
    };
    let frame = RawFrame {
        id: fields.id.clone().unwrap_or_default(),
        database: json!(database).to_string(),
        relation: json!(format!("{}.{}", schema.name(), relation.name)).to_string(),
        key,
        shown,
    };
    Ok((requested, frame))
}

fn columns_of(columns: &RawValue) -> Result<Vec<Box<str>>, Refusal> {
    let invalid = || Refusal::new("invalid_message", "`columns` must be an array of names");
    let columns: Vec<Box<str>> = serde_json::from_str(columns.get()).map_err(|_| invalid())?;
    if columns.is_empty() {
        Err(invalid())
    } else {
        Ok(columns)
    }
}

/// Reads the member `op`: one operation, or several in an array or separated by commas. Without the
/// member, all operations are subscribed to.
fn operations(fields: &MessageFields<'_>) -> Result<Operations, Refusal> {
    let Some(value) = fields.find("op") else {
        return Ok(Operations::ALL);
    };
    let invalid = || {
        Refusal::new(
            "invalid_message",
            "`op` must be INSERT, UPDATE or DELETE, or several of them",
        )
    };
    let names: Vec<String> = if JsonKind::of(value.get()) == JsonKind::Array {
        serde_json::from_str(value.get()).map_err(|_| invalid())?
    } else {
        let text = json::string(value.get()).map_err(|_| invalid())?;
        text.split(',').map(|name| name.trim().to_owned()).collect()
    };
    let mut operations = Operations::default();
    for name in &names {
        operations = operations.with(match &*name.to_ascii_uppercase() {
            "INSERT" => Operation::Insert,
            "UPDATE" => Operation::Update,
            "DELETE" => Operation::Delete,
            _ => return Err(invalid()),
        });
    }
    if names.is_empty() {
        Err(invalid())
    } else {
        Ok(operations)
    }
}

impl RawFrame {
    /// Builds one message for several changes. `cursor` is the cursor of the final change in the
    /// batch. `key` has the columns of the current primary key. If it is `None`, the key at the
    /// start of the subscription is used.
    pub(super) fn batch(
        &self,
        changes: &[(Operation, &[u8])],
        key: Option<&[Box<str>]>,
        cursor: Cursor,
    ) -> Bytes {
        let key = key.unwrap_or(&self.key);
        let mut lists = [String::new(), String::new(), String::new()];
        let mut rows = String::new();
        for (operation, row) in changes {
            let row = std::str::from_utf8(row).unwrap_or("{}");
            let members = json::members(row).unwrap_or_default();
            let value = |name: &str| {
                let found = members.iter().find(|(known, _)| known == name);
                found.map_or("null", |(_, value)| value.get())
            };
            let list = &mut lists[*operation as usize];
            separate(list);
            // The key is written as an array of alternating names and values of its columns.
            let pairs: Vec<_> = key
                .iter()
                .map(|name| format!("{},{}", json!(name), value(name)))
                .collect();
            let _ = write!(list, "[{}]", pairs.join(","));
            separate(&mut rows);
            let pairs: Vec<_> = self
                .shown
                .iter()
                .map(|name| format!("{}:{}", json!(name), value(name)))
                .collect();
            let _ = write!(rows, "{{{}}}", pairs.join(","));
        }
        let [inserted, updated, deleted] = lists;
        format!(
            "{{\"type\":\"batch\",\"id\":{id},\"db\":{db},\"batch\":{{{db}:{{{relation}:{{\
             \"INSERT\":[{inserted}],\"UPDATE\":[{updated}],\"DELETE\":[{deleted}],\
             \"full_data\":[{rows}]}}}}}},\"cursor\":\"{cursor}\"}}",
            id = self.id,
            db = self.database,
            relation = self.relation,
        )
        .into()
    }
}

fn separate(list: &mut String) {
    if !list.is_empty() {
        list.push(',');
    }
}
