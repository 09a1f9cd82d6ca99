//! Tests a node with replicas: reads show what their session, a position or an event makes them
//! expect, and no read fails because of a replica (API.md, "Replicas").

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tidegate_embedded::{Cluster, Shutdown, testing};
use tidegate_testkit::{Random, eventually, soon};

use crate::node::{Node, operator};
use crate::operator::Operator;
use crate::socket_client::owner;

/// How far the replica is behind.
const DELAY: &str = "200ms";

/// An operator with a replica, whose commits appear after `delay`, and a node that uses it.
pub(crate) async fn replicated(delay: &str) -> (Operator, Cluster, Node) {
    let mut operator = operator().await;
    let inside = operator.root("shop").await;
    let table =
        "CREATE TABLE docs (id int8 PRIMARY KEY, text text); ALTER TABLE docs OWNER TO shop";
    inside.batch_execute(table).await.unwrap();
    let settings = testing::settings().with("recovery_min_apply_delay", delay);
    let replica = operator.cluster.start_standby(settings).await.unwrap();
    let (password, port) = (operator.cluster.admin_password(), replica.port());
    operator.replica_urls = format!("postgresql://postgres:{password}@127.0.0.1:{port}/postgres");
    let node = Node::start(&operator).await;
    used(&node, 1).await;
    (operator, replica, node)
}

/// The value of a metric of the only replica.
pub(crate) async fn metric(node: &Node, name: &str) -> u64 {
    let metrics = node.client.get(format!("{}/metrics", node.url));
    let metrics = metrics.send().await.unwrap().text().await.unwrap();
    let name = format!("tidegate_replica_{name}{{");
    let line = metrics.lines().find(|line| line.starts_with(&name));
    let value = line.and_then(|line| line.rsplit_once(' '));
    value
        .unwrap_or_else(|| panic!("no {name}"))
        .1
        .parse()
        .unwrap()
}

async fn used(node: &Node, value: u64) {
    eventually("the state of the replica", async || {
        metric(node, "used").await == value
    })
    .await;
}

/// A session of the owner.
struct OwnerSession<'a> {
    node: &'a Node,
    token: String,
}

impl<'a> OwnerSession<'a> {
    async fn new(node: &'a Node) -> Self {
        let tokens = node.sign_in("shop", "shop", "owner-password").await;
        let token = tokens["access_token"].as_str().unwrap().to_owned();
        Self { node, token }
    }

    /// Sends a request that must succeed. Returns its body and the position in its header.
    async fn send(&self, path: &str, body: &Value, after: Option<&str>) -> (Value, String) {
        let request = self.node.client.post(format!("{}{path}", self.node.url));
        let mut request = request.bearer_auth(&self.token).json(body);
        if let Some(after) = after {
            request = request.header("Tidegate-After", after);
        }
        let response = request.send().await.unwrap();
        let position = response.headers().get("Tidegate-Position");
        let position = position.map_or("", |position| position.to_str().unwrap());
        let (status, position) = (response.status(), position.to_owned());
        let body: Value = response.json().await.unwrap();
        assert_eq!(status, StatusCode::OK, "{body}");
        (body, position)
    }

    async fn insert(&self, id: usize) -> String {
        let q = "INSERT INTO docs VALUES (:id, 'new')";
        let one = json!({"q": q, "params": {"id": id}});
        let (body, position) = match id % 3 {
            0 => self.send("/api/v4/sql", &one, None).await,
            1 => self.send("/api/v4/sql", &json!([one]), None).await,
            _ => {
                let query = format!(
                    "mutation {{ insertDocs(data: [{{id: {id}, text: \"new\"}}]) {{ id }} }}"
                );
                self.graphql(&query, None).await
            }
        };
        assert!(position.contains('/'), "{position} {body}");
        position
    }

    async fn graphql(&self, query: &str, after: Option<&str>) -> (Value, String) {
        let path = "/api/graphql/schema/public";
        let (body, position) = self.send(path, &json!({ "query": query }), after).await;
        assert!(body["errors"].is_null(), "{body}");
        (body, position)
    }

