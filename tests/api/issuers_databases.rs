//! Tests that a token of an external issuer is refused if the request names a database that does
//! not accept the issuer (docs/how-to/external-issuers.md, "Several databases"). A request names a
//! database in the header, or in the parameter `database` of sockets and streams. The only path
//! with a database ignores tokens.

use serde_json::{Value, json};
use tokio::time::timeout;

use crate::issuers::{GRAPHQL, World, world};
use crate::issuers_attacks::second_tenant;
use crate::pages::encoded;
use crate::service::{TIMEOUT, TextResponse};
use crate::socket_client::open_at;

/// Gives a database a default user who may read without a token.
fn open_to_anonymous(world: &World, database: &str) {
    let user = ["user", "create", database, "anybody"];
    let default = ["--default", "--no-password"];
    world.operator.succeeds(&[&user[..], &default].concat(), "");
    let set = ["tenant", "set", database, "anonymous_sql=read"];
    world.operator.succeeds(&set, "");
}

/// The node, a tenant `shop` that accepts the token, and a tenant `other` that does not. Both have a
/// default user, so that a token that counted as no token would be answered.
async fn two_tenants() -> (World, String) {
    let world = world().await;
    second_tenant(&world).await;
    for database in ["shop", "other"] {
        open_to_anonymous(&world, database);
    }
    world.user("ann", json!({})).await;
    world.accept(json!({"user_claim": "sub"})).await;
    let token = world.token(json!({"sub": "ann"}));
    (world, token)
}

#[tokio::test]
async fn a_header_that_names_another_database_refuses_the_token_at_every_endpoint() {
    let (world, token) = two_tenants().await;
    let call = json!({"jsonrpc": "2.0", "method": "none", "id": 1});
    for (path, body) in [
        ("/api/v4/sql", json!({"q": "select 1 as n"})),
        (GRAPHQL, json!({"query": "{__typename}"})),
        ("/api/v4/call", call),
    ] {
        for (database, expected) in [("shop", 200), ("other", 401), ("nowhere", 401)] {
            let url = format!("{}{path}", world.node.url);
            let request = world.node.client.post(url).bearer_auth(&token);
            let request = request.header("Tidegate-Database", database);
            let response = TextResponse::of(request.json(&body)).await;
            assert_eq!(response.status, expected, "{path} {database} {response:?}");
        }
    }
}

#[tokio::test]
async fn an_address_that_names_another_database_refuses_the_token() {
    let (world, token) = two_tenants().await;
    let who = json!({"q": "select current_user::text as name", "id": 1});
    for path in ["/", "/api/v4/events"] {
        let at = |database: &str| format!("{path}?database={database}&token={token}");
        let mut socket = open_at(&world.node.url, &at("shop"), &[]).await.unwrap();
        let response = socket.ask(who.clone()).await;
        assert!(response.to_string().contains("shop/ann"), "{response}");
        let mut socket = open_at(&world.node.url, &at("other"), &[]).await.unwrap();
        // Pings are no message, so without the timeout an accepted socket would be waited for forever.
        let refused = timeout(TIMEOUT, socket.receive()).await.unwrap();
        assert_eq!(refused["error"], "invalid_token", "{refused}");
        assert_eq!(socket.close_code().await, 4401);
        // The database of the address also counts for a token in a message.
        let unsaid = format!("{path}?database=other");
        let mut socket = open_at(&world.node.url, &unsaid, &[]).await.unwrap();
        let refused = socket.ask(json!({"type": "auth", "token": token})).await;
        assert_eq!(refused["error"], "invalid_token", "{refused}");
        assert_eq!(socket.close_code().await, 4401);
    }
    let query = encoded("subscription { InvoicesMessageAdded { title } }");
    for (database, expected) in [("shop", 200), ("other", 401)] {
        let url = format!(
            "{}/api/v4/events/stream?schema=public&database={database}&query={query}",
            world.node.url
        );
        let request = world.node.client.get(url).bearer_auth(&token);
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), expected, "{database}");
    }
}

#[tokio::test]
async fn the_path_with_a_database_ignores_the_token() {
    let (world, token) = two_tenants().await;
    let body = json!({"q": "select current_user::text as name"});
    for database in ["shop", "other"] {
        for token in [&token, "a.forged.one"] {
            let path = format!("/api/v4/sql/database/{database}");
            let (status, response) = world.node.post(&path, Some(token), body.clone()).await;
            assert_eq!(status, 200, "{response}");
            let expected = Value::from(format!("{database}/anybody"));
            assert_eq!(response["data"][0]["name"], expected, "{response}");
        }
    }
}
