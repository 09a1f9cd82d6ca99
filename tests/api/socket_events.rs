//! Tests subscriptions over sockets and as server-sent events (API.md, "Sockets and change
//! events").

use std::time::{Duration, Instant};

use futures_util::{Stream, StreamExt};
use reqwest::Method;
use serde_json::{Value, json};

use crate::service::{TIMEOUT, demo};
use crate::socket_client::{open, socket};

/// Creates a table for this test.
pub(crate) async fn table(name: &str) {
    let q =
        format!("create table {name} (id int8 primary key, name text, price numeric, tags text[])");
    demo().rows("demo", &q, json!({})).await;
    // The cached schema contains the table within a second.
    let query = format!("{{ __type(name: \"{}\") {{ name }} }}", pascal(name));
    crate::service::eventually("the table is in the schema", || async {
        let response = crate::graphql::ask(Some("demo"), &query, json!({})).await;
        !response["data"]["__type"].is_null()
    })
    .await;
}

fn pascal(name: &str) -> String {
    let words = name.split('_').map(|word| {
        let (first, rest) = word.split_at(1);
        first.to_uppercase() + rest
    });
    words.collect()
}

pub(crate) async fn write(q: &str) {
    demo().rows("demo", q, json!({})).await;
}

#[tokio::test]
async fn every_change_comes_with_the_selected_columns_and_a_cursor() {
    table("ev_basic").await;
    let mut socket = socket("demo").await;
    socket
        .subscribe(
            "a",
            "subscription { ok: EvBasicMessageAdded { __typename name n: id price tags } }",
        )
        .await;
    socket
        .subscribe("u", "subscription { EvBasicMessageUpdated { id name } }")
        .await;
    socket
        .subscribe("d", "subscription { EvBasicMessageDeleted { id name } }")
        .await;
    write("insert into ev_basic values (9007199254740993, 'a\"b', 1.50, '{x,y}')").await;
    let event = socket.receive().await;
    let row = json!({"__typename": "EvBasic", "name": "a\"b", "n": "9007199254740993",
        "price": "1.50", "tags": ["x", "y"]});
    assert_eq!(event["type"], "subscription");
    assert_eq!(event["id"], "a");
    assert_eq!(event["data"], json!({"ok": [row]}));
    assert!(event["cursor"].is_string());
    write("update ev_basic set name = 'c'").await;
    let event = socket.receive().await;
    assert_eq!(event["id"], "u");
    assert_eq!(event["data"]["EvBasicMessageUpdated"][0]["name"], "c");
    write("delete from ev_basic").await;
    let event = socket.receive().await;
    assert_eq!(event["id"], "d");
    assert_eq!(event["data"]["EvBasicMessageDeleted"][0]["name"], "c");
}

#[tokio::test]
async fn only_what_passes_the_filter_comes_in_either_form() {
    table("ev_filter").await;
    let mut socket = socket("demo").await;
    socket
        .subscribe("j", "subscription { EvFilterMessageAdded(where: {OR: [{id: {eq: 1}}, {name: {eq: \"z\"}}]}) { id } }")
        .await;
    socket
        .subscribe(
            "t",
            "subscription { EvFilterMessageAdded(where: \"id = '2' OR name IS NULL\") { id } }",
        )
        .await;
    write("insert into ev_filter (id, name) values (1,'a'),(2,'b'),(3,'z'),(4,null),(5,'x')").await;
    let mut seen = Vec::new();
    for _ in 0..4 {
        let event = socket.receive().await;
        let id = event["data"]["EvFilterMessageAdded"][0]["id"].clone();
        seen.push((
            event["id"].as_str().unwrap().to_owned(),
            id.as_str().unwrap().to_owned(),
        ));
    }
    seen.sort();
    let expected = [("j", "1"), ("j", "3"), ("t", "2"), ("t", "4")];
    assert_eq!(
        seen,
        expected.map(|(id, row)| (id.to_owned(), row.to_owned()))
    );
    assert!(socket.is_silent().await);
}

