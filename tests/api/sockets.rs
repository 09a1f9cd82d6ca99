//! Tests sockets: handshake, authentication, queries, calls, statements, and invalid messages
//! (API.md, "Sockets and change events").

use reqwest::Method;
use serde_json::{Value, json};

use crate::service::demo;
use crate::socket_client::{open, socket};

#[tokio::test]
async fn a_request_without_a_handshake_gets_426() {
    for path in ["/", "/api/v4/events"] {
        let response = demo().ask(Method::GET, path, None, None).await;
        assert_eq!(response.error(), (426, "UPGRADE_REQUIRED".to_owned()));
        assert_eq!(response.header("upgrade"), "websocket");
        assert_eq!(response.header("sec-websocket-version"), "13");
    }
}

#[tokio::test]
async fn a_token_may_come_in_the_address_the_header_or_the_first_message() {
    let token = demo().cached_token("demo").await;
    let bearer = format!("Bearer {token}");
    let who = json!({"q": "select current_user::text as who", "id": 7});
    let mut sockets = vec![
        open(&format!("/?token={token}"), &[]).await.unwrap(),
        open(&format!("/api/v4/events/?token={token}"), &[])
            .await
            .unwrap(),
        open("/api/v4/events", &[("authorization", &bearer)])
            .await
            .unwrap(),
    ];
    let mut late = open("/", &[]).await.unwrap();
    let ack = late.ask(json!({"type": "auth", "token": token})).await;
    assert_eq!(ack["type"], "auth_ack");
    assert!(
        (1..=3600).contains(&ack["expires_in"].as_i64().unwrap()),
        "{ack}"
    );
    // The client authenticates once more, to renew its token.
    let ack = late.ask(json!({"type": "auth", "token": token})).await;
    assert_eq!(ack["type"], "auth_ack");
    sockets.push(late);
    for socket in &mut sockets {
        let response = socket.ask(who.clone()).await;
        assert_eq!(response["data"], json!([{"who": "demo"}]), "{response}");
        assert_eq!(response["id"], 7);
    }
}

#[tokio::test]
async fn an_anonymous_socket_runs_as_the_default_user() {
    let mut socket = open("/", &[("tidegate-database", "demo")]).await.unwrap();
    let response = socket
        .ask(json!({"q": "select current_user::text as who"}))
        .await;
    assert_ne!(response["data"][0]["who"], "demo", "{response}");
    assert!(response["data"][0]["who"].is_string(), "{response}");
}

#[tokio::test]
async fn a_socket_without_token_and_default_user_gets_an_error_and_is_closed() {
    let mut socket = open("/", &[("tidegate-database", "nowhere")])
        .await
        .unwrap();
    let response = socket.ask(json!({"q": "select 1"})).await;
    assert_eq!(
        (&response["type"], &response["error"]),
        (&json!("error"), &json!("missing_token"))
    );
    assert_eq!(socket.closed().await, (4401, "missing_token".to_owned()));
}

#[tokio::test]
async fn an_invalid_token_gets_an_error_and_a_close_in_every_place() {
    let mut address = open("/?token=abc", &[]).await.unwrap();
    let mut header = open("/", &[("authorization", "Bearer abc")]).await.unwrap();
    let mut scheme = open("/", &[("authorization", "Basic abc")]).await.unwrap();
    let mut message = socket("demo").await;
    message.send(&json!({"type": "auth", "token": "abc"})).await;
    for socket in [&mut address, &mut header, &mut scheme, &mut message] {
        let response = socket.receive().await;
        assert_eq!(response["type"], "error", "{response}");
        assert_eq!(response["error"], "invalid_token", "{response}");
        assert_eq!(socket.closed().await, (4401, "invalid_token".to_owned()));
    }
}

