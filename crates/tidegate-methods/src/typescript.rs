//! Generates TypeScript interfaces for methods.
//!
//! The text consists of one interface `Api` with one line for each method, and the types that the
//! interface uses. It is self-contained and compiles under `tsc --strict`. The same methods give
//! the same bytes.
//!
//! | Values | TypeScript |
//! |---|---|
//! | integers, `oid`, floats | `number` (although NaN and the infinities are strings) |
//! | `bool` | `boolean` |
//! | texts, `numeric`, dates and times in any format, `bytea`, everything else | `string` |
//! | `json` `jsonb` | `unknown` |
//! | `interval` `point` `line` `path` `circle` | `Interval` `Point` `Line` `Path` `Circle` |
//! | `lseg` `box` | `Segment` |
//! | `polygon` | `Point[]` |
//! | ranges, multiranges | `Range<T>`, `Range<T>[]` |
//! | `PostGIS` | `Geometry` |
//! | composites | `{ attribute: T \| null; }`; anonymous ones `Record<string, string \| null>` |
//! | arrays | `T[]` |

use std::fmt::Write;
use std::sync::Arc;

use tidegate_values::OutputFormat;

use crate::method::Method;
use crate::signature::{Signature, SignatureField, ValueForm};

/// The TypeScript types that may be declared, in the order in which the text declares them. A
/// declaration may use types that are declared later.
const DECLARATIONS: &[(Helper, &str)] = &[
    (
        Helper::Interval,
        "export type Interval = { y: number; m: number; d: number; h: number; i: number; s: number; };\n",
    ),
    (
        Helper::Line,
        "export type Line = { A: number; B: number; C: number; };\n",
    ),
    (
        Helper::Segment,
        "export type Segment = { start: Point; end: Point; };\n",
    ),
    (
        Helper::Path,
        "export type Path = { open: boolean; points: Point[]; };\n",
    ),
    (
        Helper::Circle,
        "export type Circle = { center: Point; radius: number; };\n",
    ),
    (
        Helper::Point,
        "export type Point = { x: number; y: number; };\n",
    ),
    (
        Helper::Range,
        "export type Range<T> = { lower: T | null; upper: T | null; lowerInclusive: boolean; \
         upperInclusive: boolean; empty?: true; };\n",
    ),
    (
        Helper::Geometry,
        "export type Geometry =\n    \
         | { type: \"Point\"; coordinates: number[]; }\n    \
         | { type: \"LineString\" | \"MultiPoint\"; coordinates: number[][]; }\n    \
         | { type: \"Polygon\" | \"MultiLineString\"; coordinates: number[][][]; }\n    \
         | { type: \"MultiPolygon\"; coordinates: number[][][][]; }\n    \
         | { type: \"GeometryCollection\"; geometries: Geometry[]; };\n",
    ),
];

/// A TypeScript type that may be declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Helper {
    Interval,
    Line,
    Segment,
    Path,
    Circle,
    Point,
    Range,
    Geometry,
}

/// The TypeScript text for these methods, with the methods sorted by name. If a method had no dry
/// run, its parameters and rows may have any content.
pub fn interfaces(methods: &[Arc<Method>]) -> String {
    let mut methods: Vec<&Method> = methods.iter().map(|method| &**method).collect();
    methods.sort_by_key(|method| method.name());
    let mut text = String::from("export interface Api {\n");
    for method in &methods {
        text.push_str("    ");
        write_name(
            method.name().as_str(),
            method.name().as_str() == "new",
            &mut text,
        );
        text.push_str("(params: ");
        write_params(method.signature(), &mut text);
        text.push_str("): Promise<");
        write_result(method, &mut text);
        text.push_str(">;\n");
    }
    text.push_str("}\n");
    let used = used(&methods);
    for (_, declaration) in DECLARATIONS
        .iter()
        .filter(|(helper, _)| used.contains(helper))
    {
        text.push('\n');
        text.push_str(declaration);
    }
    text
}

fn write_params(signature: Option<&Signature>, text: &mut String) {
    match signature {
        Some(signature) => write_fields(&signature.parameters, text),
        None => text.push_str("Record<string, unknown>"),
    }
}

