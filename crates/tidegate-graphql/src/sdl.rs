//! A schema in the schema definition language (GraphQL, section 3).

use crate::definition::{
    ArgumentDefinition, Definitions, FieldDefinition, TypeDefinition, TypeKind,
};

/// Prints a schema, ordered by name.
pub(crate) fn print(definitions: &Definitions<'_>) -> String {
    let mut out = String::with_capacity(definitions.types.len() * 512);
    for definition in &definitions.types {
        print_type(definition, &mut out);
    }
    out
}

fn print_type(definition: &TypeDefinition<'_>, out: &mut String) {
    match &definition.kind {
        TypeKind::Scalar(true) => return,
        TypeKind::Scalar(false) => {
            between(out);
            describe(definition.description.as_deref(), "", out);
            out.push_str("scalar ");
            out.push_str(&definition.name);
        }
        TypeKind::Object(fields) => {
            between(out);
            describe(definition.description.as_deref(), "", out);
            out.push_str("type ");
            out.push_str(&definition.name);
            out.push_str(" {\n");
            for field in fields {
                print_field(field, out);
            }
            out.push('}');
        }
    }
    out.push('\n');
}

fn between(out: &mut String) {
    if !out.is_empty() {
        out.push('\n');
    }
}

fn print_field(field: &FieldDefinition<'_>, out: &mut String) {
    describe(field.description.as_deref(), "  ", out);
    out.push_str("  ");
    out.push_str(&field.name);
    if !field.arguments.is_empty() {
        out.push_str("(\n");
        for argument in field.arguments {
            print_argument(argument, out);
        }
        out.push_str("  )");
    }
    out.push_str(": ");
    out.push_str(&field.r#type.to_string());
    out.push('\n');
}

fn print_argument(argument: &ArgumentDefinition, out: &mut String) {
    describe(Some(argument.description), "    ", out);
    out.push_str("    ");
    out.push_str(argument.name);
    out.push_str(": ");
    out.push_str(&argument.r#type.to_string());
    out.push('\n');
}

/// A description as a block string, or as a plain one where its text would be changed by the
/// rules of block strings.
fn describe(text: Option<&str>, indent: &str, out: &mut String) {
    let Some(text) = text else { return };
    out.push_str(indent);
    let plain = text
        .lines()
        .all(|line| line.trim() == line && !line.is_empty());
    let control = |character: char| character.is_control() && character != '\n';
    if plain && !text.contains("\"\"\"") && !text.contains(control) && !text.ends_with('\n') {
        out.push_str("\"\"\"\n");
        for line in text.lines() {
            out.push_str(indent);
            out.push_str(line);
            out.push('\n');
        }
        out.push_str(indent);
        out.push_str("\"\"\"\n");
    } else {
        out.push_str(&serde_json::Value::from(text).to_string());
        out.push('\n');
    }
}
