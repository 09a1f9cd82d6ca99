//! Tests what subscribers see of faults of PostgreSQL and the service, and of changes of tables
//! (API.md, "Sockets and change events").

use serde_json::{Value, json};
use tidegate_embedded::Shutdown;

use crate::node::{Node, operator};
use crate::operator::Operator;
use crate::socket_client::{Socket, owner, socket_at};

const ADDED: &str = "subscription { DocsMessageAdded { id text } }";
const UPDATED: &str = "subscription { DocsMessageUpdated { id text } }";
const DELETED: &str = "subscription { DocsMessageDeleted { id text } }";
const DOCS: &str = "CREATE TABLE docs (id int8 PRIMARY KEY, text text, writer text); \
                    ALTER TABLE docs OWNER TO shop";

async fn run(operator: &Operator, sql: &str) {
    let root = operator.root("shop").await;
    root.batch_execute(sql).await.unwrap();
}

/// Reads the next message, which must be an event. Returns the id of its row, and its cursor.
async fn event(socket: &mut Socket) -> (String, Value) {
    let event = socket.receive().await;
    assert_eq!(event["type"], "subscription", "{event}");
    let row = event["data"].as_object().unwrap().values().next().unwrap();
    (
        row[0]["id"].as_str().unwrap().to_owned(),
        event["cursor"].clone(),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn restarts_of_postgresql_and_of_the_node_lose_and_repeat_nothing() {
    let operator = operator().await;
    run(&operator, DOCS).await;
    let node = Node::start(&operator).await;
    let mut socket = owner(&node).await;
    socket.subscribe("a", ADDED).await;
    run(&operator, "INSERT INTO docs VALUES (1)").await;
    assert_eq!(event(&mut socket).await.0, "1");
    let mut row = 1;
    for mode in [Shutdown::Fast, Shutdown::Immediate] {
        operator.cluster.restart(mode).await.unwrap();
        row += 1;
        run(&operator, &format!("INSERT INTO docs VALUES ({row})")).await;
        assert_eq!(event(&mut socket).await.0, row.to_string());
    }
    run(&operator, "INSERT INTO docs VALUES (4)").await;
    let (id, cursor) = event(&mut socket).await;
    assert_eq!(id, "4");
    node.stop();
    run(&operator, "INSERT INTO docs VALUES (5)").await;
    let node = Node::start(&operator).await;
    let mut socket = owner(&node).await;
    let subscribe = json!({"type": "subscribe", "id": "a", "schema": "public", "query": ADDED,
        "after": cursor});
    assert_eq!(socket.ask(subscribe).await["type"], "subscribe_ack");
    assert_eq!(event(&mut socket).await.0, "5");
    run(&operator, "INSERT INTO docs VALUES (6)").await;
    assert_eq!(event(&mut socket).await.0, "6");
    assert!(socket.is_silent().await);
    node.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_the_table_ends_what_it_makes_impossible_and_nothing_else() {
    let operator = operator().await;
    run(&operator, DOCS).await;
    let node = Node::start(&operator).await;
    let (mut keeps, mut loses) = (owner(&node).await, owner(&node).await);
    let only_id = "subscription { DocsMessageAdded { id } }";
    keeps.subscribe("keeps", only_id).await;
    loses.subscribe("loses", ADDED).await;
    run(
        &operator,
        "ALTER TABLE docs ADD more int; INSERT INTO docs VALUES (1, 'a')",
    )
    .await;
    assert_eq!(event(&mut keeps).await.0, "1");
    assert_eq!(event(&mut loses).await.0, "1");
    run(
        &operator,
        "ALTER TABLE docs DROP text; INSERT INTO docs (id) VALUES (2)",
    )
    .await;
    assert_eq!(event(&mut keeps).await.0, "2");
    let ended = loop {
        let message = loses.receive().await;
        // The column was rewritten and is empty. It reads as null until the change log reports that
        // it was dropped.
        if message["type"] != "subscription" {
            break message;
        }
    };
    assert_eq!(
        (&ended["type"], &ended["id"]),
        (&json!("error"), &json!("loses")),
        "{ended}"
    );
    assert!(
        ended["message"].as_str().unwrap().contains("`text`"),
        "{ended}"
    );
    run(&operator, "DROP TABLE docs").await;
    let ended = keeps.receive().await;
    assert_eq!(
        (&ended["type"], &ended["id"]),
        (&json!("error"), &json!("keeps")),
        "{ended}"
    );
    assert!(keeps.is_silent().await && loses.is_silent().await);
    node.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn values_of_a_mebibyte_come_whole_also_when_they_did_not_change() {
    let operator = operator().await;
    run(&operator, DOCS).await;
    let node = Node::start(&operator).await;
    let mut socket = owner(&node).await;
    let size = 1 << 20;
    for (id, query) in [("a", ADDED), ("u", UPDATED), ("d", DELETED)] {
        socket.subscribe(id, query).await;
    }
    let insert = format!(
        "INSERT INTO docs VALUES (1, repeat('\u{e9}', {}), 'x')",
        size / 2
    );
    for (statement, id, field) in [
        (insert.as_str(), "a", "DocsMessageAdded"),
        ("UPDATE docs SET writer = 'y'", "u", "DocsMessageUpdated"),
        ("DELETE FROM docs", "d", "DocsMessageDeleted"),
    ] {
        run(&operator, statement).await;
        let event = socket.receive().await;
        assert_eq!(event["id"], id);
        let text = event["data"][field][0]["text"].as_str().unwrap();
        assert_eq!(text.len(), size, "{field}");
        assert!(text.chars().all(|letter| letter == '\u{e9}'), "{field}");
    }
    node.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn row_level_security_decides_for_each_image_and_each_socket() {
    let operator = operator().await;
    run(&operator, DOCS).await;
    let password = ["--password-file", "-"];
    for user in ["ann", "ben"] {
        let create = ["user", "create", "shop", user];
        operator.succeeds(&[&create[..], &password].concat(), "users-password\n");
    }
    let policy = "ALTER TABLE docs ENABLE ROW LEVEL SECURITY; \
                  CREATE POLICY own ON docs USING (writer = current_user); \
                  GRANT SELECT ON docs TO \"shop/ann\", \"shop/ben\"";
    run(&operator, policy).await;
    let node = Node::start(&operator).await;
    let mut ann = socket_at(&node, "ann", "users-password").await;
    let mut ben = socket_at(&node, "ben", "users-password").await;
    for socket in [&mut ann, &mut ben] {
        for (id, query) in [("a", ADDED), ("u", UPDATED), ("d", DELETED)] {
            socket.subscribe(id, query).await;
        }
    }
    let writes = "INSERT INTO docs VALUES (1, 't', 'shop/ann'); \
                  UPDATE docs SET writer = 'shop/ben'; \
                  UPDATE docs SET writer = NULL; \
                  UPDATE docs SET writer = 'shop/ann'; \
                  DELETE FROM docs; \
                  INSERT INTO docs VALUES (2, 't', 'shop/ben')";
    run(&operator, writes).await;
    for (socket, kinds) in [
        (&mut ann, &["a", "d", "u"][..]),
        (&mut ben, &["a", "u"][..]),
    ] {
        let mut received = Vec::new();
        for _ in 0..kinds.len() {
            let event = socket.receive().await;
            assert_eq!(event["type"], "subscription", "{event}");
            received.push(event["id"].as_str().unwrap().to_owned());
        }
        // The order is not fixed, because the rows of each subscription are evaluated separately.
        received.sort();
        assert_eq!(received, kinds);
        assert!(socket.is_silent().await);
    }
    node.stop();
}

/// The feed raises the replica identity, so that policies can be evaluated for deleted rows. If the
/// owner lowers it, events of deleted rows are withheld until it is REPLICA IDENTITY FULL again.
#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_row_that_policies_cannot_evaluate_is_withheld_unless_the_owner_opts_in() {
    let operator = operator().await;
    run(&operator, DOCS).await;
    let create = ["user", "create", "shop", "ann", "--password-file", "-"];
    operator.succeeds(&create, "users-password\n");
    run(
        &operator,
        "ALTER TABLE docs ENABLE ROW LEVEL SECURITY; \
         CREATE POLICY own ON docs USING (writer = current_user); \
         GRANT SELECT ON docs TO \"shop/ann\"",
    )
    .await;
    let node = Node::start(&operator).await;
    let mut ann = socket_at(&node, "ann", "users-password").await;
    ann.subscribe("a", "subscription { DocsMessageAdded { id } }")
        .await;
    ann.subscribe("d", "subscription { DocsMessageDeleted { id } }")
        .await;
    for (identity, row, reported) in [("DEFAULT", 1, false), ("FULL", 2, true)] {
        run(
            &operator,
            &format!(
                "ALTER TABLE docs REPLICA IDENTITY {identity}; \
                 INSERT INTO docs VALUES ({row}, 't', 'shop/ann'); DELETE FROM docs; \
                 INSERT INTO docs VALUES ({row}0, 't', 'shop/ann'); \
                 INSERT INTO docs VALUES ({row}1, 't', 'shop')"
            ),
        )
        .await;
        assert_eq!(event(&mut ann).await.0, row.to_string());
        if reported {
            // The row that was inserted before is deleted too.
            let mut deleted = [event(&mut ann).await.0, event(&mut ann).await.0];
            deleted.sort();
            assert_eq!(deleted, ["10", "2"]);
        }
        assert_eq!(event(&mut ann).await.0, format!("{row}0"));
        assert!(ann.is_silent().await);
    }
    node.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn without_logical_decoding_subscriptions_are_refused_and_the_rest_works() {
    let operator = operator().await;
    run(&operator, "ALTER SYSTEM SET wal_level = replica").await;
    operator.cluster.restart(Shutdown::Fast).await.unwrap();
    let status = operator.succeeds(&["feed", "status"], "");
    let remark = "wal_level = replica  (change events need logical)\n";
    assert!(status.contains(remark), "{status}");
    let node = Node::start(&operator).await;
    let ready = node
        .client
        .get(format!("{}/readyz", node.url))
        .send()
        .await
        .unwrap();
    let ready: Value = ready.json().await.unwrap();
    assert_eq!(ready["checks"]["feed"], "degraded", "{ready}");
    assert_eq!(ready["status"], "ready", "{ready}");
    let mut socket = owner(&node).await;
    let raw = json!({"type": "subscription", "id": "a", "schema": "public", "rel": "orders"});
    let refused = socket.ask(raw).await;
    assert_eq!(
        (&refused["error"], &refused["id"]),
        (&json!("feed_unavailable"), &json!("a")),
        "{refused}"
    );
    // The same holds over GraphQL, whose schema has no subscriptions now.
    let document = "subscription { OrdersMessageAdded { id } }";
    let message = json!({"type": "subscribe", "id": "g", "schema": "public", "query": document});
    let refused = socket.ask(message).await;
    assert_eq!(
        (&refused["error"], &refused["id"]),
        (&json!("feed_unavailable"), &json!("g")),
        "{refused}"
    );
    let response = socket.ask(json!({"q": "select 1 as one"})).await;
    assert_eq!(response["data"], json!([{"one": 1}]), "{response}");
    let stream = node
        .client
        .get(format!("{}/api/v4/events/stream", node.url));
    let tokens = node.sign_in("shop", "shop", "owner-password").await;
    let token = tokens["access_token"].as_str().unwrap();
    let query = [("schema", "public"), ("query", document), ("token", token)];
    let response = stream.query(&query).send().await.unwrap();
    assert_eq!(response.status(), 503);
    let response: Value = response.json().await.unwrap();
    assert_eq!(response["errorCode"], "FEED_UNAVAILABLE", "{response}");
    assert_eq!(
        response["message"], refused["message"],
        "the reason, as a socket is told"
    );
    let log = node.stop();
    assert!(log.contains("wal_level"), "the log says why");
}
