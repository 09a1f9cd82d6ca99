//! Tests that no state of one anonymous request reaches another (SECURITY.md).

use serde_json::{Value, json};

use crate::isolation::procedure;
use crate::service::{Service, demo, demo_folder, eventually};

impl crate::service::Service {
    pub(crate) async fn refusal_anonymous(&self, q: &str) -> (u16, Value) {
        let response = self.sql(None, &json!({"q": q})).await;
        (response.status().as_u16(), response.json().await.unwrap())
    }
}

#[tokio::test]
async fn an_anonymous_caller_leaves_no_setting_to_the_next() {
    // In this reproduced attack a role changes its own settings permanently. The attack ends the
    // sessions of all guests, so the test has a demo of its own.
    let folder = demo_folder();
    let demo = Service::start(folder.path().to_str().unwrap(), &[]);
    demo.set_anonymous_sql("on");
    let admin = demo.admin().await;
    let kick = "select pg_terminate_backend(pid) from pg_stat_activity \
                where usename = 'demo/guest'";
    for (setting, see, expected) in [
        (
            "search_path = pg_temp",
            "select count(*) > 0 as v from artists",
            json!(true),
        ),
        (
            "transform_null_equals = on",
            "select (null = null) as v",
            Value::Null,
        ),
        (
            "array_nulls = off",
            "select '{NULL}'::text[] as v",
            json!([null]),
        ),
        (
            "gin_fuzzy_search_limit = 1",
            "select current_setting('gin_fuzzy_search_limit') as v",
            json!("0"),
        ),
        (
            "default_transaction_read_only = on",
            "select current_setting('transaction_read_only') as v",
            json!("off"),
        ),
        (
            "lock_timeout = 1",
            "select current_setting('lock_timeout') as v",
            json!("0"),
        ),
    ] {
        let set = format!("alter role \"demo/guest\" set {setting}");
        admin.batch_execute(&set).await.unwrap();
        eventually("the guest's sessions are gone", || async {
            admin.execute(kick, &[]).await.unwrap() == 0
        })
        .await;
        let response: Value = demo
            .sql(None, &json!({"q": see}))
            .await
            .json()
            .await
            .unwrap();
        assert_eq!(response["data"][0]["v"], expected, "{setting}: {response}");
    }
}

#[tokio::test]
async fn a_setting_by_the_superuser_applies_to_anonymous_callers() {
    // The test has a demo of its own, because the sessions of its guests must start again.
    let folder = demo_folder();
    let demo = Service::start(folder.path().to_str().unwrap(), &[]);
    let sql = "alter role \"demo/guest\" set temp_file_limit = '2MB'";
    demo.admin().await.batch_execute(sql).await.unwrap();
    let q = "select current_setting('temp_file_limit') as v";
    let response: Value = demo.sql(None, &json!({"q": q})).await.json().await.unwrap();
    assert_eq!(response["data"], json!([{"v": "2MB"}]), "{response}");
}

/// A setting that another caller made is NULL for an anonymous caller, and not empty.
#[tokio::test]
async fn an_anonymous_caller_creates_no_setting_for_the_next() {
    let demo = demo();
    procedure("i_name").await;
    let seen = async || {
        let see = json!({"q": "select current_setting('strange.uid', true) as v"});
        let found: Value = demo.sql(None, &see).await.json().await.unwrap();
        found["data"].clone()
    };
    for leave in [
        "select set_config('strange.uid', '5', true)",
        "select \"set_config\"('strange.uid', '5', false)",
        "select query_to_xml('select set' || '_config(''strange.uid'', ''5'', true)', true, true, '')",
        "call i_name('set' || ' strange.uid = 5')",
    ] {
        let response = demo.sql(None, &json!({"q": leave})).await;
        assert_eq!(response.status(), 200, "{leave}");
        for _ in 0..20 {
            assert_eq!(seen().await, json!([{"v": null}]), "{leave}");
        }
    }
}

#[tokio::test]
async fn the_shared_role_cannot_end_sessions() {
    for function in ["pg_terminate_backend", "pg_cancel_backend"] {
        let q = format!(
            "select count({function}(pid)) as n from pg_stat_activity \
             where usename = current_user and pid <> pg_backend_pid()"
        );
        for (user, status) in [(Some("alice"), 403), (None, 401)] {
            let refused = demo().sql(user, &json!({"q": q})).await;
            assert_eq!(refused.status(), status, "{q}");
            let error: Value = refused.json().await.unwrap();
            assert_eq!(error["sqlstate"], "42501", "{error}");
        }
    }
    // The owner may still call the function, and may grant that to others.
    let q = "select pg_cancel_backend(0) as cancelled";
    let response = demo().rows("demo", q, json!({})).await;
    assert_eq!(response["data"], json!([{"cancelled": false}]));
}
