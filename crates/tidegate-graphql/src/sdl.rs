//! Prints a schema in the schema definition language (GraphQL, section 3).

use std::fmt::Write as _;

use crate::chunked::ChunkedWriter;
use crate::definition::{ArgumentDefinition, FieldDefinition, FieldIter, TypeDefinition, Types};

/// Prints the types of a schema, sorted by name. Printing can pause after any field.
pub(crate) struct Printer<'s> {
    types: Box<dyn Iterator<Item = TypeDefinition<'s>> + Send + 's>,
    /// The fields of the current type that are not printed yet; `None` between two types.
    fields: Option<FieldIter<'s>>,
    first: bool,
}

impl<'s> Printer<'s> {
    pub(crate) fn new(types: &'s Types) -> Self {
        let types = types.iter().filter(|defined| !defined.is_standard());
        Self {
            types: Box::new(types),
            fields: None,
            first: true,
        }
    }

    /// Prints a field, or the start or end of a type. Returns false if the schema was already
    /// complete before the call.
    fn step(&mut self, out: &mut String) -> bool {
        let Some(fields) = &mut self.fields else {
            return self.begin(out);
        };
        if let Some(field) = fields.next() {
            print_field(&field, out);
        } else {
            out.push_str("}\n");
            self.fields = None;
        }
        true
    }

    fn begin(&mut self, out: &mut String) -> bool {
        let Some(defined) = self.types.next() else {
            return false;
        };
        if !std::mem::take(&mut self.first) {
            out.push('\n');
        }
        describe(defined.description().as_deref(), "", out);
        if defined.is_scalar() {
            out.push_str("scalar ");
            out.push_str(defined.name());
            if let Some(url) = defined.specified_by() {
                let _ = write!(out, " @specifiedBy(url: \"{url}\")");
            }
            out.push('\n');
        } else {
            out.push_str("type ");
            out.push_str(defined.name());
            out.push_str(" {\n");
            self.fields = Some(defined.fields());
        }
        true
    }
}

impl ChunkedWriter for Printer<'_> {
    fn write_chunk(&mut self, out: &mut String, bytes: usize) -> bool {
        while out.len() < bytes {
            if !self.step(out) {
                return false;
            }
        }
        true
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

/// Prints a description as a block string. If the rules of block strings would change the text,
/// prints a plain string.
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
