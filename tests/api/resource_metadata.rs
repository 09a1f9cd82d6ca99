//! How a client that knows only the address of the API finds the authorization server (RFC 9728):
//! `WWW-Authenticate` names the metadata of the resource.

use reqwest::Method;
use serde_json::{Value, json};

use crate::node::{Node, operator};
use crate::scopes::{GRAPHQL, SCOPES, token};
use crate::service::{TextResponse, demo};

const PATH: &str = "/.well-known/oauth-protected-resource";

/// The value of `WWW-Authenticate` of a service with this public URL. `error` is empty for a
/// request without a token.
pub(crate) fn challenge(public_url: &str, error: &str) -> String {
    let metadata = format!("resource_metadata=\"{public_url}{PATH}\"");
    match error {
        "" => format!("Bearer {metadata}"),
        error => format!("Bearer error=\"{error}\", {metadata}"),
    }
}

#[tokio::test]
async fn the_resource_metadata_name_this_service() {
    let response = demo().ask(Method::GET, PATH, None, None).await;
    let document = response.json();
    let url = demo().url.as_str();
    assert_eq!(document["resource"], url, "{document}");
    assert_eq!(document["authorization_servers"], json!([url]));
    assert_eq!(document["bearer_methods_supported"], json!(["header"]));
    assert_eq!(document["scopes_supported"], json!(SCOPES));
}

#[tokio::test]
async fn a_client_that_is_refused_finds_the_authorization_server() {
    let response = demo().ask(Method::GET, "/api/v4/users", None, None).await;
    let header = response.header("www-authenticate").to_owned();
    let (_, url) = header.split_once("resource_metadata=\"").unwrap();
    let document = async |url: &str| {
        let response = demo().client.get(url).send().await.unwrap();
        response.json::<Value>().await.unwrap()
    };
    let resource = document(url.trim_end_matches('"')).await;
    let server = resource["authorization_servers"][0].as_str().unwrap();
    let server = document(&format!("{server}/.well-known/oauth-authorization-server")).await;
    assert_eq!(
        server["token_endpoint"],
        format!("{}/api/v4/oauth", demo().url)
    );
}

#[tokio::test]
async fn every_surface_names_the_metadata_in_its_refusals() {
    let url = demo().url.as_str();
    let (read, sql) = (token("read").await, token("sql").await);
    for (path, token, status, error) in [
        ("/api/v4/methods", None, 401, ""),
        ("/api/v4/methods", Some("nonsense"), 401, "invalid_token"),
        ("/api/v4/methods", Some(&*read), 403, "insufficient_scope"),
        (GRAPHQL, Some("nonsense"), 401, "invalid_token"),
        (GRAPHQL, Some(&*sql), 403, "insufficient_scope"),
        ("/api/v4/call", Some("nonsense"), 401, "invalid_token"),
        ("/api/v4/call", Some(&*read), 403, "insufficient_scope"),
        ("/api/v4/oauth/userinfo", None, 401, ""),
    ] {
        let body = json!({"query": "{__typename}", "jsonrpc": "2.0", "method": "x", "id": 1});
        let request = demo().request(Method::POST, path);
        let response = TextResponse::of(match (token, path.ends_with("userinfo")) {
            (Some(token), _) => request.bearer_auth(token).json(&body),
            (None, true) => request,
            (None, false) => request.json(&body),
        });
        let response = response.await;
        assert_eq!(response.status, status, "{path} {response:?}");
        let header = response.header("www-authenticate");
        assert_eq!(header, challenge(url, error), "{path}");
    }
}

#[tokio::test]
async fn behind_a_proxy_the_metadata_are_at_the_public_url() {
    let operator = operator().await;
    let node = Node::start(&operator).await;
    let request = node.client.get(format!("{}/api/v4/users", node.url));
    let response = TextResponse::of(request.header("host", "inner.example:8080")).await;
    let header = response.header("www-authenticate");
    assert_eq!(header, challenge("http://api.localhost", ""));
}
