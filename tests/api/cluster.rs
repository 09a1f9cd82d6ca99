//! Tests several nodes on one PostgreSQL with its default number of connections (OPERATIONS.md,
//! "Connections").

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::node::{Node, operator};
use crate::operator::Operator;
use crate::service::eventually;
use crate::socket_client::owner;

/// The connections that all nodes may open together: `max_connections` 100, without three for
/// superusers and ten for other clients.
const TOTAL: u64 = 87;
/// The concurrent requests of each tenant at each node. The pools of three nodes would have to hold
/// 120 connections for them.
const REQUESTS: usize = 10;
const TENANTS: [&str; 4] = ["shop", "one", "two", "three"];

/// The state of the cluster that an operator sees.
fn status(operator: &Operator) -> Value {
    let text = operator.succeeds(&["cluster", "status", "--json"], "");
    serde_json::from_str(&text).unwrap()
}

/// The shares of the registered nodes, in the order of their starts.
fn budgets(operator: &Operator) -> Vec<u64> {
    let status = status(operator);
    let nodes = status["nodes"].as_array().unwrap();
    nodes
        .iter()
        .map(|node| node["budget"].as_u64().unwrap())
        .collect()
}

/// An operator with several tenants. Each has a client of the same name as the tenant; the client
/// of `shop` is `app`.
async fn tenants() -> Operator {
    let operator = operator().await;
    for tenant in &TENANTS[1..] {
        let create = ["tenant", "create", tenant, "--password-file", "-"];
        operator.succeeds(&create, "owner-password\n");
        let uri = ["--redirect-uri", "http://127.0.0.1:5000/callback"];
        let client = [
            "client", "create", tenant, "App", "--id", tenant, "--public",
        ];
        operator.succeeds(&[&client[..], &uri].concat(), "");
    }
    operator
}

/// Signs the owner of a tenant in.
async fn token(node: &Node, tenant: &str) -> String {
    let client = if tenant == "shop" { "app" } else { tenant };
    let body = json!({
        "grant_type": "password", "username": tenant, "password": "owner-password",
        "database": tenant, "client_id": client,
    });
    let (status, response) = node.post("/api/v4/oauth", None, body).await;
    assert_eq!(status, 200, "{response}");
    response["access_token"].as_str().unwrap().to_owned()
}

/// The state that the load generators of all nodes share.
#[derive(Default)]
struct Load {
    tokens: Vec<String>,
    stop: AtomicBool,
    answered: AtomicUsize,
}

impl Load {
    /// Waits until `count` more requests were answered.
    async fn responses(&self, count: usize) {
        let until = self.answered.load(Ordering::Relaxed) + count;
        let reached = async || self.answered.load(Ordering::Relaxed) >= until;
        eventually("requests are answered", reached).await;
    }
}

/// Sends requests of all tenants to a node until `load.stop` is set. Returns the number of
/// responses by status; requests without a response are counted under 0.
async fn run(url: String, load: Arc<Load>) -> BTreeMap<u16, usize> {
    let mut requests = JoinSet::new();
    for number in 0..TENANTS.len() * REQUESTS {
        let (url, load) = (url.clone(), load.clone());
        requests.spawn(async move {
            let client = reqwest::Client::new();
            let mut statuses = BTreeMap::new();
            while !load.stop.load(Ordering::Relaxed) {
                let request = client
                    .post(format!("{url}/api/v4/sql"))
                    .bearer_auth(&load.tokens[number % TENANTS.len()])
                    .json(&json!({"q": "select pg_sleep(0.02)"}));
                let status = match request.send().await {
                    Ok(response) => response.status().as_u16(),
                    Err(_) => 0,
                };
                *statuses.entry(status).or_insert(0) += 1;
                load.answered.fetch_add(1, Ordering::Relaxed);
            }
            statuses
        });
    }
    let mut all = BTreeMap::new();
    while let Some(statuses) = requests.join_next().await {
        for (status, count) in statuses.unwrap() {
            *all.entry(status).or_insert(0) += count;
        }
    }
    all
}

fn signal(node: &Node, signal: &str) {
    let sent = Command::new("kill").args([signal, &node.pid()]).status();
    assert!(sent.unwrap().success());
}

