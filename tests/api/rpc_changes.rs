//! Tests methods and tables that change while methods are called (API.md, "Methods").

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use crate::methods::{define, defined, delete, patch};
use crate::rpc::{call, post, response};
use crate::service::demo;

#[tokio::test]
async fn a_table_that_changes_under_a_prepared_method_is_no_error() {
    let ddl = |q: &'static str| demo().rows("demo", q, json!({}));
    ddl("create table c_shape (a int)").await;
    ddl("insert into c_shape values (1)").await;
    defined(json!({"method": "c_shape", "q": "select * from c_shape"})).await;
    let twice = json!([call("c_shape", json!({}), 1), call("c_shape", json!({}), 2)]);
    for _ in 0..3 {
        assert_eq!(
            response(call("c_shape", json!({}), 1)).await["result"]["data"],
            json!([{"a": 1}])
        );
    }
    // The table is changed by a request to this node, and then by another client.
    ddl("alter table c_shape add b text default 'x'").await;
    let wider = json!([{"a": 1, "b": "x"}]);
    assert_eq!(
        response(call("c_shape", json!({}), 1)).await["result"]["data"],
        wider
    );
    assert_eq!(response(twice.clone()).await[1]["result"]["data"], wider);
    let admin = demo().admin().await;
    admin
        .batch_execute("alter table c_shape alter a type text, drop b")
        .await
        .unwrap();
    let narrow = json!([{"a": "1"}]);
    assert_eq!(
        response(call("c_shape", json!({}), 1)).await["result"]["data"],
        narrow
    );
    admin
        .batch_execute("alter table c_shape add c int")
        .await
        .unwrap();
    let last = json!([{"a": "1", "c": null}]);
    let replies = response(twice).await;
    assert_eq!(
        (&replies[0]["result"]["data"], &replies[1]["result"]["data"]),
        (&last, &last)
    );
}

#[tokio::test]
async fn a_batch_whose_later_method_was_redefined_behind_the_node_runs_all_the_same() {
    let admin = demo().admin().await;
    let create = "create table c_behind (a int); alter table c_behind owner to demo; \
                  insert into c_behind values (1)";
    admin.batch_execute(create).await.unwrap();
    defined(json!([
        {"method": "c_first", "q": "select 1 as n"},
        {"method": "c_behind", "q": "select * from c_behind"},
    ]))
    .await;
    let batch = json!([
        call("c_first", json!({}), 1),
        call("c_behind", json!({}), 2)
    ]);
    for column in ["b", "c", "d"] {
        assert!(response(batch.clone()).await[1]["result"].is_object());
        let alter = format!("alter table c_behind add {column} int");
        admin.batch_execute(&alter).await.unwrap();
        let replies = response(batch.clone()).await;
        assert_eq!(replies[0]["result"]["data"], json!([{"n": 1}]), "{replies}");
        assert!(
            replies[1]["result"]["schema"].get(column).is_some(),
            "{replies}"
        );
    }
}

#[tokio::test]
async fn a_batch_runs_when_several_of_its_methods_have_been_redefined() {
    let admin = demo().admin().await;
    let create = "create table c_all (a int); alter table c_all owner to demo; \
                  insert into c_all values (1)";
    admin.batch_execute(create).await.unwrap();
    defined(json!([
        {"method": "c_all_read", "q": "select * from c_all"},
        {"method": "c_all_write", "q": "insert into c_all (a) values (:a) returning *"},
        {"method": "c_all_change", "q": "update c_all set a = :a returning *"},
    ]))
    .await;
    let batch = json!([
        call("c_all_read", json!({}), 1),
        call("c_all_write", json!({"a": 2}), 2),
        call("c_all_change", json!({"a": 3}), 3),
    ]);
    for column in ["b", "c", "d"] {
        // The two batches run on more than one connection.
        let (one, other) = tokio::join!(response(batch.clone()), response(batch.clone()));
        assert!(one[2]["result"].is_object() && other[2]["result"].is_object());
        let alter = format!("alter table c_all add {column} int");
        admin.batch_execute(&alter).await.unwrap();
        let replies = response(batch.clone()).await;
        for reply in replies.as_array().unwrap() {
            let schema = &reply["result"]["schema"];
            assert!(schema.get(column).is_some(), "{replies}");
        }
    }
}

