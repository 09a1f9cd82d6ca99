//! Describes schemas as JSON (docs/API.md, "Schemas"), for `GET /api/v4/sql/schema`.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::Arc;

use tidegate_values::TypeKind;

use crate::model::{Column, ConstraintKind, Referenced, Relation, Schema};

/// Describes schemas: a JSON array of the objects of [`describe`].
pub fn describe_all(schemas: &[Arc<Schema>]) -> String {
    let mut text = String::from("[");
    list(&mut text, schemas, |text, schema| {
        text.push_str(&describe(schema));
    });
    text.push(']');
    text
}

/// Describes a schema: a compact JSON object with `name` and `tables`. Tables and constraints are
/// ordered by name, columns by position.
pub fn describe(schema: &Schema) -> String {
    let mut text = String::from("{\"name\":");
    string(&mut text, schema.name());
    text.push_str(",\"tables\":[");
    list(&mut text, schema.relations(), |text, (_, relation)| {
        table(text, schema, relation);
    });
    text.push_str("]}");
    text
}

fn table(text: &mut String, schema: &Schema, relation: &Relation) {
    text.push_str("{\"name\":");
    string(text, &relation.name);
    text.push_str(",\"columns\":[");
    list(text, &*relation.columns, column);
    text.push_str("],\"constraints\":[");
    list(text, constraints(relation), |text, described| {
        constraint(text, schema, &described);
    });
    text.push(']');
    comment(text, relation.comment.as_deref());
    text.push('}');
}

fn column(text: &mut String, column: &Column) {
    text.push_str("{\"name\":");
    string(text, &column.name);
    let (name, is_array) = match column.r#type.kind() {
        TypeKind::Array(element) => (element.name(), true),
        _ => (column.r#type.name(), false),
    };
    text.push_str(",\"_typname\":");
    string(text, name);
    let is_nullable = !column.not_null;
    let written = write!(
        text,
        ",\"_is_array\":{is_array},\"is_nullable\":{is_nullable}"
    );
    written.expect("a string takes what is written");
    comment(text, column.comment.as_deref());
    text.push('}');
}

/// A constraint with the members of its JSON object.
struct DescribedConstraint<'a> {
    name: &'a str,
    kind: &'static str,
    columns: Vec<&'a str>,
    referenced: Option<&'a Referenced>,
}

/// All constraints of a relation, sorted by name.
fn constraints(relation: &Relation) -> Vec<DescribedConstraint<'_>> {
    let of = |name, kind, columns: &[_], referenced| DescribedConstraint {
        name,
        kind,
        columns: columns
            .iter()
            .map(|id| &*relation.column(*id).name)
            .collect(),
        referenced,
    };
    let primary = relation.primary_key.iter();
    let primary = primary.map(|key| of(&key.name, "primary", &key.columns, None));
    let unique = relation.unique.iter();
    let unique = unique.map(|key| of(&key.name, "unique", &key.columns, None));
    let foreign = relation.foreign_keys.iter();
    let foreign = foreign.map(|key| of(&key.name, "foreign", &key.columns, Some(&key.referenced)));
    let others = relation.other_constraints.iter().map(|other| {
        let (kind, referenced) = match &other.kind {
            ConstraintKind::Primary => ("primary", None),
            ConstraintKind::Unique => ("unique", None),
            ConstraintKind::Check => ("check", None),
            ConstraintKind::Exclude => ("exclude", None),
            ConstraintKind::Foreign(referenced) => ("foreign", Some(referenced)),
        };
        DescribedConstraint {
            name: &other.name,
            kind,
            columns: other.columns.iter().map(|name| &**name).collect(),
            referenced,
        }
    });
    let mut all: Vec<_> = primary.chain(unique).chain(foreign).chain(others).collect();
    all.sort_by(|one, other| one.name.cmp(other.name));
    all
}

fn constraint(text: &mut String, schema: &Schema, described: &DescribedConstraint<'_>) {
    text.push_str("{\"name\":");
    string(text, described.name);
    text.push_str(",\"constraint\":");
    string(text, described.kind);
    text.push_str(",\"columns\":[");
    list(text, &described.columns, |text, name| string(text, name));
    text.push(']');
    if let Some(referenced) = described.referenced {
        let (table, columns) = referenced_columns(schema, referenced);
        text.push_str(",\"referenced_table\":");
        string(text, &table);
        text.push_str(",\"referenced_columns\":[");
        list(text, columns, string);
        text.push(']');
    }
    text.push('}');
}

/// The name of the referenced table, with a schema prefix if the table is in another schema, and
/// the names of the referenced columns.
fn referenced_columns<'a>(
    schema: &'a Schema,
    referenced: &'a Referenced,
) -> (Cow<'a, str>, Vec<&'a str>) {
    match referenced {
        Referenced::SameSchema(id, columns) => {
            let relation = schema.relation(*id);
            let names = columns.iter().map(|id| &*relation.column(*id).name);
            (Cow::Borrowed(&*relation.name), names.collect())
        }
        Referenced::OtherSchema {
            schema: other,
            relation,
            columns,
        } => {
            let table = if **other == *schema.name() {
                Cow::Borrowed(&**relation)
            } else {
                Cow::Owned(format!("{other}.{relation}"))
            };
            (table, columns.iter().map(|name| &**name).collect())
        }
    }
}

fn comment(text: &mut String, comment: Option<&str>) {
    if let Some(comment) = comment {
        text.push_str(",\"comment\":");
        string(text, comment);
    }
}

/// Appends items to `text` with `write`, and commas between them.
fn list<T>(
    text: &mut String,
    items: impl IntoIterator<Item = T>,
    mut write: impl FnMut(&mut String, T),
) {
    for (place, item) in items.into_iter().enumerate() {
        if place > 0 {
            text.push(',');
        }
        write(text, item);
    }
}

/// Appends a JSON string to `text`.
fn string(text: &mut String, value: &str) {
    let json = serde_json::to_string(value).expect("a string is JSON");
    text.push_str(&json);
}