#[tokio::test]
async fn a_cursor_goes_on_without_a_gap() {
    table("ev_resume").await;
    let added = "subscription { EvResumeMessageAdded { id } }";
    let mut first = socket("demo").await;
    first.subscribe("a", added).await;
    write("insert into ev_resume (id) values (1)").await;
    let cursor = first.receive().await["cursor"].clone();
    drop(first);
    write("insert into ev_resume (id) values (2), (3)").await;
    let mut second = socket("demo").await;
    let message = json!({"type": "subscribe", "id": "a", "schema": "public", "query": added, "after": cursor});
    assert_eq!(second.ask(message).await["type"], "subscribe_ack");
    for id in ["2", "3"] {
        assert_eq!(
            second.receive().await["data"]["EvResumeMessageAdded"][0]["id"],
            id
        );
    }
    let bad =
        json!({"type": "subscribe", "id": "b", "schema": "public", "query": added, "after": "x"});
    assert_eq!(second.ask(bad).await["error"], "invalid_cursor");
    // The cursor is a position of another change log.
    let other = format!("1{:08x}{:016x}{:08x}", 1, 1, 1);
    let gone =
        json!({"type": "subscribe", "id": "c", "schema": "public", "query": added, "after": other});
    assert_eq!(second.ask(gone).await["type"], "subscribe_ack");
    let resync = second.receive().await;
    assert_eq!(
        (&resync["type"], &resync["id"]),
        (&json!("resync"), &json!("c")),
        "{resync}"
    );
    assert_eq!(resync["reason"], "other_log");
}

/// The number of tables. Each has its own rounds, one after the other.
const TABLES: usize = 20;
const ROUNDS: usize = 50;

/// In each of 1,000 rounds the test subscribes, and writes as soon as the subscription is
/// acknowledged.
#[tokio::test(flavor = "multi_thread")]
async fn acknowledged_means_live() {
    let make = (0..TABLES).map(|at| format!("create table ev_live{at} (id int8 primary key)"));
    for make in make {
        write(&make).await;
    }
    let mut tables = tokio::task::JoinSet::new();
    for at in 0..TABLES {
        tables.spawn(async move {
            let raw = json!({"type": "subscription", "id": "a", "schema": "public",
                "rel": format!("ev_live{at}"), "op": "INSERT"});
            for round in 0..ROUNDS {
                let mut socket = socket("demo").await;
                let response = socket.ask(raw.clone()).await;
                assert_eq!(response["type"], "subscription_ack", "{response}");
                write(&format!("insert into ev_live{at} values ({round})")).await;
                let batch = socket.receive().await;
                let inserted = &batch["batch"]["demo"][format!("public.ev_live{at}")]["INSERT"];
                assert_eq!(inserted.as_array().unwrap().len(), 1, "{batch}");
                assert!(inserted.to_string().contains(&round.to_string()), "{batch}");
            }
        });
    }
    while let Some(done) = tables.join_next().await {
        done.unwrap();
    }
}

#[tokio::test]
async fn truncate_means_read_again() {
    table("ev_truncate").await;
    let mut socket = socket("demo").await;
    let added = "subscription { EvTruncateMessageAdded { id } }";
    socket.subscribe("a", added).await;
    write("insert into ev_truncate (id) values (1)").await;
    assert_eq!(socket.receive().await["type"], "subscription");
    write("truncate ev_truncate").await;
    let resync = socket.receive().await;
    assert_eq!(
        (&resync["type"], &resync["id"]),
        (&json!("resync"), &json!("a"))
    );
    assert_eq!(resync["reason"], "truncated");
    write("insert into ev_truncate (id) values (2)").await;
    let event = socket.receive().await;
    assert_eq!(event["data"]["EvTruncateMessageAdded"][0]["id"], "2");
}

#[tokio::test]
async fn a_socket_has_a_hundred_subscriptions() {
    table("ev_many").await;
    let mut socket = socket("demo").await;
    let added = "subscription { EvManyMessageAdded { id } }";
    for id in 0..100 {
        socket.subscribe(&id.to_string(), added).await;
    }
    let message = json!({"type": "subscribe", "id": "x", "schema": "public", "query": added});
    let response = socket.ask(message).await;
    assert_eq!(response["error"], "too_many_subscriptions", "{response}");
    socket.ask(json!({"type": "unsubscribe", "id": "7"})).await;
    socket.subscribe("x", added).await;
}

#[tokio::test]
async fn a_role_without_privileges_reads_nothing() {
    table("ev_secret").await;
    let mut socket = open("/", &[("tidegate-database", "demo")]).await.unwrap();
    let message = json!({"type": "subscribe", "id": "a", "schema": "public",
        "query": "subscription { EvSecretMessageAdded { id } }"});
    let response = socket.ask(message).await;
    assert_eq!(response["type"], "error", "{response}");
    let raw = json!({"type": "subscription", "id": "b", "schema": "public", "rel": "ev_secret"});
    assert_eq!(socket.ask(raw).await["type"], "error");
}

