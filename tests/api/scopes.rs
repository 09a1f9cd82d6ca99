//! Tests scopes (docs/API.md, "Scopes"): what a token may be used for, at every endpoint.

use reqwest::Method;
use serde_json::{Value, json};

use crate::resource_metadata::challenge as bearer_challenge;
use crate::service::{TextResponse, demo};
use crate::socket_client::{Socket, open};

pub(crate) const SCOPES: [&str; 5] = ["read", "write", "methods", "sql", "admin"];

pub(crate) const GRAPHQL: &str = "/api/graphql/schema/public";

/// The response to a token request of alice with more members.
pub(crate) async fn token_response(more: Value) -> Value {
    let mut body = json!({
        "grant_type": "password", "client_id": "demo-app", "database": "demo",
        "username": "alice", "password": "alice1234",
    });
    let members = body.as_object_mut().unwrap();
    members.extend(more.as_object().unwrap().clone());
    demo()
        .rest_with(None, ("POST", "/api/v4/oauth"), &body)
        .await
        .body
}

/// An access token of alice with this scope.
pub(crate) async fn token(scope: &str) -> String {
    let response = token_response(json!({"scope": scope})).await;
    assert_eq!(response["scope"], scope, "{response}");
    response["access_token"].as_str().unwrap().to_owned()
}

pub(crate) async fn send(token: &str, method: Method, path: &str, body: &Value) -> TextResponse {
    let request = demo().request(method, path).bearer_auth(token);
    TextResponse::of(if body.is_null() {
        request
    } else {
        request.json(body)
    })
    .await
}

/// The code of a response in any form: `errorCode`, or that of a GraphQL error.
pub(crate) fn code(response: &TextResponse) -> String {
    let body: Value = serde_json::from_str(&response.text).unwrap_or_default();
    let rest = body["errorCode"].as_str();
    let graphql = body["errors"][0]["extensions"]["code"].as_str();
    rest.or(graphql).unwrap_or_default().to_owned()
}

