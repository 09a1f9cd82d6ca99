//! Tests the grant `client_credentials` (docs/API.md, "Programs without a person"): a confidential
//! client acts as its service user.

use serde_json::{Value, json};

use crate::audit::all_events;
use crate::flows::{client, failure};
use crate::members::{SignedIn, USERS, two};
use crate::node::{Node, operator};
use crate::open_connections::OpenConnections;
use crate::personal_tokens::{current_user, user};
use crate::service::{demo, eventually};
use crate::users::{SQL, owner};

async fn client_credentials(id: &str, secret: &str, more: Value) -> Value {
    let mut body = json!({
        "grant_type": "client_credentials", "client_id": id, "client_secret": secret,
    });
    body.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    demo()
        .rest_with(None, ("POST", "/api/v4/oauth"), &body)
        .await
        .body
}

#[tokio::test]
async fn a_confidential_client_acts_as_its_service_user() {
    let made = client("cron", json!({"service_user": "alice"})).await;
    let secret = made["secret"].as_str().unwrap();
    assert!(secret.starts_with("tgc_"), "{secret}");
    let response = client_credentials("cron", secret, json!({})).await;
    assert_eq!(response["token_type"], "Bearer", "{response}");
    assert_eq!(
        (&response["refresh_token"], &response["scope"]),
        (&Value::Null, &json!(""))
    );
    let token = response["access_token"].as_str().unwrap();
    assert_eq!(current_user(token).await, (200, json!("demo/alice")));
    // A personal access token would outlive the client.
    let refused = demo()
        .rest_with(
            Some(token),
            ("POST", "/api/v4/tokens"),
            &json!({"name": "nightly"}),
        )
        .await;
    let (status, code, _) = refused.error();
    assert_eq!((status, code), (403, "INSUFFICIENT_PRIVILEGES"));
    let shown = demo()
        .rest(Some("demo"), ("GET", "/api/v4/clients/cron"), &Value::Null)
        .await;
    assert_eq!(shown.body["service_user"], "alice");
    // The owner of the tenant can list and end the session of the token.
    let list = demo()
        .rest(
            Some("demo"),
            ("GET", "/api/v4/sessions?user=alice"),
            &Value::Null,
        )
        .await;
    let sessions = list.body.as_array().unwrap();
    let session = sessions
        .iter()
        .find(|one| one["client_id"] == "cron")
        .unwrap();
    assert_eq!(session["grant"], "client_credentials");
    let opened: Vec<_> = all_events(demo())
        .await
        .into_iter()
        .filter(|event| event["client_id"] == "cron" && event["event"] == "session_opened")
        .collect();
    let [opened] = &*opened else {
        panic!("{opened:?}");
    };
    for (name, value) in [
        ("detail", "client_credentials"),
        ("user", "alice"),
        ("session", session["id"].as_str().unwrap()),
        ("address", "127.0.0.1"),
    ] {
        assert_eq!(opened[name], value, "{name}: {opened}");
    }
    let path = format!("/api/v4/sessions/{}", session["id"].as_str().unwrap());
    assert_eq!(
        demo()
            .rest(Some("demo"), ("DELETE", &path), &Value::Null)
            .await
            .status,
        204
    );
    assert_eq!(current_user(token).await, (401, json!("INVALID_TOKEN")));
}

/// The notes and the claims that a client sees with its token: by GraphQL, and by a method.
async fn seen(token: &SignedIn) -> (Value, Value) {
    let notes = token.data("{ getMservNotes { title author } }").await;
    let call = json!({"jsonrpc": "2.0", "method": "mserv_claims", "id": 1});
    let claims = token.post("/api/v4/call", call).await.body;
    (
        notes["getMservNotes"].clone(),
        claims["result"]["data"].clone(),
    )
}

