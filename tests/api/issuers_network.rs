//! Tests that a node without the setting `private_issuers` sends no request into its own network.

use std::io::ErrorKind;
use std::net::TcpListener;

use reqwest::Method;
use serde_json::{Value, json};

use crate::issuers::{ISSUERS, World, world};
use crate::node::Node;

const REFUSED: &str = "private addresses are not allowed";

/// Checks that a URL is refused in a new issuer, and in a change of the issuer `public`.
async fn assert_refused(world: &World, (member, url): (&str, &str), reason: &str) {
    let mut new = json!({"name": "b", "issuer": "https://id.example.com", "audience": "b"});
    new[member] = json!(url);
    let change = json!({member: url});
    for (verb, path, body) in [
        (Method::POST, ISSUERS.to_owned(), new),
        (Method::PATCH, format!("{ISSUERS}/public"), change),
    ] {
        let (status, response) = world.rest(verb, &path, body).await;
        let message = response["message"].as_str().unwrap_or_default();
        let names_it = message.contains(&format!("`{member}`")) && message.contains(reason);
        assert!(
            status == 400 && names_it,
            "{member} {url}: {status} {response}"
        );
    }
}

#[tokio::test]
async fn a_node_without_the_setting_requests_no_keys_from_private_addresses() {
    let mut world = world().await;
    // This record was stored while the setting was on.
    world.accept(json!({"default_role": "staff"})).await;
    let stored = world.token(json!({"org": "acme"}));
    assert_eq!(world.titles(&stored).await, ["Paint"]);
    let requests = world.server.requests();
    world.node = Node::start(&world.operator).await;

    let public = json!({"name": "public", "issuer": "https://id.example.com", "audience": "api"});
    let (status, response) = world.rest(Method::POST, ISSUERS, public).await;
    assert_eq!(status, 201, "{response}");
    let keys = format!("{}/keys", world.server.url);
    let encrypted = world.server.url.replace("http:", "https:");
    for (url, reason) in [
        (&*world.server.url, "an https URL"),
        (&*keys, "an https URL"),
        (&*encrypted, REFUSED),
        ("https://10.0.0.1", REFUSED),
        ("https://169.254.169.254", REFUSED),
        ("https://[::1]", REFUSED),
        ("https://[::ffff:192.168.0.1]", REFUSED),
    ] {
        for member in ["issuer", "jwks_url"] {
            assert_refused(&world, (member, url), reason).await;
        }
    }
    let path = format!("{ISSUERS}/id");
    let change = json!({"clock_skew": 9});
    let (status, response) = world.rest(Method::PATCH, &path, change).await;
    assert_eq!(status, 400, "{response}");
    let (status, text) = world.role(&stored).await.unwrap_err();
    let unknown = "not one that the database accepts";
    assert!(status == 401 && text.contains(unknown), "{status} {text}");
    assert_eq!(world.server.requests(), requests);
}

/// The addresses of a name are known only when it is resolved.
#[tokio::test]
async fn a_name_with_private_addresses_only_gets_no_connection() {
    let mut world = world().await;
    world.node = Node::start(&world.operator).await;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let url = format!("https://localhost:{port}");
    let issuer = json!({"name": "named", "issuer": url, "audience": "api",
        "default_role": "staff"});
    let (status, response) = world.rest(Method::POST, ISSUERS, issuer).await;
    assert_eq!(status, 201, "{response}");
    let (status, text) = world
        .role(&world.token(json!({"iss": url})))
        .await
        .unwrap_err();
    assert!(status == 503 && !text.contains(&url), "{status} {text}");
    // A connection would wait here to be accepted.
    assert_eq!(listener.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
    let (_, shown) = world.rest(Method::GET, ISSUERS, json!({})).await;
    assert_ne!(shown[0]["problem"], Value::Null, "{shown}");
}
