//! Renders the OpenAPI description as a page: operations by tag, then the schemas.

mod schema;

use maud::{Markup, PreEscaped, html};
use serde_json::{Map, Value};

use crate::link::Target;
use crate::markdown;
use schema::{anchor, properties, type_of};

const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

/// An operation of the OpenAPI description, with its method and path.
struct ApiOperation<'v> {
    method: &'static str,
    path: &'v str,
    value: &'v Value,
    /// The parameters that all operations of the same path have.
    shared: &'v Value,
}

/// The content of the page for an OpenAPI description.
pub(crate) fn page(base: &str, description: &Value) -> Markup {
    let operations = operations(description);
    let tags = array(&description["tags"]);
    html! {
        h1 { "HTTP API" }
        (prose(&description["info"]["description"]))
        p {
            "This page shows the "
            a href={(base) "/api/v4/openapi.json"} { "OpenAPI description" }
            " of this server. The chapter "
            a href={(base) "/docs/interface"} { "The interface" }
            " explains it, with examples."
        }
        nav.operations aria-label="Operations" {
            @for tag in tags {
                section {
                    h2 { a href={"#" (anchor("tag", text(&tag["name"])))} { (text(&tag["name"])) } }
                    ul {
                        @for operation in tagged(&operations, tag) {
                            li {
                                a href={"#" (text(&operation.value["operationId"]))} {
                                    (method(operation)) " " code { (operation.path) }
                                }
                            }
                        }
                    }
                }
            }
        }
        @for tag in tags {
            section {
                h2 id=(anchor("tag", text(&tag["name"]))) { (text(&tag["name"])) }
                (prose(&tag["description"]))
                @for operation in tagged(&operations, tag) { (self::operation(description, operation)) }
            }
        }
        section {
            h2 id="schemas" { "Schemas" }
            @for (name, schema) in object(&description["components"]["schemas"]) {
                section.schema {
                    h3 id=(anchor("schema", name)) { (name) }
                    (prose(&schema["description"]))
                    @let members = properties(description, schema);
                    @if let Some(members) = members { (members) } @else { p { (type_of(schema)) } }
                }
            }
        }
    }
}

fn operations(description: &Value) -> Vec<ApiOperation<'_>> {
    let paths = object(&description["paths"]);
    let mut found = Vec::new();
    for (path, item) in paths {
        for method in METHODS {
            if item[method].is_object() {
                found.push(ApiOperation {
                    method,
                    path,
                    value: &item[method],
                    shared: &item["parameters"],
                });
            }
        }
    }
    found
}

fn tagged<'o, 'v>(
    operations: &'o [ApiOperation<'v>],
    tag: &'o Value,
) -> impl Iterator<Item = &'o ApiOperation<'v>> {
    operations
        .iter()
        .filter(|operation| operation.value["tags"][0] == tag["name"])
}

fn operation(description: &Value, operation: &ApiOperation<'_>) -> Markup {
    let value = operation.value;
    let body = resolve(description, &value["requestBody"]);
    let parameters: Vec<_> = array(operation.shared)
        .iter()
        .chain(array(&value["parameters"]))
        .map(|parameter| resolve(description, parameter))
        .collect();
    html! {
        section.operation {
            h3 id=(text(&value["operationId"])) { (method(operation)) " " code { (operation.path) } }
            p.summary { (text(&value["summary"])) }
            (prose(&value["description"]))
            p.access { (access(value)) }
            @if !parameters.is_empty() { (self::parameters(description, &parameters)) }
            @if body.is_object() {
                h4 { "Request body" }
                (content(description, body))
            }
            h4 { "Responses" }
            (responses(description, &value["responses"]))
        }
    }
}

fn method(operation: &ApiOperation<'_>) -> Markup {
    html! { span class={"method " (operation.method)} { (operation.method.to_uppercase()) } }
}

/// A sentence about the credentials that an operation needs, from its security requirements.
fn access(value: &Value) -> &'static str {
    let schemes = array(&value["security"]);
    let has = |name: &str| schemes.iter().any(|scheme| scheme.get(name).is_some());
    let is_optional = schemes.iter().any(|scheme| object(scheme).count() == 0);
    match (has("bearer"), has("client"), has("metrics")) {
        (true, _, _) if is_optional => {
            "An access token; without one the default user's rights apply."
        }
        (true, _, _) => "An access token.",
        (_, true, _) => "The credentials of an OAuth client, or the id of a public one.",
        (_, _, true) => "The metrics token, where one is set.",
        _ => "No credentials.",
    }
}

fn parameters(description: &Value, parameters: &[&Value]) -> Markup {
    html! {
        h4 { "Parameters" }
        div.scroll tabindex="0" {
            table {
                thead { tr { th { "name" } th { "in" } th { "type" } th { "meaning" } } }
                tbody {
                    @for parameter in parameters {
                        tr {
                            td { code { (text(&parameter["name"])) } (required(parameter)) }
                            td { (text(&parameter["in"])) }
                            td { (type_of(resolve(description, &parameter["schema"]))) }
                            td { (prose(&parameter["description"])) }
                        }
                    }
                }
            }
        }
    }
}

fn required(value: &Value) -> Markup {
    html! { @if value["required"] == true { " " small { "required" } } }
}

fn responses(description: &Value, responses: &Value) -> Markup {
    html! {
        div.scroll tabindex="0" {
            table {
                thead { tr { th { "status" } th { "meaning" } th { "content" } } }
                tbody {
                    @for (status, response) in object(responses) {
                        @let response = resolve(description, response);
                        tr {
                            td { code { (status) } }
                            td { (prose(&response["description"])) }
                            td {
                                @for (media_type, content) in object(&response["content"]) {
                                    p { code { (media_type) } " " (type_of(&content["schema"])) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The media types of a request body, each with its schema. A schema that is a reference becomes a
/// link. Otherwise the members of the body are listed.
fn content(description: &Value, body: &Value) -> Markup {
    html! {
        @for (media_type, content) in object(&body["content"]) {
            p { code { (media_type) } " " (type_of(&content["schema"])) }
            @if content["schema"]["$ref"].is_null() {
                @if let Some(members) = properties(description, &content["schema"]) { (members) }
            }
        }
    }
}

/// The object to which a `$ref` points. Any other value is returned unchanged.
fn resolve<'v>(description: &'v Value, value: &'v Value) -> &'v Value {
    value["$ref"]
        .as_str()
        .and_then(|reference| description.pointer(reference.strip_prefix('#')?))
        .unwrap_or(value)
}

/// Renders a description, which is Markdown.
fn prose(value: &Value) -> Markup {
    let rendered = markdown::render(text(value), |link| Target::Url(link.to_owned()));
    PreEscaped(rendered.html)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn array(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn object(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flat_map(Map::iter)
}