/// The operations that take a bearer token: the method and the path, the body, and the scopes that
/// open it. A socket checks each message; see below.
const OPERATIONS: &[(&str, &str, &str)] = &[
    (
        "POST /api/graphql/schema/public",
        r#"{"query": "{__typename}"}"#,
        "read",
    ),
    (
        "POST /api/graphql/schema/public",
        r#"{"query": "mutation {__typename}"}"#,
        "write",
    ),
    (
        "GET /api/graphql/schema/public?query=%7B__typename%7D",
        "",
        "read",
    ),
    ("GET /api/graphql/schema/public/sdl", "", "read write"),
    ("GET /api/v4/sql/schema", "", "read sql"),
    ("GET /api/v4/sql/schema/public", "", "read sql"),
    ("GET /api/v4/events", "", "read write methods sql admin"),
    (
        "GET /api/v4/events/stream?schema=public&query=subscription%20%7Bx%7D",
        "",
        "read",
    ),
    ("POST /api/v4/sql", r#"{"q": "select 1 as one"}"#, "sql"),
    ("POST /api/v4/sql", r#"[{"q": "select 1 as one"}]"#, "sql"),
    (
        "POST /api/v4/sql",
        r#"{"method": "scoped_method", "q": "select 1 as one"}"#,
        "admin",
    ),
    ("POST /api/v4/call", CALL, "methods"),
    ("POST /api/v4/rpc", CALL, "methods"),
    ("POST /api/v4/call/dry", CALL, "methods"),
    ("GET /api/v4/methods", "", "methods"),
    ("GET /api/v4/methods/none", "", "methods"),
    ("GET /api/v4/interfaces", "", "methods"),
    ("GET /api/v4/openrpc.json", "", "methods"),
    (
        "POST /api/v4/methods",
        r#"{"method": "scoped_method", "q": "select 1 as one"}"#,
        "admin",
    ),
    (
        "PATCH /api/v4/methods/none",
        r#"{"q": "select 2"}"#,
        "admin",
    ),
    ("DELETE /api/v4/methods/none", "", "admin"),
    ("GET /api/v4/clients", "", "admin"),
    ("POST /api/v4/clients", "{}", "admin"),
    ("GET /api/v4/clients/none", "", "admin"),
    ("PATCH /api/v4/clients/none", "{}", "admin"),
    ("DELETE /api/v4/clients/none", "", "admin"),
    ("GET /api/v4/issuers", "", "admin"),
    ("POST /api/v4/issuers", "{}", "admin"),
    ("GET /api/v4/issuers/none", "", "admin"),
    ("PATCH /api/v4/issuers/none", "{}", "admin"),
    ("DELETE /api/v4/issuers/none", "", "admin"),
    ("GET /api/v4/users", "", "admin"),
    ("POST /api/v4/users", "{}", "admin"),
    ("GET /api/v4/users/alice", "", "admin"),
    // The password is too short, so that it does not become that of alice.
    (
        "PATCH /api/v4/users/alice",
        r#"{"password": "stolen"}"#,
        "admin",
    ),
    ("DELETE /api/v4/users/none", "", "admin"),
    ("POST /api/v4/users/alice/token", "{}", "admin"),
    ("GET /api/v4/users/none/credentials", "", "admin"),
    (
        "DELETE /api/v4/users/none/credentials/passkeys",
        "",
        "admin",
    ),
    ("GET /api/v4/sessions", "", "admin"),
    ("DELETE /api/v4/sessions/none", "", "admin"),
    ("GET /api/v4/tokens", "", "admin"),
    ("POST /api/v4/tokens", "{}", "admin"),
    ("DELETE /api/v4/tokens/none", "", "admin"),
    ("GET /api/v4/activity", "", "admin"),
    ("GET /api/v4/audit", "", "admin"),
    ("GET /api/v4/tenant", "", "admin"),
    ("PATCH /api/v4/tenant", "{}", "admin"),
    (
        "GET /api/v4/schemas/public/tables/x/privileges",
        "",
        "admin",
    ),
    (
        "PATCH /api/v4/schemas/public/tables/x/privileges",
        "{}",
        "admin",
    ),
    // These need the scope `openid`.
    ("GET /api/v4/oauth/userinfo", "", ""),
    ("POST /api/v4/oauth/userinfo", "", ""),
];

const CALL: &str = r#"{"jsonrpc": "2.0", "method": "no_such_method", "id": 1}"#;

/// Whether `path`, which may have a query, is one of those of a route.
fn is_path_of(path: &str, route: &str) -> bool {
    let path = path.split('?').next().unwrap();
    let (path, route) = (path.split('/'), route.split('/'));
    path.clone().count() == route.clone().count()
        && path
            .zip(route)
            .all(|(part, expected)| part == expected || expected.starts_with('{'))
}

/// The paths of the description are those of the table of routes, which a test of the server
/// compares.
#[tokio::test]
async fn every_operation_with_a_token_has_a_row() {
    let description = demo()
        .ask(Method::GET, "/api/v4/openapi.json", None, None)
        .await;
    let mut seen = 0;
    for (route, item) in description.json()["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let schemes = operation["security"].as_array().into_iter().flatten();
            if !schemes.map(|scheme| &scheme["bearer"]).any(Value::is_array) {
                continue;
            }
            seen += 1;
            let has_row = OPERATIONS.iter().any(|(operation, ..)| {
                let (its, path) = operation.split_once(' ').unwrap();
                its.eq_ignore_ascii_case(method) && is_path_of(path, route)
            });
            assert!(has_row, "which scopes open {method} {route}?");
        }
    }
    assert!(seen > 40, "{seen} operations");
}

#[tokio::test]
async fn each_scope_allows_its_own_endpoints_only() {
    for scope in SCOPES {
        let token = token(scope).await;
        for (operation, body, open) in OPERATIONS {
            let (method, path) = operation.split_once(' ').unwrap();
            let body = serde_json::from_str(body).unwrap_or_default();
            let response = send(&token, method.parse().unwrap(), path, &body).await;
            let outside = code(&response) == "INSUFFICIENT_SCOPE";
            let is_open = open.split(' ').any(|it| it == scope);
            assert_eq!(outside, !is_open, "{scope}: {operation} {response:?}");
            if outside {
                assert_eq!(response.status, 403, "{operation}");
                let challenge = response.header("www-authenticate");
                let expected = bearer_challenge(&demo().url, "insufficient_scope");
                assert_eq!(challenge, expected, "{operation}");
            } else {
                assert_ne!(response.status, 401, "{operation}");
            }
        }
        // In an array, only the response of the refused request has the error, because requests
        // before it may have been executed.
        let array = json!([{"query": "{__typename}"}]);
        let response = send(&token, Method::POST, GRAPHQL, &array).await;
        let inside: Value = serde_json::from_str(&response.text).unwrap_or_default();
        let refused = inside[0]["errors"][0]["extensions"]["code"] == "INSUFFICIENT_SCOPE";
        assert_eq!(refused, scope == "write", "{scope} {response:?}");
    }
}

#[tokio::test]
async fn a_token_without_scopes_or_with_those_of_openid_connect_allows_every_endpoint() {
    for scope in ["", "openid", "openid profile email"] {
        let token = token(scope).await;
        for (method, path, body) in [
            (Method::POST, GRAPHQL, json!({"query": "{__typename}"})),
            (Method::POST, "/api/v4/sql", json!({"q": "select 1 as one"})),
            (Method::GET, "/api/v4/methods", Value::Null),
            (Method::GET, "/api/v4/sessions", Value::Null),
        ] {
            let response = send(&token, method, path, &body).await;
            assert_eq!(response.status, 200, "{scope} {path} {response:?}");
        }
    }
}

async fn socket(scope: &str) -> Socket {
    let token = token(scope).await;
    open(&format!("/?token={token}"), &[]).await.unwrap()
}

#[tokio::test]
async fn a_socket_checks_each_message() {
    let messages = [
        (json!({"q": "select 1 as one", "id": "1"}), "sql"),
        (
            json!({"jsonrpc": "2.0", "method": "no_such_method", "id": "1"}),
            "methods",
        ),
        (
            json!({"type": "subscribe", "id": "1", "schema": "public", "query": "{__typename}"}),
            "read",
        ),
        (
            json!({"type": "subscribe", "id": "1", "schema": "public", "query": "mutation {__typename}"}),
            "write",
        ),
        (
            json!({"type": "subscription", "id": "1", "schema": "public", "rel": "nothing"}),
            "read",
        ),
    ];
    for scope in SCOPES {
        for (message, open) in &messages {
            let mut socket = socket(scope).await;
            let response = socket.ask(message.clone()).await;
            let refused = response["error"] == "insufficient_scope";
            assert_eq!(refused, scope != *open, "{scope}: {message} {response}");
            if refused {
                assert_eq!(response["id"], "1", "{response}");
            }
        }
    }
}