#[tokio::test]
async fn a_query_is_answered_by_next_and_complete() {
    let mut socket = socket("demo").await;
    let query = "query($n: Int) { getArtists(limit: $n) { id name } }";
    let response = socket
        .ask(
            json!({"type": "subscribe", "id": "a", "schema": "public", "query": query,
            "variables": {"n": 1}}),
        )
        .await;
    assert_eq!(response["type"], "next");
    assert_eq!(response["id"], "a");
    assert_eq!(
        response["data"]["getArtists"].as_array().unwrap().len(),
        1,
        "{response}"
    );
    assert_eq!(
        socket.receive().await,
        json!({"type": "complete", "id": "a"})
    );
    // The id can be used again.
    let response = socket
        .ask(json!({"type": "subscribe", "id": "a", "schema": "public", "query": "{ __typename }"}))
        .await;
    assert_eq!(response["data"], json!({"__typename": "Query"}));
    assert_eq!(
        socket.receive().await,
        json!({"type": "complete", "id": "a"})
    );
    // Failed fields are returned together with the others.
    let query = "{ a: getArtists(id: 1) { id } b: getArtists(where: {nix: 1}) { id } }";
    let response = socket
        .ask(json!({"type": "subscribe", "id": "a", "schema": "public", "query": query}))
        .await;
    assert_eq!(
        (&response["type"], &response["data"]),
        (&json!("next"), &json!({"a": [{"id": "1"}], "b": null})),
        "{response}"
    );
    assert_eq!(response["errors"][0]["path"], json!(["b"]), "{response}");
    assert_eq!(
        socket.receive().await,
        json!({"type": "complete", "id": "a"})
    );
}

#[tokio::test]
async fn operations_run_at_once_and_are_answered_by_id() {
    let mut socket = socket("demo").await;
    let admin = demo().admin().await;
    let hold = "select pg_advisory_lock(4720)";
    admin.batch_execute(hold).await.unwrap();
    let slow = "select pg_advisory_xact_lock_shared(4720) is null as free";
    socket.send(&json!({"id": "slow", "q": slow})).await;
    socket
        .send(&json!({"id": "fast", "q": "select 1 as one"}))
        .await;
    assert_eq!(socket.receive().await["id"], "fast");
    let release = "select pg_advisory_unlock(4720)";
    admin.batch_execute(release).await.unwrap();
    let slow = socket.receive().await;
    assert_eq!(slow["id"], "slow");
    assert!(slow["data"].is_array(), "{slow}");
}

#[tokio::test]
async fn calls_are_answered_as_over_http() {
    let mut socket = socket("demo").await;
    let unknown = |id: i64| json!({"jsonrpc": "2.0", "id": id, "method": "no.such"});
    let response = socket.ask(unknown(1)).await;
    assert_eq!(
        (&response["id"], &response["error"]["code"]),
        (&json!(1), &json!(-32601))
    );
    let response = socket.ask(json!([unknown(2), unknown(3)])).await;
    assert_eq!(response.as_array().unwrap().len(), 2, "{response}");
    assert_eq!(socket.ask(json!([])).await["error"]["code"], -32600);
    // A notification has no response, so the next message is the response to the following call.
    socket
        .send(&json!({"jsonrpc": "2.0", "method": "no.such"}))
        .await;
    assert_eq!(socket.ask(unknown(4)).await["id"], 4);
}

