//! Tests many concurrent subscriptions (API.md, "Sockets and change events").

use serde_json::json;

use crate::service::{demo, eventually};
use crate::socket_client::{Socket, open};

const SOCKETS: usize = 20;
const SUBSCRIPTIONS: usize = 100;
const TABLES: usize = 10;

async fn write(q: &str) {
    demo().rows("demo", q, json!({})).await;
}

/// Sends all subscriptions before it reads a response. Half of the tables have row level security.
async fn burst(user: &str) -> Socket {
    let token = demo().cached_token(user).await;
    let mut socket = open(&format!("/?token={token}"), &[]).await.unwrap();
    for id in 0..SUBSCRIPTIONS {
        let table = id % TABLES;
        let message = if id < SUBSCRIPTIONS / 2 {
            json!({"type": "subscription", "id": id.to_string(), "schema": "public",
                "rel": format!("ev_burst{table}"), "op": "INSERT"})
        } else {
            let query = format!("subscription {{ EvBurst{table}MessageAdded {{ id }} }}");
            json!({"type": "subscribe", "id": id.to_string(), "schema": "public", "query": query})
        };
        socket.send(&message).await;
    }
    for _ in 0..SUBSCRIPTIONS {
        let response = socket.receive().await;
        let kind = response["type"].as_str().unwrap();
        assert!(
            kind == "subscribe_ack" || kind == "subscription_ack",
            "{response}"
        );
    }
    socket
}

#[tokio::test(flavor = "multi_thread")]
async fn two_thousand_subscriptions_at_once_are_all_acknowledged_and_live() {
    for table in 0..TABLES {
        write(&format!(
            "create table ev_burst{table} (id int8 primary key)"
        ))
        .await;
        write(&format!(
            "grant select on ev_burst{table} to \"demo/alice\""
        ))
        .await;
        if table % 2 == 0 {
            write(&format!(
                "alter table ev_burst{table} enable row level security"
            ))
            .await;
            write(&format!(
                "create policy known on ev_burst{table} using (id < 10)"
            ))
            .await;
        }
    }
    let last = format!("{{ __type(name: \"EvBurst{}\") {{ name }} }}", TABLES - 1);
    for user in ["demo", "alice"] {
        eventually("the tables are in the schema", || async {
            let response = crate::graphql::ask(Some(user), &last, json!({})).await;
            !response["data"]["__type"].is_null()
        })
        .await;
    }
    let mut bursts = tokio::task::JoinSet::new();
    for at in 0..SOCKETS {
        bursts.spawn(burst(if at % 2 == 0 { "demo" } else { "alice" }));
    }
    let mut sockets = bursts.join_all().await;
    assert_eq!(sockets.len(), SOCKETS);
    for table in 0..TABLES {
        write(&format!("insert into ev_burst{table} values (1)")).await;
    }
    for socket in &mut sockets {
        let mut received = Vec::new();
        for _ in 0..SUBSCRIPTIONS {
            let event = socket.receive().await;
            received.push(event["id"].as_str().unwrap().parse::<usize>().unwrap());
        }
        received.sort_unstable();
        assert!(received.into_iter().eq(0..SUBSCRIPTIONS));
    }
}
