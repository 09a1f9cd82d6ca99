//! Tests of documents that rarely change.

use http::Method;
use serde_json::Value;

use crate::fixture::{Api, request};

const DOCUMENTS: [&str; 3] = [
    "/api/v4/openapi.json",
    "/.well-known/jwks.json",
    "/.well-known/oauth-authorization-server",
];

#[tokio::test]
async fn a_document_that_the_client_has_is_not_sent_again() {
    let api = Api::start().await;
    for path in DOCUMENTS {
        let response = api.get(path).await;
        assert_eq!(response.status, 200, "{path}");
        assert_eq!(
            response.header("content-type"),
            "application/json; charset=utf-8"
        );
        assert_eq!(response.header("cache-control"), "public, max-age=300");
        let tag = response.header("etag");
        let known = request(Method::GET, path).header("if-none-match", tag);
        let again = api.call(known.body(String::new()).unwrap()).await;
        assert_eq!(
            (again.status.as_u16(), again.header("etag")),
            (304, tag),
            "{path}"
        );
        assert!(again.body.is_empty());
        let other = request(Method::GET, path).header("if-none-match", "\"other\"");
        assert_eq!(
            api.call(other.body(String::new()).unwrap()).await.status,
            200
        );
    }
}

#[tokio::test]
async fn that_nothing_has_changed_tells_no_length_and_the_same_vary() {
    let api = Api::start().await;
    let path = "/api/v4/openapi.json";
    let tag = api.get(path).await.header("etag").to_owned();
    for method in [Method::GET, Method::HEAD] {
        let known = request(method, path)
            .header("if-none-match", &tag)
            .header("accept-encoding", "gzip");
        let response = api.call(known.body(String::new()).unwrap()).await;
        assert_eq!(response.status, 304);
        assert_eq!(response.header("vary"), "Accept-Encoding");
        for name in ["content-length", "content-encoding", "content-type"] {
            assert_eq!(response.header(name), "", "{name}");
        }
    }
}

#[tokio::test]
async fn metadata_tells_where_things_are() {
    let api = Api::start().await;
    let document = api
        .get("/.well-known/oauth-authorization-server")
        .await
        .json();
    assert_eq!(document["issuer"], "http://127.0.0.1:8080");
    assert_eq!(
        document["token_endpoint"],
        "http://127.0.0.1:8080/api/v4/oauth"
    );
    assert_eq!(
        document["jwks_uri"],
        "http://127.0.0.1:8080/.well-known/jwks.json"
    );
}

#[tokio::test]
async fn the_openapi_document_has_exactly_the_routes_that_there_are() {
    let api = Api::start().await;
    let document = api.get("/api/v4/openapi.json").await.json();
    assert_eq!(document["openapi"], "3.1.0");
    let paths = document["paths"].as_object().unwrap();
    for (path, item) in paths {
        let reported = item.as_object().unwrap();
        for method in ["get", "post", "put", "patch", "delete"] {
            let verb = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
            let call = request(verb, path).body(String::new()).unwrap();
            let taken = api.call(call).await.status != 405;
            assert_eq!(taken, reported.contains_key(method), "{method} {path}");
        }
    }
    assert_eq!(paths.len(), 69);
}

#[tokio::test]
async fn every_operation_of_the_openapi_document_has_its_own_id() {
    let api = Api::start().await;
    let document = api.get("/api/v4/openapi.json").await.json();
    let mut ids = std::collections::BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            if method == "parameters" {
                continue;
            }
            let id = operation["operationId"].as_str();
            let id = id.unwrap_or_else(|| panic!("{method} {path} has no operationId"));
            assert!(ids.insert(id.to_owned()), "two operations are {id}");
        }
    }
}

#[tokio::test]
async fn every_reference_of_the_openapi_document_leads_somewhere() {
    let api = Api::start().await;
    let document = api.get("/api/v4/openapi.json").await.json();
    let mut references = Vec::new();
    collect(&document, &mut references);
    assert!(!references.is_empty());
    for reference in references {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
}

fn collect(value: &Value, references: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            references.extend(
                members
                    .get("$ref")
                    .map(|at| at.as_str().unwrap().to_owned()),
            );
            members
                .values()
                .for_each(|member| collect(member, references));
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, references)),
        _ => {}
    }
}
