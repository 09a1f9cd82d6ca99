//! Tests the promotion of a standby while clients write and are subscribed (OPERATIONS.md,
//! "Failover").

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tidegate_embedded::{Cluster, Shutdown, testing};
use tidegate_testkit::{caught_up, connect};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;

use crate::node::{Node, operator};
use crate::operator::Operator;
use crate::socket_client::{Socket, owner};

/// The id of the last row.
const LAST: i64 = -1;

/// An operator with a primary and a standby that confirms each commit.
async fn replicated() -> (Operator, Cluster) {
    let mut operator = operator().await;
    let inside = operator.root("shop").await;
    let table = "CREATE TABLE docs (id int8, text text); ALTER TABLE docs OWNER TO shop";
    inside.batch_execute(table).await.unwrap();
    let standby = operator.cluster.start_standby(testing::settings()).await;
    let standby = standby.unwrap();
    for setting in ["synchronous_commit = on", "synchronous_standby_names = '*'"] {
        let set = format!("ALTER SYSTEM SET {setting}");
        inside.batch_execute(&set).await.unwrap();
    }
    inside
        .batch_execute("SELECT pg_reload_conf()")
        .await
        .unwrap();
    caught_up(&operator.cluster, &standby).await;
    let (first, second) = (standby.port(), operator.cluster.port());
    let password = operator.cluster.admin_password();
    operator.admin_url =
        format!("postgresql://postgres:{password}@127.0.0.1:{first},127.0.0.1:{second}/postgres");
    (operator, standby)
}

/// The response to one write.
struct Written {
    id: i64,
    status: u16,
    began: Instant,
}

/// Writes rows with growing ids, one after the other, until it is stopped.
struct Writer {
    written: UnboundedReceiver<Written>,
    stopped: Arc<AtomicBool>,
    task: JoinHandle<()>,
}

impl Writer {
    fn start(node: &Node, token: &str) -> Self {
        let (report, written) = unbounded_channel();
        let stopped = Arc::new(AtomicBool::new(false));
        let request = node.client.post(format!("{}/api/v4/sql", node.url));
        let request = request.bearer_auth(token);
        let task = tokio::spawn(write(request, report, stopped.clone()));
        Self {
            written,
            stopped,
            task,
        }
    }

    /// Waits for a response that fits. Passes all responses up to it to `seen`.
    async fn until(&mut self, seen: &mut Vec<Written>, fits: impl Fn(&Written) -> bool) {
        loop {
            let next = tidegate_testkit::soon(self.written.recv()).await.unwrap();
            let found = fits(&next);
            seen.push(next);
            if found {
                return;
            }
        }
    }

    /// Waits for `count` confirmed writes.
    async fn confirmed(&mut self, seen: &mut Vec<Written>, count: usize) {
        for _ in 0..count {
            self.until(seen, |write| write.status == 200).await;
        }
    }

    async fn stop(mut self, seen: &mut Vec<Written>) {
        self.stopped.store(true, Ordering::Relaxed);
        self.task.await.unwrap();
        while let Some(write) = self.written.recv().await {
            seen.push(write);
        }
    }
}

async fn write(
    request: reqwest::RequestBuilder,
    report: UnboundedSender<Written>,
    stopped: Arc<AtomicBool>,
) {
    for id in 1.. {
        if stopped.load(Ordering::Relaxed) {
            return;
        }
        let insert = json!({"q": "INSERT INTO docs (id) VALUES (:id)", "params": {"id": id}});
        let began = Instant::now();
        let response = request.try_clone().unwrap().json(&insert).send().await;
        let response = response.unwrap();
        let status = response.status().as_u16();
        let may_be_retried = response.headers().contains_key("retry-after");
        let body: Value = response.json().await.unwrap();
        if status != 200 {
            assert_eq!((status, may_be_retried), (503, true), "{body}");
            assert_eq!(body["errorCode"], "DATABASE_UNAVAILABLE", "{body}");
        }
        report.send(Written { id, status, began }).unwrap();
    }
}

