use serde_json::{Value, json};
use tidegate_methods::openrpc::{Info, document};
use tidegate_methods::{Field, Signature};
use tidegate_sql::Type;

use crate::fixture::method;

const INFO: Info<'_> = Info {
    title: "reef",
    version: "4",
    url: Some("https://api.example/api/v4/call"),
};

fn field(name: &str, r#type: &Type, nullable: bool) -> Field {
    Field::new(name.to_owned(), r#type, nullable)
}

#[test]
fn methods_become_an_openrpc_document() {
    let signature = Signature {
        parameters: vec![
            field("a", &Type::INT4, false),
            field("r", &Type::NUM_RANGE, false),
        ],
        columns: vec![
            field("id", &Type::INT8, false),
            field("at", &Type::POINT, true),
            field("doc", &Type::JSONB, true),
        ],
    };
    let body = r#"{"method":"b","q":"insert into t values (:a, :r) returning *"}"#;
    let typed = method(body, Some(signature));
    let bare = method(
        r#"{"method":"a","q":"select :x, :y","output_format":"csv"}"#,
        None,
    );
    let text = document(&INFO, &[typed, bare]);
    let document: Value = serde_json::from_str(&text).unwrap();

    assert_eq!(document["openrpc"], "1.3.2");
    assert_eq!(document["info"], json!({"title": "reef", "version": "4"}));
    assert_eq!(
        document["servers"][0]["url"],
        "https://api.example/api/v4/call"
    );
    let [a, b] = document["methods"].as_array().unwrap().as_slice() else {
        unreachable!("{text}")
    };
    assert_eq!(
        a["params"],
        json!([
            {"name": "x", "required": true, "schema": {}},
            {"name": "y", "required": true, "schema": {}},
        ])
    );
    assert_eq!(
        a["result"]["schema"]["properties"]["data"],
        json!({"type": "string"})
    );
    assert_eq!(a["result"]["schema"]["required"], json!(["schema", "data"]));

    assert_eq!(
        (&b["name"], &b["paramStructure"]),
        (&json!("b"), &json!("by-name"))
    );
    assert_eq!(
        b["params"][0],
        json!({"name": "a", "required": true, "schema": {"type": "number"}})
    );
    let bound = json!({"anyOf": [{"type": "string"}, {"type": "null"}]});
    assert_eq!(b["params"][1]["schema"]["properties"]["lower"], bound);
    let result = &b["result"]["schema"];
    assert_eq!(
        result["required"],
        json!(["schema", "data", "affected_rows"])
    );
    assert_eq!(
        result["properties"]["data"],
        json!({"type": "array", "items": {
            "type": "object",
            "properties": {
                "id": {"type": "number"},
                "at": {"anyOf": [{"$ref": "#/components/schemas/Point"}, {"type": "null"}]},
                "doc": {},
            },
            "required": ["id", "at", "doc"],
        }})
    );
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