    /// Whether a query shows the row. `both` reads it twice, in one snapshot.
    async fn shows(&self, id: usize, both: bool, after: Option<&str>) -> bool {
        let read = format!("getDocs(where: {{id: {id}}}, limit: 1) {{ id }}");
        let query = if both {
            format!("{{ a: {read} b: getDocs(limit: 1, orderBy: {{id: desc}}) {{ id }} }}")
        } else {
            format!("{{ a: {read} }}")
        };
        let (body, _) = self.graphql(&query, after).await;
        body["data"]["a"].as_array().unwrap().len() == 1
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_shows_what_its_session_wrote_and_what_is_before_its_position() {
    const WRITES: usize = 1_200;
    let (_operator, _replica, node) = replicated(DELAY).await;
    let (writer, reader) = (
        OwnerSession::new(&node).await,
        OwnerSession::new(&node).await,
    );
    let mut random = Random::new(7);
    let (mut positions, mut old) = (vec![String::new()], 0);
    for id in 1..=WRITES {
        positions.push(writer.insert(id).await);
        let both = random.one_in(2);
        assert!(writer.shows(id, both, None).await, "{id}, own session");
        // A write of a moment ago, which the replica has replayed or not.
        let earlier = id - random.below(id.min(150));
        let after = Some(positions[earlier].as_str());
        assert!(
            reader.shows(earlier, both, after).await,
            "{earlier} of {id}"
        );
        old += usize::from(!reader.shows(id, both, None).await);
    }
    // Without a position the replica answers, and shows what it has. On a busy machine it is
    // sometimes too far behind to be used.
    assert!(old > WRITES / 10, "{old}");
    let answered = metric(&node, "reads_total").await;
    assert!(answered > WRITES as u64 / 10, "{answered}");
    assert_eq!(metric(&node, "failed_reads_total").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_shows_the_event_that_the_client_got() {
    let (_operator, _replica, node) = replicated(DELAY).await;
    let (writer, reader) = (
        OwnerSession::new(&node).await,
        OwnerSession::new(&node).await,
    );
    let mut socket = owner(&node).await;
    let added = "subscription { DocsMessageAdded { id } }";
    socket.subscribe("a", added).await;
    let mut old = 0;
    for id in 1..=200 {
        writer.insert(id).await;
        let event = soon(socket.receive()).await;
        assert_eq!(event["type"], "subscription", "{event}");
        let cursor = event["cursor"].as_str().unwrap();
        assert!(
            reader.shows(id, false, Some(cursor)).await,
            "{id}, by cursor"
        );
        let query = format!("{{ getDocs(where: {{id: {id}}}) {{ id }} }}");
        let read = json!({"type": "subscribe", "id": "r", "schema": "public", "query": query});
        let read = socket.ask(read).await;
        let rows = json!({"getDocs": [{"id": id.to_string()}]});
        assert_eq!(read["data"], rows, "{id}, on the socket");
        assert_eq!(socket.receive().await["type"], "complete");
        old += usize::from(!reader.shows(id, false, None).await);
    }
    assert!(old > 100, "{old}");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_read_fails_while_a_replica_dies_and_comes_back() {
    let (operator, replica, node) = replicated("0").await;
    OwnerSession::new(&node).await.insert(1).await;
    tidegate_testkit::caught_up(&operator.cluster, &replica).await;
    let node = Arc::new(node);
    let (stopped, count) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicUsize::new(0)),
    );
    let mut readers = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let (node, stopped, count) = (node.clone(), stopped.clone(), count.clone());
        readers.spawn(async move {
            let session = OwnerSession::new(&node).await;
            while !stopped.load(Ordering::Relaxed) {
                assert!(
                    session
                        .shows(1, count.load(Ordering::Relaxed).is_multiple_of(2), None)
                        .await
                );
                count.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    let more = async |reads: usize| {
        let until = count.load(Ordering::Relaxed) + reads;
        eventually("reads go on", async || {
            count.load(Ordering::Relaxed) >= until
        })
        .await;
    };
    for mode in [Shutdown::Kill, Shutdown::Immediate] {
        let before = metric(&node, "reads_total").await;
        eventually("the replica answers", async || {
            metric(&node, "reads_total").await > before
        })
        .await;
        replica.halt(mode).await.unwrap();
        used(&node, 0).await;
        more(100).await;
        let ready = node
            .client
            .get(format!("{}/readyz", node.url))
            .send()
            .await
            .unwrap();
        assert_eq!(ready.status(), StatusCode::OK);
        let ready: Value = ready.json().await.unwrap();
        assert_eq!(ready["checks"]["replicas"], "degraded", "{ready}");
        replica.resume().await.unwrap();
        used(&node, 1).await;
    }
    stopped.store(true, Ordering::Relaxed);
    while let Some(reader) = readers.join_next().await {
        reader.unwrap();
    }
}

/// The names in a header with a list of headers.
fn names<'a>(response: &'a reqwest::Response, header: &str) -> Vec<&'a str> {
    let list = response.headers()[header].to_str().unwrap();
    list.split(',').map(str::trim).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_another_origin_may_read_positions_and_send_them() {
    let (_operator, _replica, node) = replicated("0").await;
    let session = OwnerSession::new(&node).await;
    let ask = |method| {
        let request = node
            .client
            .request(method, format!("{}/api/v4/sql", node.url));
        request.header("Origin", "https://app.example")
    };
    let preflight = ask(Method::OPTIONS)
        .header("Access-Control-Request-Method", "POST")
        .header("Access-Control-Request-Headers", "tidegate-after");
    let preflight = preflight.send().await.unwrap();
    assert_eq!(preflight.status(), StatusCode::NO_CONTENT);
    let allowed = names(&preflight, "access-control-allow-headers");
    assert!(allowed.contains(&"Tidegate-After"), "{allowed:?}");
    assert!(allowed.contains(&"Authorization"), "{allowed:?}");
    let write = json!({"q": "INSERT INTO docs VALUES (1, 'new')"});
    let write = ask(Method::POST).bearer_auth(&session.token).json(&write);
    let written = write.send().await.unwrap();
    assert_eq!(written.status(), StatusCode::OK);
    assert!(written.headers().contains_key("tidegate-position"));
    let exposed = names(&written, "access-control-expose-headers");
    assert!(exposed.contains(&"Tidegate-Position"), "{exposed:?}");
    assert!(exposed.contains(&"X-Request-Id"), "{exposed:?}");
}

/// The replicas in the output of `tidegate cluster status`.
fn shown(operator: &Operator) -> Value {
    let text = operator.succeeds(&["cluster", "status", "--json"], "");
    let status: Value = serde_json::from_str(&text).unwrap();
    status["replicas"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_status_shows_how_far_replicas_are_and_what_is_wrong_with_them() {
    let (mut operator, replica, node) = replicated("0").await;
    tidegate_testkit::caught_up(&operator.cluster, &replica).await;
    let address = format!("127.0.0.1:{}", replica.port());
    let paused = tidegate_testkit::connect(&replica.url("postgres")).await;
    let pause = "SELECT pg_wal_replay_pause()";
    paused.batch_execute(pause).await.unwrap();
    let inside = operator.root("shop").await;
    let write = "INSERT INTO docs SELECT id, 'new' FROM generate_series(1, 1000) id";
    inside.batch_execute(write).await.unwrap();
    eventually("the lag is shown", async || {
        let shown = shown(&operator);
        assert_eq!(shown[0]["address"], address, "{shown}");
        assert!(shown[0]["problem"].is_null(), "{shown}");
        shown[0]["lag_bytes"].as_u64().unwrap() > 10_000
    })
    .await;
    eventually("the metric shows the lag", async || {
        metric(&node, "lag_bytes").await > 10_000
    })
    .await;
    replica.halt(Shutdown::Kill).await.unwrap();
    // The second URL is that of the primary.
    operator.replica_urls = format!("{},{}", operator.replica_urls, operator.admin_url);
    let shown = shown(&operator);
    assert!(shown[0]["lag_bytes"].is_null() && shown[1]["lag_bytes"].is_null());
    assert!(shown[0]["problem"].is_string(), "{shown}");
    assert_eq!(shown[1]["problem"], "it is no standby", "{shown}");
    let text = operator.succeeds(&["cluster", "status"], "");
    let line = text.lines().find(|line| line.starts_with(&address));
    assert!(line.is_some(), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn definitions_grants_and_functions_that_write_hold_as_on_the_primary() {
    let (operator, replica, node) = replicated("0").await;
    let (owner, other) = (
        OwnerSession::new(&node).await,
        OwnerSession::new(&node).await,
    );
    let sql = async |q: &str| owner.send("/api/v4/sql", &json!({ "q": q }), None).await;
    owner.insert(1).await;
    sql("CREATE FUNCTION noted() RETURNS int LANGUAGE sql AS $$ \
         INSERT INTO docs VALUES (7, 'by a view') ON CONFLICT DO NOTHING; SELECT 1 $$")
    .await;
    sql("CREATE VIEW writing AS SELECT noted() AS n").await;
    tidegate_testkit::caught_up(&operator.cluster, &replica).await;
    eventually("the API has the view", async || {
        let body = json!({"query": "{ getWriting { n } }"});
        let path = "/api/graphql/schema/public";
        let (body, _) = other.send(path, &body, None).await;
        // The replica refuses to write, as the primary does in a query.
        body["data"]["getWriting"].is_array() || body["errors"][0]["extensions"]["code"].is_string()
    })
    .await;
    // A new column is read by another session, which has no position behind the definition.
    sql("ALTER TABLE docs ADD more int8 DEFAULT 5").await;
    eventually("the API has the column", async || {
        let body = json!({"query": "{ getDocs(where: {id: 1}) { more } }"});
        let (body, _) = other.send("/api/graphql/schema/public", &body, None).await;
        let unknown = body["errors"][0]["extensions"]["code"] == "GRAPHQL_VALIDATION_FAILED";
        assert!(
            unknown || body["data"]["getDocs"] == json!([{"more": "5"}]),
            "{body}"
        );
        !unknown
    })
    .await;
    let wrong = node
        .client
        .post(format!("{}/api/graphql/schema/public", node.url));
    let wrong = wrong
        .bearer_auth(&other.token)
        .header("Tidegate-After", "yesterday");
    let wrong = wrong
        .json(&json!({"query": "{ getDocs { id } }"}))
        .send()
        .await
        .unwrap();
    assert_eq!(wrong.status(), StatusCode::BAD_REQUEST);
    let text = wrong.text().await.unwrap();
    assert!(text.contains("`Tidegate-After` must be"), "{text}");
}
