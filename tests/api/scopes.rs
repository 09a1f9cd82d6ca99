//! Tests scopes (docs/API.md, "Scopes"): what a token may be used for, at every endpoint.

use reqwest::Method;
use serde_json::{Value, json};

use crate::service::{TextResponse, demo};
use crate::socket_client::{Socket, open};

const SCOPES: [&str; 5] = ["read", "write", "methods", "sql", "admin"];

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
    let answer = token_response(json!({"scope": scope})).await;
    assert_eq!(answer["scope"], scope, "{answer}");
    answer["access_token"].as_str().unwrap().to_owned()
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
pub(crate) fn code(answer: &TextResponse) -> String {
    let body: Value = serde_json::from_str(&answer.text).unwrap_or_default();
    let rest = body["errorCode"].as_str();
    let graphql = body["errors"][0]["extensions"]["code"].as_str();
    rest.or(graphql).unwrap_or_default().to_owned()
}

#[tokio::test]
async fn each_scope_allows_its_own_endpoints_only() {
    demo()
        .rows(
            "demo",
            "create table scoped_rows (id int primary key)",
            json!({}),
        )
        .await;
    demo()
        .rows(
            "demo",
            "grant select, insert on scoped_rows to \"demo/alice\"",
            json!({}),
        )
        .await;
    let query = json!({"query": "{__typename}"});
    let mutation = json!({"query": "mutation {__typename}"});
    let call = json!({"jsonrpc": "2.0", "method": "no_such_method", "id": 1});
    let method = json!({"method": "scoped_method", "q": "select 1 as one"});
    let statement = json!({"q": "select 1 as one"});
    let array = json!([query]);
    let endpoints: Vec<(Method, &str, Value, &[&str])> = vec![
        (Method::POST, GRAPHQL, query.clone(), &["read"]),
        (Method::POST, GRAPHQL, mutation, &["write"]),
        (
            Method::GET,
            "/api/graphql/schema/public?query=%7B__typename%7D",
            Value::Null,
            &["read"],
        ),
        (
            Method::GET,
            "/api/graphql/schema/public/sdl",
            Value::Null,
            &["read", "write"],
        ),
        (
            Method::GET,
            "/api/v4/sql/schema",
            Value::Null,
            &["read", "sql"],
        ),
        (
            Method::GET,
            "/api/v4/sql/schema/public",
            Value::Null,
            &["read", "sql"],
        ),
        (
            Method::GET,
            "/api/v4/events/stream?schema=public&query=subscription%20%7Bx%7D",
            Value::Null,
            &["read"],
        ),
        (Method::POST, "/api/v4/sql", statement.clone(), &["sql"]),
        (Method::POST, "/api/v4/sql", json!([statement]), &["sql"]),
        (Method::POST, "/api/v4/sql", method.clone(), &["admin"]),
        (Method::POST, "/api/v4/call", call.clone(), &["methods"]),
        (Method::POST, "/api/v4/rpc", call.clone(), &["methods"]),
        (Method::POST, "/api/v4/call/dry", call, &["methods"]),
        (Method::GET, "/api/v4/methods", Value::Null, &["methods"]),
        (
            Method::GET,
            "/api/v4/methods/none",
            Value::Null,
            &["methods"],
        ),
        (Method::GET, "/api/v4/interfaces", Value::Null, &["methods"]),
        (
            Method::GET,
            "/api/v4/openrpc.json",
            Value::Null,
            &["methods"],
        ),
        (Method::POST, "/api/v4/methods", method, &["admin"]),
        (
            Method::PATCH,
            "/api/v4/methods/none",
            json!({"q": "select 2"}),
            &["admin"],
        ),
        (
            Method::DELETE,
            "/api/v4/methods/none",
            Value::Null,
            &["admin"],
        ),
        (Method::GET, "/api/v4/clients", Value::Null, &["admin"]),
        (Method::POST, "/api/v4/clients", json!({}), &["admin"]),
        (Method::PATCH, "/api/v4/clients/none", json!({}), &["admin"]),
        (Method::GET, "/api/v4/users/alice", Value::Null, &["admin"]),
        (
            Method::PATCH,
            "/api/v4/users/alice",
            json!({"password": "stolen-1234"}),
            &["none"],
        ),
        (Method::POST, "/api/v4/users", json!({}), &["admin"]),
        (
            Method::POST,
            "/api/v4/users/alice/token",
            json!({}),
            &["admin"],
        ),
        (Method::GET, "/api/v4/sessions", Value::Null, &["admin"]),
        (
            Method::DELETE,
            "/api/v4/sessions/none",
            Value::Null,
            &["admin"],
        ),
        (Method::GET, "/api/v4/tokens", Value::Null, &["admin"]),
        (Method::POST, "/api/v4/tokens", json!({}), &["admin"]),
        (
            Method::DELETE,
            "/api/v4/tokens/none",
            Value::Null,
            &["admin"],
        ),
        (Method::GET, "/api/v4/activity", Value::Null, &["admin"]),
        (Method::GET, "/api/v4/audit", Value::Null, &["admin"]),
        (Method::GET, "/api/v4/tenant", Value::Null, &["admin"]),
        (Method::PATCH, "/api/v4/tenant", json!({}), &["admin"]),
        (
            Method::GET,
            "/api/v4/schemas/public/tables/x/privileges",
            Value::Null,
            &["admin"],
        ),
    ];
    for scope in SCOPES {
        let token = token(scope).await;
        for (method, path, body, open) in &endpoints {
            // With the scope `admin`, this operation would change the password of the demo's user.
            if *open == ["none"] && scope == "admin" {
                continue;
            }
            let answer = send(&token, method.clone(), path, body).await;
            let outside = code(&answer) == "INSUFFICIENT_SCOPE";
            assert_eq!(
                outside,
                !open.contains(&scope),
                "{scope}: {method} {path} {answer:?}"
            );
            if outside {
                assert_eq!(answer.status, 403, "{method} {path}");
                let challenge = answer.header("www-authenticate");
                assert_eq!(challenge, "Bearer error=\"insufficient_scope\"", "{path}");
            } else {
                assert_ne!(answer.status, 401, "{method} {path}");
            }
        }
        // In an array, only the response of the refused request has the error, because requests
        // before it may have been executed.
        let answer = send(&token, Method::POST, GRAPHQL, &array).await;
        let inside: Value = serde_json::from_str(&answer.text).unwrap_or_default();
        let refused = inside[0]["errors"][0]["extensions"]["code"] == "INSUFFICIENT_SCOPE";
        assert_eq!(refused, scope == "write", "{scope} {answer:?}");
    }
    demo()
        .rows("demo", "drop table scoped_rows", json!({}))
        .await;
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
            let answer = send(&token, method, path, &body).await;
            assert_eq!(answer.status, 200, "{scope} {path} {answer:?}");
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
            let answer = socket.ask(message.clone()).await;
            let refused = answer["error"] == "insufficient_scope";
            assert_eq!(refused, scope != *open, "{scope}: {message} {answer}");
            if refused {
                assert_eq!(answer["id"], "1", "{answer}");
            }
        }
    }
}

#[tokio::test]
async fn the_resource_metadata_name_this_service() {
    let path = "/.well-known/oauth-protected-resource";
    let answer = demo().ask(Method::GET, path, None, None).await;
    let document = answer.json();
    let url = demo().url.as_str();
    assert_eq!(document["resource"], url, "{document}");
    assert_eq!(document["authorization_servers"], json!([url]));
    assert_eq!(document["bearer_methods_supported"], json!(["header"]));
    assert_eq!(document["scopes_supported"], json!(SCOPES));
}
