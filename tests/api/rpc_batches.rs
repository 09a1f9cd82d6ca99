//! Tests batches: one transaction, responses in order, limits (API.md, "Calls"; JSON-RPC 2.0,
//! section 6).

use serde_json::{Value, json};

use crate::methods::defined;
use crate::rpc::{call, post, response};
use crate::service::demo;

/// Creates a table, and a method that writes to it.
async fn writer(name: &str) {
    let create = format!("create table {name} (n int primary key check (n >= 0))");
    demo().rows("demo", &create, json!({})).await;
    let q = format!("insert into {name} values (:n)");
    defined(json!({"method": name, "q": q})).await;
}

async fn stored(name: &str) -> Value {
    let q = format!("select n from {name} order by n");
    demo().rows("demo", &q, json!({})).await["data"].clone()
}

#[expect(clippy::needless_pass_by_value, reason = "a literal stands here")]
fn notification(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

fn rolled_back(id: u32) -> Value {
    json!({
        "jsonrpc": "2.0", "id": id,
        "error": {"code": -32603, "message": "Internal error", "data": {"rolledBack": true}},
    })
}

#[tokio::test]
async fn a_batch_responds_in_order_without_its_notifications() {
    writer("b_order").await;
    let replies = response(json!([
        call("b_order", json!({"n": 1}), 9),
        notification("b_order", json!({"n": 2})),
        call("b_order", json!([{"n": 3}, {"n": 4}]), 5),
    ]))
    .await;
    let ids: Vec<_> = replies
        .as_array()
        .unwrap()
        .iter()
        .map(|a| a["id"].clone())
        .collect();
    assert_eq!(ids, [9, 5]);
    assert_eq!(replies[1]["result"]["affected_rows"], 2);
    assert_eq!(
        stored("b_order").await,
        json!([{"n": 1}, {"n": 2}, {"n": 3}, {"n": 4}])
    );
    let one = response(json!([call("b_order", json!({"n": 5}), 1)])).await;
    assert_eq!(
        one.as_array().unwrap().len(),
        1,
        "an array of one stays an array"
    );
}

#[tokio::test]
async fn a_batch_is_one_transaction_at_one_moment() {
    defined(
        json!({"method": "b_moment", "q": "select now()::text as now, txid_current()::text as tx"}),
    )
    .await;
    let replies = response(json!([
        call("b_moment", json!({}), 1),
        call("b_moment", json!({}), 2)
    ]))
    .await;
    assert_eq!(replies[0]["result"], replies[1]["result"]);
}

#[tokio::test]
async fn one_failure_undoes_the_whole_batch() {
    writer("b_undone").await;
    let replies = response(json!([
        call("b_undone", json!({"n": 1}), 1),
        call("b_undone", json!({"n": -1}), 2),
        notification("b_undone", json!({"n": 2})),
        call("b_undone", json!({"n": 3}), 3),
    ]))
    .await;
    assert_eq!(replies[0], rolled_back(1));
    assert_eq!(replies[1]["error"]["code"], -32603);
    assert_eq!(replies[1]["error"]["data"]["sqlstate"], "23514");
    assert_eq!(replies[1]["id"], 2);
    assert_eq!(replies[2], rolled_back(3));
    assert_eq!(replies.as_array().unwrap().len(), 3);
    assert_eq!(stored("b_undone").await, json!([]));
    for (params, code) in [
        (json!({"m": 1}), -32602),
        (json!({"n": "x"}), -32602),
        (json!({}), -32602),
        (json!([1]), -32602),
    ] {
        let replies = response(json!([
            call("b_undone", json!({"n": 1}), 1),
            call("b_undone", params, 2)
        ]))
        .await;
        assert_eq!(
            (&replies[0], &replies[1]["error"]["code"]),
            (&rolled_back(1), &json!(code))
        );
    }
    let unknown = response(json!([
        call("b_undone", json!({"n": 1}), 1),
        call("b_nowhere", json!({}), 2)
    ]))
    .await;
    assert_eq!(
        (&unknown[0], &unknown[1]["error"]["code"]),
        (&rolled_back(1), &json!(-32601))
    );
    assert_eq!(stored("b_undone").await, json!([]));
}

#[tokio::test]
async fn a_failed_notification_is_reported_as_the_cause() {
    writer("b_cause").await;
    let replies = response(json!([
        call("b_cause", json!({"n": 1}), 1),
        notification("b_cause", json!({"n": -1})),
    ]))
    .await;
    assert_eq!(replies.as_array().unwrap().len(), 1);
    let data = &replies[0]["error"]["data"];
    assert_eq!(data["rolledBack"], true);
    assert_eq!(data["cause"]["code"], -32603);
    assert_eq!(data["cause"]["data"]["sqlstate"], "23514");
    let silent = json!([
        notification("b_cause", json!({"n": 2})),
        notification("b_cause", json!({"n": -1}))
    ]);
    let silent = post(Some("demo"), silent.to_string()).await;
    assert_eq!((silent.status, &*silent.text), (204, ""));
    assert_eq!(stored("b_cause").await, json!([]));
}

#[tokio::test]
async fn a_deferred_constraint_speaks_at_the_end() {
    demo()
        .rows(
            "demo",
            "create table b_deferred (n int references albums initially deferred)",
            json!({}),
        )
        .await;
    defined(json!({"method": "b_defer", "q": "insert into b_deferred values (:n)"})).await;
    let replies = response(json!([
        call("b_defer", json!({"n": -5}), 1),
        call("b_defer", json!({"n": 1}), 2)
    ]))
    .await;
    for reply in replies.as_array().unwrap() {
        assert_eq!(reply["error"]["data"]["rolledBack"], true);
        assert_eq!(reply["error"]["data"]["cause"]["data"]["sqlstate"], "23503");
    }
    assert_eq!(stored("b_deferred").await, json!([]));
}

#[tokio::test]
async fn elements_that_are_no_requests_keep_everything_from_running() {
    writer("b_invalid").await;
    let invalid = |reply: &Value| {
        assert_eq!(reply["error"]["code"], -32600, "{reply}");
        assert_eq!(reply["error"]["message"], "Invalid Request");
        assert_eq!(reply["id"], Value::Null);
        assert!(reply.as_object().unwrap().contains_key("id"));
    };
    let replies = response(json!([
        1,
        call("b_invalid", json!({"n": 1}), 7),
        {"jsonrpc": "2.0"},
        notification("b_invalid", json!({"n": 2})),
        [],
    ]))
    .await;
    assert_eq!(replies.as_array().unwrap().len(), 4);
    for index in [0, 2, 3] {
        invalid(&replies[index]);
    }
    assert_eq!(replies[1], rolled_back(7));
    assert_eq!(stored("b_invalid").await, json!([]));
    // These are the examples of the JSON-RPC specification, section 7.
    let ones = response(json!([1, 2, 3])).await;
    ones.as_array().unwrap().iter().for_each(invalid);
    assert_eq!(ones.as_array().unwrap().len(), 3);
    invalid(&response(json!([])).await);
    assert!(response(json!([1])).await.is_array());
}

#[tokio::test]
async fn a_batch_beyond_the_limits_is_refused_with_the_limit() {
    writer("b_limit").await;
    let calls = |count: u32| {
        (0..count)
            .map(|n| call("b_limit", json!({"n": n}), n))
            .collect::<Vec<_>>()
    };
    for count in [1_001, 10_000] {
        let refused = response(json!(calls(count))).await;
        assert_eq!(refused["error"]["code"], -32600);
        assert_eq!(refused["error"]["data"]["limit"], 1_000);
        assert_eq!(refused["id"], Value::Null);
    }
    let sets = vec![json!({"n": 1}); 100_001];
    let refused = response(call("b_limit", json!(sets), 1)).await;
    assert_eq!(refused["error"]["code"], -32600);
    assert_eq!(refused["error"]["data"]["limit"], 100_000);
    assert_eq!(stored("b_limit").await, json!([]));
    let full = response(json!(calls(1_000))).await;
    assert_eq!(full.as_array().unwrap().len(), 1_000);
    assert!(
        full.as_array()
            .unwrap()
            .iter()
            .all(|reply| reply["result"]["affected_rows"] == 1)
    );
}

#[tokio::test]
async fn a_statement_that_takes_too_long_ends_its_batch() {
    writer("b_slow").await;
    defined(json!({"method": "b_sleep", "q": "select pg_sleep(30)"})).await;
    let batch = json!([
        call("b_slow", json!({"n": 1}), 1),
        call("b_sleep", json!({}), 2),
        call("b_slow", json!({"n": 2}), 3)
    ]);
    let token = demo().cached_token("demo").await;
    let request = demo()
        .request(reqwest::Method::POST, "/api/v4/call")
        .bearer_auth(token);
    let request = request.header("prefer", "wait=3").json(&batch);
    let response = crate::service::TextResponse::of(request).await;
    assert_eq!(
        (response.status, response.header("preference-applied")),
        (200, "wait=3")
    );
    let responses = response.json();
    assert_eq!(
        (&responses[0], &responses[2]),
        (&rolled_back(1), &rolled_back(3))
    );
    assert_eq!(responses[1]["error"]["code"], -32603);
    assert_eq!(responses[1]["error"]["data"]["retryable"], true);
    assert_eq!(stored("b_slow").await, json!([]));
}