#[tokio::test]
async fn a_change_is_seen_by_the_next_call() {
    defined(json!({"method": "c_change", "q": "select 1 as n"})).await;
    for n in 2..20 {
        let changed = patch("demo", "c_change", json!({"q": format!("select {n} as n")})).await;
        assert_eq!(changed.status, 303);
        let rows = response(call("c_change", json!({}), 1)).await;
        assert_eq!(rows["result"]["data"], json!([{"n": n}]));
    }
    assert_eq!(delete("demo", "c_change").await.status, 204);
    assert_eq!(
        response(call("c_change", json!({}), 1)).await["error"]["code"],
        -32601
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_method_that_is_dropped_and_made_again_under_load_is_there_or_not_found() {
    let q = json!({"method": "c_flicker", "q": "select 1 as n"});
    defined(q.clone()).await;
    let stop = AtomicBool::new(false);
    let caller = async {
        let (mut found, mut missing) = (0, 0);
        while !stop.load(Ordering::Relaxed) {
            let batch = json!([
                call("c_flicker", json!({}), 1),
                call("c_flicker", json!({}), 2)
            ]);
            for message in [call("c_flicker", json!({}), 1), batch] {
                let response = post(Some("demo"), message.to_string()).await.json();
                let is_missing = |one: &Value| one["error"]["code"] == -32601;
                let is_found = |one: &Value| one["error"].is_null();
                let responses = response
                    .as_array()
                    .cloned()
                    .unwrap_or_else(|| vec![response.clone()]);
                if responses.iter().all(is_found) {
                    found += 1;
                } else {
                    // The method may be dropped between the lookups of the two calls; the call that
                    // was found is rolled back then.
                    assert!(responses.iter().any(is_missing), "{response}");
                    missing += 1;
                }
            }
        }
        (found, missing)
    };
    let changer = async {
        for _ in 0..30 {
            assert_eq!(delete("demo", "c_flicker").await.status, 204);
            assert_eq!(define("demo", q.clone()).await.status, 201);
        }
        stop.store(true, Ordering::Relaxed);
    };
    let ((found, missing), ()) = tokio::join!(caller, changer);
    assert!(found > 0 && missing > 0, "{found} found, {missing} missing");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_clients_that_patch_at_once_lose_nothing_of_each_other() {
    defined(json!({"method": "c_both", "q": "select now()::date as d"})).await;
    for round in 0..10 {
        let hint = format!("type{round}");
        let format = if round % 2 == 0 { "Y" } else { "d" };
        let (one, other) = tokio::join!(
            patch("demo", "c_both", json!({"type_hints": {"d": hint}})),
            patch("demo", "c_both", json!({"type_formats": {"d": format}})),
        );
        assert_eq!((one.status, other.status), (303, 303), "{one:?} {other:?}");
        let path = "/api/v4/methods/c_both";
        let shown = demo()
            .ask(reqwest::Method::GET, path, Some("demo"), None)
            .await
            .json();
        assert_eq!(shown["type_hints"]["d"], hint);
        assert_eq!(shown["type_formats"]["d"], format);
    }
    // Two concurrent requests rename methods to the same name, and one succeeds.
    defined(json!([{"method": "c_left", "q": "select 1"}, {"method": "c_right", "q": "select 2"}]))
        .await;
    let (left, right) = tokio::join!(
        patch("demo", "c_left", json!({"method": "c_middle"})),
        patch("demo", "c_right", json!({"method": "c_middle"})),
    );
    let mut statuses = [left.status, right.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [303, 409]);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_clients_that_patch_one_method_at_once_all_succeed() {
    const CLIENTS: usize = 32;
    const ROUNDS: usize = 4;
    defined(json!({"method": "c_crowd", "q": "select 1 as n"})).await;
    let clients = (0..CLIENTS).map(|client| {
        tokio::spawn(async move {
            for round in 0..ROUNDS {
                let q = format!("select {client} as n, {round} as round");
                let reply = patch("demo", "c_crowd", json!({ "q": q })).await;
                assert_eq!(reply.status, 303, "{reply:?}");
            }
        })
    });
    for client in clients.collect::<Vec<_>>() {
        client.await.unwrap();
    }
    let rows = response(call("c_crowd", json!({}), 1)).await;
    assert_eq!(rows["result"]["data"][0]["round"], ROUNDS - 1, "{rows}");
}
