//! Compares every response in the tests of this crate with the OpenAPI document.

use std::sync::LazyLock;

use http::{Method, StatusCode};
use serde_json::Value;

static DOCUMENT: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_slice(&tidegate_server::openapi()).unwrap());

/// Fails if the document has the operation but does not have the status.
pub(crate) fn assert_documented(method: &Method, path: &str, status: StatusCode) {
    let method = method.as_str().to_lowercase();
    let operation = DOCUMENT["paths"]
        .as_object()
        .unwrap()
        .iter()
        .find(|(template, _)| matches(template, path))
        .and_then(|(_, item)| item.get(method));
    if let Some(operation) = operation {
        let status = status.as_u16().to_string();
        assert!(
            operation["responses"].get(&status).is_some(),
            "{path} answers {status}, which the OpenAPI document does not tell"
        );
    }
}

fn matches(template: &str, path: &str) -> bool {
    let path = path.strip_suffix('/').unwrap_or(path);
    let mut parts = path.split('/');
    template.split('/').all(|known| {
        parts
            .next()
            .is_some_and(|part| known == part || known.starts_with('{'))
    }) && parts.next().is_none()
}