/// How many bytes of WAL the only stream of changes has not confirmed.
async fn unconfirmed(operator: &Operator) -> i64 {
    let lag = "SELECT pg_wal_lsn_diff(pg_current_wal_flush_lsn(), confirmed_flush_lsn)::text \
               FROM pg_replication_slots WHERE active";
    operator.value(lag).await.parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_nodes_share_the_connections_of_a_postgresql_with_its_defaults() {
    let operator = tenants().await;
    assert_eq!(operator.value("SHOW max_connections").await, "100");
    let first = Node::start(&operator).await;
    let mut load = Load::default();
    for tenant in TENANTS {
        load.tokens.push(token(&first, tenant).await);
    }
    let load = Arc::new(load);
    let begin = |node: &Node| tokio::spawn(run(node.url.clone(), load.clone()));
    let mut loads = vec![begin(&first)];
    eventually("one node takes all", async || budgets(&operator) == [TOTAL]).await;
    // The nodes start while the others use all of their connections.
    let second = Node::start(&operator).await;
    loads.push(begin(&second));
    eventually("two nodes share", async || {
        budgets(&operator) == [TOTAL / 2; 2]
    })
    .await;
    let third = Node::start(&operator).await;
    loads.push(begin(&third));
    eventually("three nodes share", async || {
        budgets(&operator) == [TOTAL / 3; 3]
    })
    .await;
    load.responses(1000).await;
    for node in status(&operator)["nodes"].as_array().unwrap() {
        assert!(
            node["connections"].as_u64() <= node["budget"].as_u64(),
            "{node}"
        );
    }
    // The other nodes get the connections of a node that died.
    signal(&first, "-KILL");
    eventually("two nodes are left", async || {
        budgets(&operator) == [TOTAL / 2; 2]
    })
    .await;
    load.responses(500).await;
    load.stop.store(true, Ordering::Relaxed);
    for (number, statuses) in loads.into_iter().enumerate() {
        let statuses = statuses.await.unwrap();
        let ok = statuses.get(&200).copied().unwrap_or_default();
        let others = statuses.values().sum::<usize>() - ok;
        assert!(ok > 0, "{statuses:?}");
        // The first node was killed.
        assert!(number == 0 || others == 0, "{statuses:?}");
    }
    let log = operator.cluster.data_dir().join("server.log");
    let log = std::fs::read_to_string(log).unwrap();
    assert!(!log.contains("too many clients") && !log.contains("remaining connection slots"));
    second.stop();
    third.stop();
    eventually("no node is left", async || budgets(&operator).is_empty()).await;
}

#[tokio::test]
async fn the_status_names_the_node_that_reads_the_changes_of_a_database() {
    let operator = operator().await;
    let text = operator.succeeds(&["cluster", "status"], "");
    assert_eq!(text, "no nodes\n\nno node reads changes\n");
    let node = Node::start(&operator).await;
    let inside = operator.root("shop").await;
    inside
        .batch_execute("ALTER TABLE orders OWNER TO shop")
        .await
        .unwrap();
    let mut socket = owner(&node).await;
    socket
        .subscribe("a", "subscription { OrdersMessageAdded { id } }")
        .await;
    // A user may give its session the name of a reader.
    inside
        .batch_execute("CREATE ROLE impostor LOGIN PASSWORD 'impostor'")
        .await
        .unwrap();
    let mut login: tokio_postgres::Config = operator.cluster.url("postgres").parse().unwrap();
    login.user("impostor").password("impostor");
    login.application_name("tidegate outbox reader 0badf00d");
    let (_impostor, connection) = login.connect(tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    let status = status(&operator);
    let (nodes, readers) = (&status["nodes"], &status["readers"]);
    assert_eq!(nodes[0]["version"], env!("CARGO_PKG_VERSION"));
    assert!(nodes[0]["seen_seconds_ago"].as_f64().unwrap() < 10.0);
    assert_eq!(readers.as_array().unwrap().len(), 1, "{readers}");
    assert_eq!(readers[0]["database"], "shop");
    assert_eq!(readers[0]["node"], nodes[0]["id"]);
    // A node that does not run falls behind by what is written.
    signal(&node, "-STOP");
    let least = unconfirmed(&operator).await;
    // The lag is counted up to the WAL that is on disk.
    let write = "SET synchronous_commit = on; \
                 INSERT INTO orders (id) SELECT generate_series(100001, 101000)";
    inside.batch_execute(write).await.unwrap();
    let lag = self::status(&operator)["readers"][0]["lag_bytes"].as_i64();
    let most = unconfirmed(&operator).await;
    signal(&node, "-CONT");
    let (lag, least) = (lag.unwrap(), least + 10_000);
    assert!((least..=most).contains(&lag), "{least} {lag} {most}");
    let text = operator.succeeds(&["cluster", "status"], "");
    let id = nodes[0]["id"].as_str().unwrap();
    assert_eq!(text.matches(id).count(), 2, "{text}");
}

#[tokio::test]
async fn the_status_says_that_the_bus_needs_the_master_key_and_shows_the_rest() {
    let operator = operator().await;
    let node = Node::start(&operator).await;
    let missing = operator.folder.path().join("missing.key");
    let expected = format!(
        "cannot read the master key from {}: No such file or directory (os error 2)",
        missing.display()
    );
    let shown = |arguments: &[&str]| {
        let output = operator
            .command(arguments)
            .env("TIDEGATE_MASTER_KEY_FILE", &missing)
            .env("TIDEGATE_BUS_URL", "nats://127.0.0.1:1")
            .output()
            .unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{error}");
        String::from_utf8(output.stdout).unwrap()
    };
    let status = shown(&["cluster", "status", "--json"]);
    let status: Value = serde_json::from_str(&status).unwrap();
    assert_eq!(status["bus"]["problem"], expected);
    assert_eq!(status["bus"]["copies"], Value::Null);
    assert_eq!(status["nodes"].as_array().unwrap().len(), 1, "{status}");
    let text = shown(&["cluster", "status"]);
    let id = status["nodes"][0]["id"].as_str().unwrap();
    assert!(text.contains(id), "{text}");
    assert!(text.contains(&expected), "{text}");
    node.stop();
}
