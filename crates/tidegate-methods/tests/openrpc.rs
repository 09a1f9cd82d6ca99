use std::sync::Arc;

use serde_json::{Value, json};
use tidegate_methods::openrpc::{Info, document};
use tidegate_methods::{Method, Signature, SignatureField};
use tidegate_values::Type;

use crate::fixture::method;

const INFO: Info<'_> = Info {
    title: "reef",
    version: "4",
    url: Some("https://api.example/api/v4/call"),
};

fn field(name: &str, r#type: &Type, nullable: bool) -> SignatureField {
    SignatureField::new(name.to_owned(), r#type, nullable)
}

/// The document for these methods.
fn documented(methods: &[Arc<Method>]) -> Value {
    serde_json::from_str(&document(&INFO, methods)).unwrap()
}

#[test]
fn a_method_without_a_dry_run_has_the_names_of_its_parameters() {
    let body = r#"{"method":"a","q":"select :x, :y","output_format":"csv"}"#;
    let document = documented(&[method(body, None)]);
    assert_eq!(document["openrpc"], "1.3.2");
    assert_eq!(document["info"], json!({"title": "reef", "version": "4"}));
    assert_eq!(document["servers"][0]["url"], INFO.url.unwrap());
    let a = &document["methods"][0];
    assert_eq!(
        (&a["name"], &a["paramStructure"]),
        (&json!("a"), &json!("by-name"))
    );
    assert_eq!(
        a["params"],
        json!([
            {"name": "x", "required": true, "schema": {}},
            {"name": "y", "required": true, "schema": {}},
        ])
    );
    let result = &a["result"]["schema"];
    assert_eq!(result["properties"]["data"], json!({"type": "string"}));
    assert_eq!(result["required"], json!(["schema", "data"]));
}

#[test]
fn a_signature_becomes_schemas() {
    let (a, r) = (
        field("a", &Type::INT4, false),
        field("r", &Type::NUM_RANGE, false),
    );
    let columns = [
        ("id", Type::INT8, false),
        ("at", Type::POINT, true),
        ("doc", Type::JSONB, true),
    ];
    let signature = Signature {
        parameters: vec![a, r],
        columns: columns
            .map(|(name, r#type, nullable)| field(name, &r#type, nullable))
            .to_vec(),
    };
    let body = r#"{"method":"b","q":"insert into t values (:a, :r) returning *"}"#;
    let first = method(r#"{"method":"a","q":"select 1"}"#, None);
    let document = documented(&[method(body, Some(signature)), first]);
    let b = &document["methods"][1];
    let number = json!({"type": "number"});
    assert_eq!(
        b["params"][0],
        json!({"name": "a", "required": true, "schema": number})
    );
    let bound = json!({"anyOf": [{"type": "string"}, {"type": "null"}]});
    assert_eq!(b["params"][1]["schema"]["properties"]["lower"], bound);
    let result = &b["result"]["schema"];
    assert_eq!(
        result["required"],
        json!(["schema", "data", "affected_rows"])
    );
    let rows = json!({"type": "array", "items": {
        "type": "object",
        "properties": {
            "id": number,
            "at": {"anyOf": [{"$ref": "#/components/schemas/Point"}, {"type": "null"}]},
            "doc": {},
        },
        "required": ["id", "at", "doc"],
    }});
    assert_eq!(result["properties"]["data"], rows);
}

#[test]
fn every_reference_leads_somewhere() {
    let types = [
        Type::INTERVAL,
        Type::POINT,
        Type::LINE,
        Type::LSEG,
        Type::BOX,
        Type::PATH,
        Type::POLYGON,
        Type::CIRCLE,
        Type::RECORD,
        Type::INT8MULTI_RANGE,
        Type::BOX_ARRAY,
    ];
    let columns = types.iter().map(|t| field(t.name(), t, true)).collect();
    let signature = Signature {
        parameters: Vec::new(),
        columns,
    };
    let info = Info { url: None, ..INFO };
    let text = document(
        &info,
        &[method(r#"{"method":"a","q":"select 1"}"#, Some(signature))],
    );
    let document: Value = serde_json::from_str(&text).unwrap();
    assert!(document.get("servers").is_none());
    let mut references = 0;
    for reference in text.split(r##""$ref":"#"##).skip(1) {
        let pointer = reference.split('"').next().unwrap();
        assert!(document.pointer(pointer).is_some(), "{pointer}");
        references += 1;
    }
    assert!(references > 10);
}

#[test]
fn without_methods_it_is_still_a_document() {
    let document: Value = serde_json::from_str(&document(&INFO, &[])).unwrap();
    assert_eq!(document["methods"], json!([]));
}
