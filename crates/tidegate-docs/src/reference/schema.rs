//! Renders JSON schemas as HTML: a type in one line, and the members of an object as a table.

use maud::{Markup, html};
use serde_json::Value;

use super::{array, object, prose, resolve, text};

/// How many levels of members are listed. Level 1 has the members of the object itself.
const DEPTH: usize = 3;

/// The anchor of a tag or schema.
pub(super) fn anchor(kind: &str, name: &str) -> String {
    format!("{kind}-{name}").to_lowercase()
}

/// The type of a schema in one line.
pub(super) fn type_of(schema: &Value) -> Markup {
    let reference = schema["$ref"].as_str().and_then(|of| of.rsplit('/').next());
    if let Some(name) = reference {
        return html! { a href={"#" (anchor("schema", name))} { (name) } };
    }
    for (keyword, word) in [("oneOf", " or "), ("anyOf", " or "), ("allOf", " and ")] {
        if let Some(choices) = schema[keyword].as_array() {
            return joined(choices, word);
        }
    }
    if let Some(values) = schema["enum"].as_array() {
        return html! {
            @for (at, value) in values.iter().enumerate() {
                @if at > 0 { " or " }
                code { (value) }
            }
        };
    }
    if !schema["const"].is_null() {
        return html! { code { (schema["const"]) } };
    }
    named_type(schema)
}

fn joined(choices: &[Value], word: &str) -> Markup {
    html! {
        @for (at, choice) in choices.iter().enumerate() {
            @if at > 0 { (word) }
            (type_of(choice))
        }
    }
}

fn named_type(schema: &Value) -> Markup {
    let names: Vec<_> = match &schema["type"] {
        Value::String(name) => vec![name.as_str()],
        Value::Array(names) => names.iter().map(text).collect(),
        _ => vec!["any"],
    };
    html! {
        @for (at, name) in names.iter().enumerate() {
            @if at > 0 { " or " }
            @if *name == "array" { "array of " (type_of(&schema["items"])) }
            @else if *name == "object" && schema["additionalProperties"].is_object() {
                "object of " (type_of(&schema["additionalProperties"]))
            }
            @else { (name) }
        }
        @if let Some(format) = schema["format"].as_str() { " (" (format) ")" }
        @if !schema["default"].is_null() { ", default " code { (schema["default"]) } }
    }
}

/// A table of the members of an object; `None` for a schema without members.
pub(super) fn properties(description: &Value, schema: &Value) -> Option<Markup> {
    let mut rows = Vec::new();
    collect(description, schema, "", DEPTH, &mut rows);
    if rows.is_empty() {
        return None;
    }
    Some(html! {
        div.scroll tabindex="0" {
            table {
                thead { tr { th { "member" } th { "type" } th { "meaning" } } }
                tbody {
                    @for row in rows {
                        tr {
                            td { code { (row.name) } @if row.is_required { " " small { "required" } } }
                            td { (type_of(row.schema)) }
                            td { (prose(&row.schema["description"])) }
                        }
                    }
                }
            }
        }
    })
}

struct MemberRow<'v> {
    name: String,
    is_required: bool,
    schema: &'v Value,
}

/// Adds a row for each member of an object. `depth` is the number of levels that are still listed.
/// Members of a nested object are named `outer.inner`, and those of objects in an array
/// `outer[].inner`.
fn collect<'v>(
    description: &'v Value,
    schema: &'v Value,
    prefix: &str,
    depth: usize,
    rows: &mut Vec<MemberRow<'v>>,
) {
    if depth == 0 {
        return;
    }
    for part in array(&schema["allOf"]) {
        collect(description, resolve(description, part), prefix, depth, rows);
    }
    let required = array(&schema["required"]);
    for (name, member) in object(&schema["properties"]) {
        let is_required = required.iter().any(|of| of == name);
        let name = format!("{prefix}{name}");
        rows.push(MemberRow {
            name: name.clone(),
            is_required,
            schema: member,
        });
        collect(description, member, &format!("{name}."), depth - 1, rows);
        collect(
            description,
            &member["items"],
            &format!("{name}[]."),
            depth - 1,
            rows,
        );
    }
}
