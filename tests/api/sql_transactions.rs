//! Tests `POST /api/v4/sql`: parameter sets and transactions (API.md, "SQL").

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
    let response = demo
        .rows(
            "demo",
            "insert into t_sets values (:id, :name) returning id",
            json!(sets),
        )
        .await;
    assert_eq!(response["affected_rows"], 500);
    let ids: Vec<_> = response["data"]
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
async fn sets_of_a_procedure_that_commits_are_one_transaction_all_the_same() {
    let demo = demo();
    for q in [
        "create table t_commits (n int)",
        "create procedure commits(n int, how text) language plpgsql as $$ begin \
         insert into t_commits values (n); \
         if how = 'commit' then commit; elsif how = 'raise' then raise 'no'; end if; end $$",
    ] {
        demo.rows("demo", q, json!({})).await;
    }
    let call = |hows: [&str; 3]| {
        let sets = (1..).zip(hows);
        let sets: Vec<_> = sets.map(|(n, how)| json!({"n": n, "how": how})).collect();
        json!({"q": "call commits(:n::int, :how::text)", "params": sets})
    };
    let (_, error) = demo
        .refusal("demo", &call(["stay", "commit", "raise"]))
        .await;
    assert_eq!(error["sqlstate"], "2D000", "{error}");
    let (status, error) = demo.refusal("demo", &call(["stay", "stay", "raise"])).await;
    assert_eq!((status, error["sqlstate"].as_str()), (400, Some("P0001")));
    let concurrently = "create index concurrently t_commits_n on t_commits (n)";
    let body = json!({"q": concurrently, "params": [{}, {}]});
    let (_, error) = demo.refusal("demo", &body).await;
    assert_eq!(error["sqlstate"], "25001", "{error}");
    let left = "select (select count(*) from t_commits) + (select count(*) from pg_indexes \
                where indexname = 't_commits_n') as n";
    assert_eq!(
        demo.rows("demo", left, json!({})).await["data"],
        json!([{"n": 0}])
    );

    let response = demo.sql(Some("demo"), &call(["stay"; 3])).await;
    assert_eq!(response.status(), 200);
    let lock = json!({"q": "lock table t_commits", "params": [{}, {}]});
    assert_eq!(demo.sql(Some("demo"), &lock).await.status(), 200);
    assert_eq!(
        demo.rows("demo", left, json!({})).await["data"],
        json!([{"n": 3}])
    );
    // A statement that is the only one of its request may commit.
    let alone = json!({"q": "call commits(4, 'commit')"});
    assert_eq!(demo.sql(Some("demo"), &alone).await.status(), 200);
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
    let response = demo.sql(Some("demo"), &body).await;
    assert_eq!(response.status(), 200);
    let response: Value = response.json().await.unwrap();
    assert_eq!(response[0]["affected_rows"], 1);
    assert_eq!(response[1]["data"], json!([{"n": 1}]));
    assert_eq!(response[1]["id"], 2);

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
async fn deferred_constraints_speak_before_the_response() {
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

#[tokio::test]
async fn an_array_whose_later_table_was_redefined_behind_the_node_runs_all_the_same() {
    let (demo, admin) = (demo(), demo().admin().await);
    let create = "create table t_later (a int); alter table t_later owner to demo; \
                  insert into t_later values (1); \
                  create table t_once (n int); alter table t_once owner to demo";
    admin.batch_execute(create).await.unwrap();
    let body = json!([
        {"q": "insert into t_once values (1)"},
        {"q": "select * from t_later", "id": "later"},
    ]);
    let ask = || async {
        let response = demo.sql(Some("demo"), &body).await;
        assert_eq!(response.status(), 200);
        response.json::<Value>().await.unwrap()
    };
    for (done, column) in ["b", "c", "d"].into_iter().enumerate() {
        ask().await;
        let alter = format!("alter table t_later add {column} int");
        admin.batch_execute(&alter).await.unwrap();
        let response = ask().await;
        assert_eq!(response.as_array().unwrap().len(), 2, "{response}");
        assert_eq!(response[0]["affected_rows"], 1);
        assert_eq!(response[1]["id"], "later");
        assert_eq!(response[1]["data"][0][column], Value::Null);
        assert!(response[1]["schema"].get(column).is_some(), "{response}");
        let q = "select count(*) as n from t_once";
        let written = demo.rows("demo", q, json!({})).await;
        assert_eq!(written["data"][0]["n"], 2 * (done + 1), "each write once");
    }
}

#[tokio::test]
async fn an_array_that_postgresql_asks_to_run_again_is_run_twice_at_most() {
    let demo = demo();
    demo.rows("demo", "create sequence t_attempts", json!({}))
        .await;
    let refuse = "do $$ begin perform nextval('t_attempts'); \
                  raise exception 'again' using errcode = '40001'; end $$";
    let body = json!([{"q": "select 1 as n"}, {"q": refuse}]);
    let (status, error) = demo.refusal("demo", &body).await;
    assert_eq!((status, error["sqlstate"].as_str()), (409, Some("40001")));
    assert_eq!(error["retryable"], true);
    assert!(
        error["message"].as_str().unwrap().starts_with("[1]"),
        "{error}"
    );
    let attempts = demo
        .rows(
            "demo",
            "select last_value::int as n from t_attempts",
            json!({}),
        )
        .await;
    assert_eq!(attempts["data"], json!([{"n": 2}]));
}