#[tokio::test]
async fn a_service_user_may_be_a_member_and_may_be_converted() {
    let (a, b) = two("mserv").await;
    b.data("mutation { insertMservNotes(data: {title: \"of b\"}) { id } }")
        .await;
    let method = json!({"method": "mserv_claims",
        "q": "select tidegate.user_id() as id, tidegate.claim('org') as org"});
    assert_eq!(owner("POST", "/api/v4/methods", method).await.status, 201);
    let made = client("mserv", json!({"service_user": "mserv_a"})).await;
    let secret = made["secret"].as_str().unwrap();
    let grant = async || {
        let response = client_credentials("mserv", secret, json!({})).await;
        let token = response["access_token"].as_str();
        SignedIn {
            token: token.unwrap_or_else(|| panic!("{response}")).to_owned(),
            id: a.id.clone(),
        }
    };
    let first = grant().await;
    first
        .data("mutation { insertMservNotes(data: {title: \"of cron\"}) { id } }")
        .await;
    let expected = (
        json!([{"title": "of cron", "author": a.id}]),
        json!([{"id": a.id, "org": "acme"}]),
    );
    let role = json!({"q": "select current_user::text as role from mserv_notes"});
    assert_eq!(seen(&first).await, expected);
    let refused = first.post(SQL.1, role.clone()).await;
    let (status, code, _) = refused.error();
    assert_eq!((status, code), (403, "INSUFFICIENT_PRIVILEGES"));
    // A conversion ends the token, and the next one acts as the user of the other kind.
    let path = format!("{USERS}/mserv_a");
    let mut token = first;
    for (kind, status) in [("role", 200), ("member", 403)] {
        let converted = owner("PATCH", &path, json!({"kind": kind})).await;
        assert_eq!(converted.status, 303, "{converted:?}");
        assert_eq!(token.status().await, 401, "{kind}");
        token = grant().await;
        assert_eq!(seen(&token).await, expected, "{kind}");
        let response = token.post(SQL.1, role.clone()).await;
        assert_eq!(response.status, status, "{kind}: {response:?}");
        if status == 200 {
            assert_eq!(response.body["data"], json!([{"role": "demo/mserv_a"}]));
        }
    }
}

#[tokio::test]
async fn client_credentials_of_others_are_refused() {
    client("plain", json!({})).await;
    let made = client("robot", json!({"service_user": "alice"})).await;
    let secret = made["secret"].as_str().unwrap();
    let grant = |id: &str| json!({"grant_type": "client_credentials", "client_id": id});
    let with = |id: &str, secret: &str| {
        let mut body = grant(id);
        body["client_secret"] = json!(secret);
        body
    };
    for (body, refused) in [
        (grant("demo-app"), (400, "unauthorized_client")),
        (
            with("demo-server", "demo-server-secret"),
            (400, "unauthorized_client"),
        ),
        (grant("tidegate"), (400, "unauthorized_client")),
        (grant("robot"), (401, "invalid_client")),
        (with("robot", "wrong"), (401, "invalid_client")),
        (with("nobody-knows", secret), (401, "invalid_client")),
    ] {
        let (status, error) = failure(&body).await;
        assert_eq!((status, &*error), refused, "{body}");
    }
    // The secret of one client with the id of another.
    let (status, error) = failure(&with("plain", secret)).await;
    assert_eq!((status, &*error), (401, "invalid_client"));
}

#[tokio::test]
async fn a_service_user_exists_and_belongs_to_a_confidential_client() {
    let body = |more: Value| {
        let mut body = json!({"name": "x", "redirect_uri": ["https://app.example/cb"]});
        body.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        body
    };
    for more in [
        json!({"service_user": "nobody-here"}),
        json!({"service_user": "guest"}),
        json!({"service_user": "alice", "public": true}),
    ] {
        let refused = demo()
            .rest(Some("demo"), ("POST", "/api/v4/clients"), &body(more))
            .await;
        let (status, code, message) = refused.error();
        assert_eq!((status, code), (400, "INPUT_VALIDATION_ERROR"), "{message}");
        assert!(message.starts_with("`service_user`"), "{message}");
    }
    client("becomes-public", json!({"service_user": "alice"})).await;
    let path = ("PATCH", "/api/v4/clients/becomes-public");
    let refused = demo()
        .rest(Some("demo"), path, &json!({"public": true}))
        .await;
    assert_eq!(refused.status, 400, "{refused:?}");
    let both = json!({"public": true, "service_user": null});
    assert_eq!(demo().rest(Some("demo"), path, &both).await.status, 303);
}