#[tokio::test]
async fn what_is_wrong_is_an_error_and_the_socket_stays_open() {
    let mut socket = socket("demo").await;
    let subscribe = |members: Value| {
        let mut message = json!({"type": "subscribe", "id": "x", "schema": "public"});
        message
            .as_object_mut()
            .unwrap()
            .extend(members.as_object().unwrap().clone());
        message.to_string()
    };
    let added = |rest: &str| {
        subscribe(json!({"query": format!("subscription {{ artistsMessageAdded{rest} }}")}))
    };
    let cases: Vec<(String, &str)> = vec![
        ("{".to_owned(), "invalid_json"),
        ("7".to_owned(), "invalid_message"),
        (r#"{"id":"x"}"#.to_owned(), "missing_member"),
        (r#"{"type":"nothing","id":"x"}"#.to_owned(), "unknown_type"),
        (r#"{"type":7,"id":"x"}"#.to_owned(), "invalid_message"),
        (
            r#"{"type":"subscribe","schema":"public","query":"{a}"}"#.to_owned(),
            "missing_member",
        ),
        (
            r#"{"type":"subscribe","id":"x","query":"{a}"}"#.to_owned(),
            "missing_member",
        ),
        (
            r#"{"type":"subscribe","id":"x","schema":"public"}"#.to_owned(),
            "missing_member",
        ),
        (
            r#"{"type":"unsubscribe","id":"x"}"#.to_owned(),
            "unknown_id",
        ),
        (
            r#"{"type":"subscription","id":"x","schema":"public"}"#.to_owned(),
            "missing_member",
        ),
        (
            r#"{"type":"subscription","id":"x","schema":"public","rel":"nothing"}"#.to_owned(),
            "not_found",
        ),
        (subscribe(json!({"query": "{"})), "graphql_parse_failed"),
        (
            subscribe(json!({"query": "{ nothing }"})),
            "graphql_validation_failed",
        ),
        (
            subscribe(json!({"query": "{ __typename }", "schema": "nowhere"})),
            "not_found",
        ),
        (
            subscribe(json!({"query": "{ __typename }", "variables": 7})),
            "bad_user_input",
        ),
        (
            added("s { id }").replace("artistsMessageAddeds", "nothingMessageAdded"),
            "graphql_validation_failed",
        ),
        (
            added(" { nothing }").replace("artistsM", "ArtistsM"),
            "graphql_validation_failed",
        ),
        (
            added("(where: {nothing: 1}) { id }").replace("artistsM", "ArtistsM"),
            "bad_user_input",
        ),
        (
            added("(where: \"name = \") { id }").replace("artistsM", "ArtistsM"),
            "bad_user_input",
        ),
        (
            added("(where: {name: {regex: \"a\"}}) { id }").replace("artistsM", "ArtistsM"),
            "unsupported_filter",
        ),
        (r#"{"q":"selec","id":"x"}"#.to_owned(), "sql_error"),
        (
            r#"{"q":"begin","id":"x"}"#.to_owned(),
            "statement_not_allowed",
        ),
    ];
    for (message, code) in cases {
        socket.send_text(&message).await;
        let response = socket.receive().await;
        assert_eq!(response["type"], "error", "{message}: {response}");
        assert_eq!(response["error"], code, "{message}: {response}");
        assert!(
            response["message"]
                .as_str()
                .is_some_and(|text| !text.is_empty()),
            "{response}"
        );
        if code.starts_with("graphql_") {
            assert!(response["errors"][0]["message"].is_string(), "{response}");
        }
        if message.contains("\"id\":\"x\"") {
            assert_eq!(response["id"], "x", "{message}: {response}");
        }
    }
    // The error has the position in the text of the condition.
    let text = added("(where: \"id = 1 and name = \") { id }").replace("artistsM", "ArtistsM");
    socket.send_text(&text).await;
    let response = socket.receive().await;
    let message = response["message"].as_str().unwrap();
    assert!(message.contains("at character 19:"), "{response}");
    socket.send_bytes(vec![1, 2, 3]).await;
    assert_eq!(socket.receive().await["error"], "invalid_message");
    assert!(socket.is_silent().await);
}

#[tokio::test]
async fn an_id_that_is_in_use_is_refused() {
    let mut socket = socket("demo").await;
    let added = "subscription { ArtistsMessageAdded { id } }";
    socket.subscribe("a", added).await;
    let again = json!({"type": "subscribe", "id": "a", "schema": "public", "query": added});
    assert_eq!(socket.ask(again).await["error"], "duplicate_id");
    let response = socket.ask(json!({"type": "unsubscribe", "id": "a"})).await;
    assert_eq!(response, json!({"type": "complete", "id": "a"}));
    socket.subscribe("a", added).await;
}

#[tokio::test]
async fn a_message_that_is_too_large_ends_the_socket() {
    let mut socket = socket("demo").await;
    let of = |size: usize| {
        let shell = json!({"q": "select '' as a"}).to_string();
        shell.replace("''", &format!("'{}'", "x".repeat(size - shell.len())))
    };
    assert_eq!(of(1_000).len(), 1_000);
    socket.send_text(&of(256 * 1024)).await;
    assert!(socket.receive().await["data"].is_array());
    socket.send_text(&of(256 * 1024 + 1)).await;
    assert_eq!(socket.receive().await["error"], "message_too_large");
    assert_eq!(socket.closed().await.0, 1009);
}
