//! A member that resumes after the cursor of another member (docs/API.md, "Members" and "Order,
//! gaps and slow clients"): it gets its own rows, in every protocol, whether the service or
//! PostgreSQL evaluates the policy.

use reqwest::{Method, Response};
use serde_json::{Value, json};

use crate::members::{SignedIn, run, two};
use crate::pages::encoded;
use crate::service::{TIMEOUT, demo};
use crate::socket_client::{Socket, open_at};

/// A client that resumes after a cursor.
enum Client {
    Socket(Box<Socket>),
    Stream(Response),
}

impl Client {
    /// The text of the next messages.
    async fn next(&mut self) -> String {
        match self {
            Self::Socket(socket) => socket.receive().await.to_string(),
            Self::Stream(stream) => {
                let chunk = tokio::time::timeout(TIMEOUT, stream.chunk()).await;
                String::from_utf8_lossy(&chunk.unwrap().unwrap().unwrap()).into_owned()
            }
        }
    }

    /// Reads until a title appears. Fails if the client gets a row of `other`, or a gap.
    async fn read_until(&mut self, title: &str, other: &str) -> String {
        let mut all = String::new();
        while !all.contains(title) {
            all.push_str(&self.next().await);
            assert!(!all.contains(other), "{all}");
            assert!(!all.contains("resync") && !all.contains("error"), "{all}");
        }
        all
    }
}

/// Subscribes a member to the new rows of `<prefix>_notes` after a cursor, in each protocol.
async fn resumed(member: &SignedIn, prefix: &str, cursor: &str) -> Vec<Client> {
    let (url, token) = (&demo().url, &member.token);
    let query = format!(
        "subscription {{ {}NotesMessageAdded {{ title }} }}",
        capital(prefix)
    );
    let path = format!("/?token={token}");
    let messages = [
        json!({"type": "subscribe", "id": "1", "schema": "public", "query": query, "after": cursor}),
        json!({"type": "subscription", "id": "1", "schema": "public", "op": "INSERT",
            "rel": format!("{prefix}_notes"), "columns": ["title"], "after": cursor}),
    ];
    let mut clients = Vec::new();
    for message in messages {
        let mut socket = open_at(url, &path, &[]).await.unwrap();
        socket.send(&message).await;
        clients.push(Client::Socket(Box::new(socket)));
    }
    let protocol = [("sec-websocket-protocol", "graphql-transport-ws")];
    let mut transport = open_at(url, "/", &protocol).await.unwrap();
    let init = json!({"type": "connection_init", "payload": {"token": token}});
    assert_eq!(transport.ask(init).await["type"], "connection_ack");
    let payload = json!({"query": query, "extensions": {"after": cursor}});
    let subscribe = json!({"type": "subscribe", "id": "1", "payload": payload});
    transport.send(&subscribe).await;
    clients.push(Client::Socket(Box::new(transport)));
    let stream = format!(
        "/api/v4/events/stream?schema=public&query={}",
        encoded(&query)
    );
    let stream = demo().request(Method::GET, &stream).bearer_auth(token);
    let stream = stream.header("last-event-id", cursor).send().await.unwrap();
    assert_eq!(stream.status(), 200);
    clients.push(Client::Stream(stream));
    clients
}

fn capital(prefix: &str) -> String {
    let (first, rest) = prefix.split_at(1);
    format!("{}{rest}", first.to_uppercase())
}

async fn insert(member: &SignedIn, prefix: &str, title: &str) {
    let insert = format!(
        "mutation {{ insert{}Notes(data: {{title: \"{title}\"}}) {{ id }} }}",
        capital(prefix)
    );
    member.data(&insert).await;
}

async fn first_cursor(member: &SignedIn, prefix: &str) -> String {
    let mut socket = open_at(&demo().url, &format!("/?token={}", member.token), &[])
        .await
        .unwrap();
    let query = format!(
        "subscription {{ {}NotesMessageAdded {{ title }} }}",
        capital(prefix)
    );
    socket.subscribe("1", &query).await;
    insert(member, prefix, "row a0").await;
    let event: Value = socket.receive().await;
    event["cursor"].as_str().unwrap().to_owned()
}

async fn check(prefix: &str, policy: &str) {
    let (a, b) = two(prefix).await;
    run(&format!(
        "alter policy own on {prefix}_notes using ({policy})"
    ))
    .await;
    let cursor = first_cursor(&a, prefix).await;
    for (member, title) in [
        (&b, "row b1"),
        (&a, "row a1"),
        (&b, "row b2"),
        (&b, "row b3"),
    ] {
        insert(member, prefix, title).await;
    }
    let mut clients = resumed(&b, prefix, &cursor).await;
    for client in &mut clients {
        let text = client.read_until("row b3", "row a").await;
        let places = ["row b1", "row b2", "row b3"].map(|title| text.find(title));
        assert!(places.is_sorted() && places[0].is_some(), "{text}");
    }
    insert(&a, prefix, "row a9").await;
    insert(&b, prefix, "row b9").await;
    for client in &mut clients {
        client.read_until("row b9", "row a").await;
    }
}

#[tokio::test]
async fn another_members_cursor_shows_none_of_its_rows() {
    check("mcurs", "author = (select tidegate.user_id())").await;
}

#[tokio::test]
async fn nor_does_it_where_postgresql_evaluates_the_policy() {
    check(
        "mcurl",
        "lower(author) = lower((select tidegate.user_id()))",
    )
    .await;
}