#[tokio::test]
async fn a_client_does_not_act_as_a_new_user_of_its_service_users_name() {
    user("cron-gone").await;
    let made = client("cron-of-gone", json!({"service_user": "cron-gone"})).await;
    let secret = made["secret"].as_str().unwrap();
    let response = client_credentials("cron-of-gone", secret, json!({})).await;
    let token = response["access_token"].as_str().unwrap();
    assert_eq!(current_user(token).await.0, 200);
    let path = "/api/v4/users/cron-gone";
    assert_eq!(
        demo()
            .rest(Some("demo"), ("DELETE", path), &Value::Null)
            .await
            .status,
        204
    );
    assert_eq!(current_user(token).await, (401, json!("INVALID_TOKEN")));
    user("cron-gone").await;
    let response = client_credentials("cron-of-gone", secret, json!({})).await;
    assert_eq!(response["error"], "unauthorized_client", "{response}");
}

#[tokio::test]
async fn another_node_refuses_the_tokens_of_a_dropped_client_within_five_seconds() {
    let operator = operator().await;
    let nodes = (Node::start(&operator).await, Node::start(&operator).await);
    let create = ["client", "create", "shop", "Nightly", "--id", "nightly"];
    let more = [
        "--redirect-uri",
        "https://reports.example/",
        "--service-user",
        "ann",
    ];
    operator.succeeds(&["user", "create", "shop", "ann", "--no-password"], "");
    let shop = operator.root("shop").await;
    let grant = "GRANT SELECT ON orders TO PUBLIC";
    shop.batch_execute(grant).await.unwrap();
    let made = operator.succeeds(&[&create[..], &more].concat(), "");
    let secret = made
        .split_whitespace()
        .find(|word| word.starts_with("tgc_"));
    let body = json!({
        "grant_type": "client_credentials", "client_id": "nightly", "client_secret": secret,
    });
    let (_, response) = nodes.0.post("/api/v4/oauth", None, body).await;
    let token = response["access_token"].as_str().unwrap();
    for node in [&nodes.0, &nodes.1] {
        assert_eq!(node.status(token).await, 200);
    }
    let query = "subscription { OrdersMessageAdded { id } }";
    let open = OpenConnections::of(&nodes.1, token, query).await;
    operator.succeeds(&["client", "drop", "nightly", "--yes"], "");
    let since = std::time::Instant::now();
    for node in [&nodes.0, &nodes.1] {
        eventually("the token is refused", || async {
            node.status(token).await == 401
        })
        .await;
    }
    open.are_refused().await;
    assert!(since.elapsed().as_secs_f64() < 5.0, "{:?}", since.elapsed());
}

#[tokio::test]
async fn a_client_without_its_service_user_has_no_token_any_more() {
    let made = client("cron-ended", json!({"service_user": "alice"})).await;
    let secret = made["secret"].as_str().unwrap();
    let response = client_credentials("cron-ended", secret, json!({})).await;
    let token = response["access_token"].as_str().unwrap();
    assert_eq!(current_user(token).await.0, 200);
    let path = ("PATCH", "/api/v4/clients/cron-ended");
    let change = json!({"service_user": null});
    assert_eq!(demo().rest(Some("demo"), path, &change).await.status, 303);
    assert_eq!(current_user(token).await, (401, json!("INVALID_TOKEN")));
}
