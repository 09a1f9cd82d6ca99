//! Tests the protocol `graphql-transport-ws` (API.md, "Sockets and change events").

use serde_json::{Value, json};

use crate::service::demo;
use crate::socket_client::{Socket, open};
use crate::socket_events::{table, write};

async fn transport(path: &str) -> Socket {
    open(path, &[("sec-websocket-protocol", "graphql-transport-ws")])
        .await
        .unwrap()
}

#[tokio::test]
async fn graphql_transport_ws_speaks_its_protocol() {
    table("ev_transport").await;
    let token = demo().cached_token("demo").await;
    for (path, init) in [
        (
            "/api/graphql/schema/public".to_owned(),
            json!({"Authorization": format!("Bearer {token}")}),
        ),
        (format!("/api/v4/events?token={token}"), json!({})),
        ("/".to_owned(), json!({"token": token, "schema": "public"})),
    ] {
        let mut socket = transport(&path).await;
        let ack = socket
            .ask(json!({"type": "connection_init", "payload": init}))
            .await;
        assert_eq!(ack, json!({"type": "connection_ack"}));
        let pong = socket
            .ask(json!({"type": "ping", "payload": {"a": 1}}))
            .await;
        assert_eq!(pong, json!({"type": "pong", "payload": {"a": 1}}));
        let subscribe = |id: &str, query: &str| json!({"type": "subscribe", "id": id, "payload": {"query": query}});
        let next = socket.ask(subscribe("q", "{ __typename }")).await;
        assert_eq!(
            next,
            json!({"id": "q", "type": "next", "payload": {"data": {"__typename": "Query"}}})
        );
        assert_eq!(
            socket.receive().await,
            json!({"type": "complete", "id": "q"})
        );
        let error = socket.ask(subscribe("e", "{ nothing }")).await;
        assert_eq!(
            (&error["type"], &error["id"]),
            (&json!("error"), &json!("e"))
        );
        assert!(error["payload"][0]["message"].is_string(), "{error}");
        let pong = socket
            .ask(subscribe(
                "s",
                "subscription { EvTransportMessageAdded { id } }",
            ))
            .await;
        assert_eq!(pong["payload"]["acknowledged"], "s", "{pong}");
        write("insert into ev_transport (id) values (1)").await;
        let event = socket.receive().await;
        assert_eq!(
            (&event["type"], &event["id"]),
            (&json!("next"), &json!("s"))
        );
        assert_eq!(
            event["payload"]["data"]["EvTransportMessageAdded"],
            json!([{"id": "1"}])
        );
        assert!(event["payload"]["extensions"]["cursor"].is_string());
        write("delete from ev_transport").await;
    }
}

#[tokio::test]
async fn graphql_transport_ws_ends_a_subscription_that_is_completed() {
    table("ev_completed").await;
    let token = demo().cached_token("demo").await;
    let mut socket = transport("/").await;
    let init = json!({"type": "connection_init", "payload": {"token": token}});
    assert_eq!(socket.ask(init).await["type"], "connection_ack");
    let subscribe = |id: &str| {
        let query = "subscription { EvCompletedMessageAdded { id } }";
        json!({"type": "subscribe", "id": id, "payload": {"query": query}})
    };
    for id in ["a", "b"] {
        assert_eq!(
            socket.ask(subscribe(id)).await["payload"]["acknowledged"],
            id
        );
    }
    socket.send(&json!({"type": "complete", "id": "a"})).await;
    assert_eq!(socket.ask(json!({"type": "ping"})).await["type"], "pong");
    for row in 1..=2 {
        write(&format!("insert into ev_completed (id) values ({row})")).await;
        assert_eq!(socket.receive().await["id"], "b");
    }
    // The id of the subscription can be used again.
    assert_eq!(
        socket.ask(subscribe("a")).await["payload"]["acknowledged"],
        "a"
    );
}

#[tokio::test]
async fn graphql_transport_ws_closes_with_its_codes() {
    let token = demo().cached_token("demo").await;
    let init = json!({"type": "connection_init", "payload": {"token": token}});
    let subscribe = json!({"type": "subscribe", "id": "a", "payload": {"query": "subscription { ArtistsMessageAdded { id } }"}});
    let cases: Vec<(Vec<Value>, u16)> = vec![
        (vec![json!(7)], 4400),
        (vec![json!({"type": "nothing"})], 4400),
        (
            vec![init.clone(), json!({"type": "subscribe", "id": "a"})],
            4400,
        ),
        (vec![subscribe.clone()], 4401),
        (
            vec![json!({"type": "connection_init", "payload": {"token": "abc"}})],
            4401,
        ),
        (vec![init.clone(), subscribe.clone(), subscribe], 4409),
        (vec![init.clone(), init], 4429),
    ];
    for (messages, code) in cases {
        let mut socket = transport("/").await;
        for message in &messages {
            socket.send(message).await;
        }
        assert_eq!(socket.close_code().await, code, "{messages:?}");
    }
}
