//! `POST /api/v4/sql`: parameter sets and transactions (wire.md 4).

use serde_json::{Value, json};

use crate::service::demo;

#[tokio::test]
async fn parameter_sets_run_in_one_transaction() {
    let demo = demo();
    demo.rows("demo", "drop table if exists t_sets", json!({}))
        .await;
    demo.rows(
        "demo",
        "create table t_sets (id int primary key, name text)",
        json!({}),
    )
    .await;
    let sets: Vec<_> = (0..500)
        .map(|n| json!({"id": n, "name": format!("n{n}")}))
        .collect();
    let answer = demo
        .rows(
            "demo",
            "insert into t_sets values (:id, :name) returning id",
            json!(sets),
        )
        .await;
    assert_eq!(answer["affected_rows"], 500);
    let ids: Vec<_> = answer["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["id"].clone())
        .collect();
    assert_eq!(ids, (0..500).map(Value::from).collect::<Vec<_>>());

    let body = json!({
        "q": "insert into t_sets values (:id, :name)",
        "params": [{"id": 1000, "name": "a"}, {"id": 3, "name": "b"}],
    });
    let (status, error) = demo.refusal("demo", &body).await;
    assert_eq!((status, error["sqlstate"].as_str()), (409, Some("23505")));
    assert_eq!(error["constraint"], "t_sets_pkey");
    assert_eq!(error["table"], "t_sets");
    let left = demo
        .rows("demo", "select id from t_sets where id = 1000", json!({}))
        .await;
    assert_eq!(left["data"], json!([]));

    let read = demo
        .rows(
            "demo",
            "select name from t_sets where id = :id",
            json!([{"id": 2}, {"id": 1}]),
        )
        .await;
    assert_eq!(read["data"], json!([{"name": "n2"}, {"name": "n1"}]));
}

#[tokio::test]
async fn a_wrong_value_in_a_set_names_the_set() {
    let body = json!({
        "q": "select :n::int as n", "type_hints": {"n": "int"},
        "params": [{"n": 1}, {"n": {"x": 1}}],
    });
    let (status, error) = demo().refusal("demo", &body).await;
    assert_eq!(
        (status, error["errorCode"].as_str()),
        (400, Some("INPUT_VALIDATION_ERROR"))
    );
    assert!(
        error["message"].as_str().unwrap().contains("params[1].n"),
        "{error}"
    );
    let body = json!({"q": "select :n::int as n", "params": [{"n": 1}, {"m": 1}]});
    let (_, error) = demo().refusal("demo", &body).await;
    assert!(
        error["message"].as_str().unwrap().contains("params[1]"),
        "{error}"
    );
}

#[tokio::test]
async fn an_array_of_requests_is_one_transaction() {
    let demo = demo();
    demo.rows("demo", "drop table if exists t_batch", json!({}))
        .await;
    demo.rows(
        "demo",
        "create table t_batch (id int primary key)",
        json!({}),
    )
    .await;
    let body = json!([
        {"q": "insert into t_batch values (1)"},
        {"q": "select count(*) as n from t_batch", "id": 2},
    ]);
    let answer = demo.sql(Some("demo"), &body).await;
    assert_eq!(answer.status(), 200);
    let answer: Value = answer.json().await.unwrap();
    assert_eq!(answer[0]["affected_rows"], 1);
    assert_eq!(answer[1]["data"], json!([{"n": 1}]));
    assert_eq!(answer[1]["id"], 2);

    let body = json!([
        {"q": "insert into t_batch values (2)"},
        {"q": "insert into t_batch values (1)"},
    ]);
    let (status, error) = demo.refusal("demo", &body).await;
    assert_eq!((status, error["sqlstate"].as_str()), (409, Some("23505")));
    let left = demo.rows("demo", "select id from t_batch", json!({})).await;
    assert_eq!(left["data"], json!([{"id": 1}]));
}

#[tokio::test]
async fn deferred_constraints_speak_before_the_answer() {
    let demo = demo();
    demo.rows("demo", "drop table if exists t_deferred", json!({}))
        .await;
    demo.rows(
        "demo",
        "create table t_deferred (id int primary key, other int references t_deferred \
         deferrable initially deferred)",
        json!({}),
    )
    .await;
    let (status, error) = demo
        .refusal(
            "demo",
            &json!({"q": "insert into t_deferred values (1, 9)"}),
        )
        .await;
    assert_eq!((status, error["sqlstate"].as_str()), (409, Some("23503")));
}