/// Collects events until that of [`LAST`]. Each list has the events between two gaps.
async fn collect(mut socket: Socket) -> (Vec<Vec<i64>>, Vec<String>) {
    let (mut parts, mut reasons) = (vec![Vec::new()], Vec::new());
    loop {
        let message = socket.receive().await;
        if message["type"] == "resync" {
            reasons.push(message["reason"].as_str().unwrap().to_owned());
            parts.push(Vec::new());
            continue;
        }
        let id = message["data"]["DocsMessageAdded"][0]["id"].as_str();
        let id = id.unwrap_or_else(|| panic!("{message} is no event"));
        let id: i64 = id.parse().unwrap();
        if id == LAST {
            return (parts, reasons);
        }
        parts.last_mut().unwrap().push(id);
    }
}

/// How often each id is in the table.
async fn rows(cluster: &Cluster) -> BTreeMap<i64, i64> {
    let client = connect(&cluster.url("shop")).await;
    let read = "SELECT id, count(*) FROM docs GROUP BY id";
    let rows = client.query(read, &[]).await.unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_promotion_loses_and_repeats_no_write_and_subscribers_know_of_the_gap() {
    let (operator, standby) = replicated().await;
    let node = Node::start(&operator).await;
    let mut socket = owner(&node).await;
    socket
        .subscribe("a", "subscription { DocsMessageAdded { id } }")
        .await;
    let events = tokio::spawn(collect(socket));
    let tokens = node.sign_in("shop", "shop", "owner-password").await;
    let token = tokens["access_token"].as_str().unwrap();
    let (mut writer, mut seen) = (Writer::start(&node, token), Vec::new());
    writer.confirmed(&mut seen, 20).await;
    let report = operator.run(&["doctor"], "");
    let report = crate::operator::text(&report.stdout);
    if operator.cluster.version().major < 17 {
        for part in [
            "patronictl",
            "type: logical",
            "database: 'shop'",
            "plugin: pgoutput",
        ] {
            assert!(report.contains(part), "{part} in {report}");
        }
    } else {
        assert!(report.contains("ignore_slots:"), "{report}");
    }

    operator.cluster.halt(Shutdown::Kill).await.unwrap();
    writer.until(&mut seen, |write| write.status == 503).await;
    standby.promote().await.unwrap();
    let promoted = Instant::now();
    writer
        .until(&mut seen, |write| {
            write.status == 200 && write.began > promoted
        })
        .await;
    let waited = promoted.elapsed();
    writer.confirmed(&mut seen, 20).await;
    writer.stop(&mut seen).await;
    assert!(waited < Duration::from_secs(2), "{waited:?}");

    let rows = rows(&standby).await;
    let confirmed: BTreeSet<i64> = seen
        .iter()
        .filter(|write| write.status == 200)
        .map(|write| write.id)
        .collect();
    let absent: Vec<_> = confirmed
        .iter()
        .filter(|id| !rows.contains_key(id))
        .collect();
    assert!(absent.is_empty(), "{absent:?}");
    assert!(rows.values().all(|count| *count == 1), "{rows:?}");

    // The stream is open again when the socket gets the row; until then it may miss it.
    let last = json!({"q": "INSERT INTO docs (id) VALUES (-1)"});
    crate::service::eventually("the subscriber has the last row", || async {
        node.post("/api/v4/sql", Some(token), last.clone()).await;
        events.is_finished()
    })
    .await;
    let (parts, reasons) = events.await.unwrap();
    // The standby has no copy of the slot.
    assert!(!reasons.is_empty(), "{parts:?}");
    for part in &parts {
        assert!(part.is_sorted_by(|one, next| one < next), "{part:?}");
        let (Some(first), Some(last)) = (part.first(), part.last()) else {
            continue;
        };
        let got: BTreeSet<i64> = part.iter().copied().collect();
        let missed: Vec<_> = confirmed
            .range(first..=last)
            .filter(|id| !got.contains(id))
            .collect();
        assert!(missed.is_empty(), "{missed:?} {reasons:?}");
    }
    node.stop();
}
