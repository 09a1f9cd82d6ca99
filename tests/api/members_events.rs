//! Events of members (docs/API.md, "Members"): each gets those of its own rows, also after a
//! cursor.

use serde_json::{Value, json};

use crate::members::{GRAPHQL, SignedIn, USERS, two};
use crate::service::demo;
use crate::socket_client::{Socket, open_at};
use crate::users::owner;

const ADDED: &str = "subscription { MevNotesMessageAdded { title author } }";

async fn socket(member: &SignedIn) -> Socket {
    let path = format!("/?token={}", member.token);
    open_at(&demo().url, &path, &[]).await.unwrap()
}

async fn insert(member: &SignedIn, title: &str) {
    let insert = format!("mutation {{ insertMevNotes(data: {{title: \"{title}\"}}) {{ id }} }}");
    member.data(&insert).await;
}

/// The titles and the cursor of the next event.
async fn event(socket: &mut Socket) -> (Value, String) {
    let event = socket.receive().await;
    assert_eq!(event["type"], "subscription", "{event}");
    let rows = event["data"]["MevNotesMessageAdded"].clone();
    (rows, event["cursor"].as_str().unwrap().to_owned())
}

/// The titles of three events after a cursor, which may be another member's.
async fn missed(member: &SignedIn, cursor: &str) -> (Socket, Vec<String>) {
    let mut socket = socket(member).await;
    let resume = json!({"type": "subscribe", "id": "2", "schema": "public", "query": ADDED,
        "after": cursor});
    socket.send(&resume).await;
    let mut titles = Vec::new();
    while titles.len() < 3 {
        let message = socket.receive().await;
        let rows = message["data"]["MevNotesMessageAdded"].as_array();
        assert!(
            rows.is_some() || message["type"] == "subscribe_ack",
            "{message}"
        );
        let title = |row: &Value| row["title"].as_str().unwrap().to_owned();
        titles.extend(rows.into_iter().flatten().map(title));
    }
    (socket, titles)
}

#[tokio::test]
async fn each_member_gets_the_events_of_its_own_rows() {
    let (a, b) = two("mev").await;
    let (mut of_a, mut of_b) = (socket(&a).await, socket(&b).await);
    of_a.subscribe("1", ADDED).await;
    of_b.subscribe("1", ADDED).await;
    for round in 0..3 {
        insert(&a, &format!("a{round}")).await;
        insert(&b, &format!("b{round}")).await;
    }
    let mut cursor = String::new();
    for round in 0..3 {
        for (socket, member, name) in [(&mut of_a, &a, "a"), (&mut of_b, &b, "b")] {
            let (rows, at) = event(socket).await;
            let title = format!("{name}{round}");
            assert_eq!(rows, json!([{"title": title, "author": member.id}]));
            if round == 0 && name == "a" {
                cursor = at;
            }
        }
    }
    assert!(of_a.is_silent().await && of_b.is_silent().await);
    let (mut again, missed) = missed(&b, &cursor).await;
    assert_eq!(missed, ["b0", "b1", "b2"]);
    assert!(again.is_silent().await);
    // Raw SQL is refused on sockets too, and the socket ends with the member's sessions.
    let response = again.ask(json!({"q": "select 1", "id": 3})).await;
    assert!(
        response.to_string().contains("no SQL of their own"),
        "{response}"
    );
    let gone = owner("DELETE", &format!("{USERS}/mev_b"), Value::Null).await;
    assert_eq!(gone.status, 204);
    let status = b
        .post(GRAPHQL, json!({"query": "{ __typename }"}))
        .await
        .status;
    assert_eq!(status, 401);
    for socket in [&mut of_b, &mut again] {
        assert_eq!(socket.close_code().await, 4401);
    }
    insert(&a, "a3").await;
    assert_eq!(
        event(&mut of_a).await.0,
        json!([{"title": "a3", "author": a.id}])
    );
}

/// Subscribes to the notes of `mpass` in the other protocols of sockets: raw, and
/// `graphql-transport-ws`.
async fn other_protocols(member: &SignedIn) -> [Socket; 2] {
    let mut raw = socket(member).await;
    let table =
        json!({"type": "subscription", "id": "1", "schema": "public", "rel": "mpass_notes"});
    assert_eq!(raw.ask(table).await["type"], "subscription_ack");
    let protocol = [("sec-websocket-protocol", "graphql-transport-ws")];
    let mut transport = open_at(&demo().url, "/", &protocol).await.unwrap();
    let init = json!({"type": "connection_init", "payload": {"token": member.token}});
    assert_eq!(transport.ask(init).await["type"], "connection_ack");
    let query = "subscription { MpassNotesMessageAdded { title } }";
    let subscribe = json!({"type": "subscribe", "id": "1", "payload": {"query": query}});
    let ack = transport.ask(subscribe).await;
    assert_eq!(ack["payload"]["acknowledged"], "1", "{ack}");
    [raw, transport]
}

#[tokio::test]
async fn other_protocols_keep_members_apart_and_a_socket_keeps_its_member() {
    let (a, b) = two("mpass").await;
    let [mut raw, mut transport] = other_protocols(&a).await;
    let write = async |member: &SignedIn, title: &str| {
        let insert =
            format!("mutation {{ insertMpassNotes(data: {{title: \"{title}\"}}) {{ id }} }}");
        member.data(&insert).await;
    };
    write(&b, "of b").await;
    b.data("mutation { updateMpassNotes(data: {title: \"still of b\"}, where: {title: {neq: \"\"}}) { id } }")
        .await;
    b.data("mutation { deleteMpassNotes(where: {title: {neq: \"\"}}) { id } }")
        .await;
    write(&a, "of a").await;
    for socket in [&mut raw, &mut transport] {
        let first = socket.receive().await.to_string();
        assert!(first.contains("of a") && !first.contains("of b"), "{first}");
    }
    assert!(raw.is_silent().await);
    // A token of another member, who has the same role, does not take over the subscriptions.
    let other = raw.ask(json!({"type": "auth", "token": b.token})).await;
    assert_eq!(other["error"], "invalid_token", "{other}");
    assert_eq!(raw.closed().await.0, 4401);
    let mut idle = socket(&a).await;
    let changed = idle.ask(json!({"type": "auth", "token": b.token})).await;
    assert_eq!(changed["type"], "auth_ack", "{changed}");
    idle.subscribe("1", "subscription { MpassNotesMessageAdded { title } }")
        .await;
    write(&a, "only of a").await;
    write(&b, "only of b").await;
    let first = idle.receive().await.to_string();
    assert!(first.contains("only of b"), "{first}");
}
