//! Describes methods in an `OpenRPC` document (`OpenRPC` Specification 1.3.2), with schemas in JSON
//! Schema draft 7.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use tidegate_sql::statement::Kind;
use tidegate_values::OutputFormat;

use crate::method::Method;
use crate::signature::{SignatureField, ValueForm};

/// The description of the service in the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Info<'a> {
    /// The title of the API.
    pub title: &'a str,
    /// The version of the API.
    pub version: &'a str,
    /// The URL of the endpoint, if it is known.
    pub url: Option<&'a str>,
}

/// The document for these methods as JSON text, with the methods sorted by name. If a method had no
/// dry run, its parameters have names but no types, and its rows may have any content.
pub fn document(info: &Info<'_>, methods: &[Arc<Method>]) -> String {
    let mut methods: Vec<&Method> = methods.iter().map(|method| &**method).collect();
    methods.sort_by_key(|method| method.name());
    let mut document = json!({
        "openrpc": "1.3.2",
        "info": {"title": info.title, "version": info.version},
    });
    if let Some(url) = info.url {
        document["servers"] = json!([{"name": info.title, "url": url}]);
    }
    document["methods"] = methods.iter().copied().map(method).collect();
    document["components"] = json!({"schemas": schemas()});
    document.to_string()
}

fn method(method: &Method) -> Value {
    json!({
        "name": method.name().as_str(),
        "paramStructure": "by-name",
        "params": params(method),
        "result": {"name": "result", "schema": result(method)},
    })
}

fn params(method: &Method) -> Vec<Value> {
    let param = |name: &str, schema| json!({"name": name, "required": true, "schema": schema});
    match (method.signature(), method.statement()) {
        (Some(signature), _) => {
            let fields = signature.parameters.iter();
            fields.map(|field| param(&field.name, of(field))).collect()
        }
        (None, Ok(statement)) => {
            let names = statement.placeholders().iter();
            names.map(|name| param(name, json!({}))).collect()
        }
        (None, Err(_)) => Vec::new(),
    }
}

/// The schema of the member `result` in the response to a call.
fn result(method: &Method) -> Value {
    let data = match method.output_format() {
        OutputFormat::Csv | OutputFormat::Ndjson => json!({"type": "string"}),
        OutputFormat::Json | OutputFormat::GeoJson => {
            let row = method.signature().map(|signature| {
                let columns = signature.columns.iter();
                object(columns.map(|column| (column.name.as_str(), of(column))))
            });
            json!({"type": "array", "items": row.unwrap_or_else(|| json!({"type": "object"}))})
        }
    };
    let schema = json!({"$ref": "#/components/schemas/RowSchema"});
    let mut members = vec![("schema", schema), ("data", data)];
    if method
        .statement()
        .is_ok_and(|statement| statement.kind() == Kind::Write)
    {
        members.push(("affected_rows", json!({"type": "integer"})));
    }
    object(members.into_iter())
}

fn of(field: &SignatureField) -> Value {
    nullable(
        form(&field.form),
        field.nullable && field.form != ValueForm::Json,
    )
}

fn nullable(schema: Value, nullable: bool) -> Value {
    if nullable {
        json!({"anyOf": [schema, {"type": "null"}]})
    } else {
        schema
    }
}

/// The schema of an object in which all members are required.
fn object<'a>(members: impl Iterator<Item = (&'a str, Value)>) -> Value {
    let properties: Map<_, _> = members
        .map(|(name, schema)| (name.to_owned(), schema))
        .collect();
    let required: Vec<_> = properties.keys().cloned().collect();
    json!({"type": "object", "properties": properties, "required": required})
}

fn form(form: &ValueForm) -> Value {
    match form {
        ValueForm::Boolean => json!({"type": "boolean"}),
        ValueForm::Number => json!({"type": "number"}),
        ValueForm::Text => json!({"type": "string"}),
        ValueForm::Json => json!({}),
        ValueForm::Interval => named("Interval"),
        ValueForm::Point => named("Point"),
        ValueForm::Line => named("Line"),
        ValueForm::Segment => named("Segment"),
        ValueForm::Path => named("Path"),
        ValueForm::Polygon => array(named("Point")),
        ValueForm::Circle => named("Circle"),
        ValueForm::Geometry => named("Geometry"),
        ValueForm::Array(element) => array(self::form(element)),
        ValueForm::Range(bound) => range(bound),
        ValueForm::Multirange(bound) => array(range(bound)),
        ValueForm::Composite(attributes) => {
            let attributes = attributes.iter();
            object(attributes.map(|(name, form)| {
                (
                    name.as_str(),
                    nullable(self::form(form), *form != ValueForm::Json),
                )
            }))
        }
        ValueForm::Record => {
            json!({"type": "object", "additionalProperties": {"type": ["string", "null"]}})
        }
    }
}

fn named(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

fn array(items: impl Into<Value>) -> Value {
    let items = items.into();
    json!({"type": "array", "items": items})
}

fn range(bound: &ValueForm) -> Value {
    let bound = nullable(form(bound), true);
    let inclusive = json!({"type": "boolean"});
    let mut range = object(
        [
            ("lower", bound.clone()),
            ("upper", bound),
            ("lowerInclusive", inclusive.clone()),
            ("upperInclusive", inclusive),
        ]
        .into_iter(),
    );
    range["properties"]["empty"] = json!({"const": true});
    range
}

/// The schemas to which other schemas refer.
fn schemas() -> Value {
    let numbers = |names: &[&'static str]| {
        object(names.iter().map(|name| (*name, json!({"type": "number"}))))
    };
    let point = || named("Point");
    let column = object(
        [
            ("type", json!({"type": "string"})),
            ("array", json!({"type": "boolean"})),
        ]
        .into_iter(),
    );
    json!({
        "RowSchema": {"type": "object", "additionalProperties": column},
        "Interval": numbers(&["y", "m", "d", "h", "i", "s"]),
        "Point": numbers(&["x", "y"]),
        "Line": numbers(&["A", "B", "C"]),
        "Segment": object([("start", point()), ("end", point())].into_iter()),
        "Path": object(
            [("open", json!({"type": "boolean"})), ("points", array(point()))].into_iter(),
        ),
        "Circle": object([("center", point()), ("radius", json!({"type": "number"}))].into_iter()),
        "Geometry": {
            "type": "object",
            "properties": {
                "type": {
                    "enum": [
                        "Point", "MultiPoint", "LineString", "MultiLineString", "Polygon",
                        "MultiPolygon", "GeometryCollection",
                    ],
                },
                "coordinates": {"type": "array"},
                "geometries": array(named("Geometry")),
            },
            "required": ["type"],
        },
    })
}