#[tokio::test]
async fn rights_that_are_taken_away_end_the_subscription_and_not_the_socket() {
    table("ev_withdrawn").await;
    write("grant select on ev_withdrawn to \"demo/alice\"").await;
    let mut socket = socket("alice").await;
    let raw = json!({"type": "subscription", "id": "a", "schema": "public", "rel": "ev_withdrawn"});
    assert_eq!(
        socket.ask(raw).await,
        json!({"type": "subscription_ack", "id": "a"})
    );
    write("revoke select on ev_withdrawn from \"demo/alice\"").await;
    let began = Instant::now();
    let ended = socket.receive().await;
    assert_eq!(
        (&ended["type"], &ended["id"], &ended["error"]),
        (&json!("error"), &json!("a"), &json!("not_allowed")),
        "{ended}"
    );
    assert!(began.elapsed() <= Duration::from_secs(30));
    write("insert into ev_withdrawn (id) values (1)").await;
    assert!(socket.is_silent().await);
}

#[tokio::test]
async fn a_raw_subscription_gets_batches() {
    table("ev_raw").await;
    let mut socket = socket("demo").await;
    let message = json!({"type": "subscription", "id": "r", "schema": "public", "rel": "ev_raw",
        "where": {"id": {"gt": 1}}, "columns": ["name"], "op": "INSERT,DELETE"});
    assert_eq!(
        socket.ask(message).await,
        json!({"type": "subscription_ack", "id": "r"})
    );
    write("insert into ev_raw (id, name) values (1, 'a'), (2, 'b')").await;
    let batch = socket.receive().await;
    assert_eq!(batch["type"], "batch");
    assert_eq!(batch["db"], "demo");
    let expected =
        json!({"INSERT": [["id", 2]], "UPDATE": [], "DELETE": [], "full_data": [{"name": "b"}]});
    assert_eq!(batch["batch"]["demo"]["public.ev_raw"], expected);
    write("update ev_raw set name = 'c'").await;
    write("delete from ev_raw").await;
    let batch = socket.receive().await;
    assert_eq!(
        batch["batch"]["demo"]["public.ev_raw"]["DELETE"],
        json!([["id", 2]])
    );
}

/// Reads events until the text contains `end`.
async fn read_until<B: AsRef<[u8]>>(
    part: &str,
    events: &mut (impl Stream<Item = reqwest::Result<B>> + Unpin),
    text: &mut String,
) {
    while !text.contains(part) {
        let next = tokio::time::timeout(TIMEOUT, events.next()).await;
        let next = next.unwrap_or_else(|_| panic!("nothing comes after {text}"));
        *text += std::str::from_utf8(next.unwrap().unwrap().as_ref()).unwrap();
    }
}

#[tokio::test]
async fn changes_come_as_server_sent_events_too() {
    table("ev_sse").await;
    let token = demo().cached_token("demo").await;
    let query = "subscription%20%7B%20EvSseMessageAdded%20%7B%20id%20%7D%20%7D";
    let path = format!("/api/v4/events/stream?schema=public&query={query}&token={token}");
    // Browsers accept compression, but events must arrive at once.
    let request = demo().request(Method::GET, &path);
    let request = request.header("accept-encoding", "gzip, deflate, br, zstd");
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    assert!(!response.headers().contains_key("content-encoding"));
    let mut events = Box::pin(response.bytes_stream());
    let mut text = String::new();
    read_until("subscribe_ack", &mut events, &mut text).await;
    write("insert into ev_sse (id) values (1)").await;
    read_until("EvSseMessageAdded", &mut events, &mut text).await;
    let (_, event) = text.rsplit_once("id: ").unwrap();
    let (cursor, data) = event.split_once("\ndata: ").unwrap();
    let data: Value = serde_json::from_str(data.trim()).unwrap();
    assert_eq!(
        data,
        json!({"data": {"EvSseMessageAdded": [{"id": "1"}]}, "cursor": cursor})
    );
    drop(events);
    write("insert into ev_sse (id) values (2)").await;
    let again = demo()
        .request(Method::GET, &path)
        .header("last-event-id", cursor);
    let mut events = Box::pin(again.send().await.unwrap().bytes_stream());
    let mut text = String::new();
    read_until("EvSseMessageAdded", &mut events, &mut text).await;
    assert!(text.contains(r#"[{"id":"2"}]"#), "{text}");
    for (query, status) in [
        ("schema=public", 400),
        ("schema=public&query=%7Ba%7D", 400),
        ("schema=no&query=a", 404),
    ] {
        let path = format!("/api/v4/events/stream?{query}&token={token}");
        let response = demo().request(Method::GET, &path).send().await.unwrap();
        assert_eq!(response.status(), status, "{query}");
    }
}