fn write_result(method: &Method, text: &mut String) {
    if let OutputFormat::Csv | OutputFormat::Ndjson = method.output_format() {
        text.push_str("string");
        return;
    }
    match method.signature() {
        Some(signature) => write_fields(&signature.columns, text),
        None => text.push_str("Record<string, unknown>"),
    }
    text.push_str("[]");
}

fn write_fields(fields: &[SignatureField], text: &mut String) {
    let fields = fields
        .iter()
        .map(|f| (f.name.as_str(), &f.form, f.nullable));
    write_object(fields, text);
}

/// Writes an object type. If there are no members, writes a type that matches only empty objects.
fn write_object<'a>(
    mut members: impl Iterator<Item = (&'a str, &'a ValueForm, bool)>,
    text: &mut String,
) {
    let Some(first) = members.next() else {
        text.push_str("Record<string, never>");
        return;
    };
    text.push_str("{ ");
    for (name, form, nullable) in std::iter::once(first).chain(members) {
        write_name(name, false, text);
        text.push_str(": ");
        write_form(form, text);
        // The type `unknown` includes null already.
        if nullable && *form != ValueForm::Json {
            text.push_str(" | null");
        }
        text.push_str("; ");
    }
    text.push('}');
}

fn write_form(form: &ValueForm, text: &mut String) {
    let name = match form {
        ValueForm::Boolean => "boolean",
        ValueForm::Number => "number",
        ValueForm::Text => "string",
        ValueForm::Json => "unknown",
        ValueForm::Interval => "Interval",
        ValueForm::Point => "Point",
        ValueForm::Line => "Line",
        ValueForm::Segment => "Segment",
        ValueForm::Path => "Path",
        ValueForm::Polygon => "Point[]",
        ValueForm::Circle => "Circle",
        ValueForm::Geometry => "Geometry",
        ValueForm::Record => "Record<string, string | null>",
        ValueForm::Array(element) => {
            write_form(element, text);
            "[]"
        }
        ValueForm::Range(bound) => {
            write_range(bound, text);
            ""
        }
        ValueForm::Multirange(bound) => {
            write_range(bound, text);
            "[]"
        }
        ValueForm::Composite(attributes) => {
            let attributes = attributes.iter();
            write_object(
                attributes.map(|(name, form)| (name.as_str(), form, true)),
                text,
            );
            ""
        }
    };
    text.push_str(name);
}

fn write_range(bound: &ValueForm, text: &mut String) {
    text.push_str("Range<");
    write_form(bound, text);
    text.push('>');
}

/// Writes a name unchanged if it is a valid member name and `quoted` is false, and otherwise as a
/// string literal. Every keyword is a valid member name, except `new` before a parenthesis, which
/// would declare a constructor.
fn write_name(name: &str, quoted: bool, text: &mut String) {
    let begins = |c: char| c.is_ascii_alphabetic() || c == '_' || c == '$';
    let plain = name.starts_with(begins) && name.chars().all(|c| begins(c) || c.is_ascii_digit());
    if plain && !quoted {
        text.push_str(name);
        return;
    }
    text.push('"');
    for c in name.chars() {
        match c {
            '"' | '\\' => text.extend(['\\', c]),
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') => {
                let _ = write!(text, "\\u{:04x}", u32::from(c));
            }
            c => text.push(c),
        }
    }
    text.push('"');
}

/// The types that the methods use and that must be declared.
fn used(methods: &[&Method]) -> Vec<Helper> {
    let mut used = Vec::new();
    let mut visit = |form: &ValueForm| {
        used.extend_from_slice(match form {
            ValueForm::Interval => &[Helper::Interval],
            ValueForm::Point | ValueForm::Polygon => &[Helper::Point],
            ValueForm::Line => &[Helper::Line],
            ValueForm::Segment => &[Helper::Segment, Helper::Point],
            ValueForm::Path => &[Helper::Path, Helper::Point],
            ValueForm::Circle => &[Helper::Circle, Helper::Point],
            ValueForm::Geometry => &[Helper::Geometry],
            ValueForm::Range(_) | ValueForm::Multirange(_) => &[Helper::Range],
            _ => &[],
        });
    };
    for method in methods {
        let Some(signature) = method.signature() else {
            continue;
        };
        let json = method.output_format() == OutputFormat::Json;
        let columns = signature.columns.iter().filter(|_| json);
        for field in signature.parameters.iter().chain(columns) {
            field.form.walk(&mut visit);
        }
    }
    used
}
