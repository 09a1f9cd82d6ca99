//! Tests the initial settings of requests after a role's settings were changed (API.md, "SQL":
//! every request starts from the role's initial session state).

use std::collections::BTreeSet;

use futures_util::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};

use crate::service::{Service, demo, demo_folder, eventually};
use crate::users::owner;

const USER: &str = "resettled";

/// The values of `work_mem` in concurrent and in single requests.
async fn work_mem_values() -> BTreeSet<String> {
    let q = "select current_setting('work_mem') as mem, pg_sleep(0.02) is null as slept";
    let ask = || demo().rows(USER, q, json!({}));
    let mut responses = join_all((0..8).map(|_| ask())).await;
    for _ in 0..3 {
        responses.push(ask().await);
    }
    let mem = |response: &Value| response["data"][0]["mem"].as_str().unwrap().to_owned();
    responses.iter().map(mem).collect()
}

fn only(mem: &str) -> BTreeSet<String> {
    BTreeSet::from([mem.to_owned()])
}

#[tokio::test]
async fn settings_of_a_role_count_for_all_of_its_requests_alike() {
    let demo = demo();
    let body = json!({"name": USER, "password": format!("{USER}1234")});
    assert_eq!(owner("POST", "/api/v4/users", body).await.status, 201);
    let before = work_mem_values().await;
    assert_eq!(before.len(), 1, "{before:?}");

    // Settings that are changed through this node apply to the next request.
    let set = |mem: &str| format!("alter role current_user set work_mem = '{mem}'");
    demo.rows(USER, &set("9MB"), json!({})).await;
    assert_eq!(work_mem_values().await, only("9MB"));
    let block = format!(
        "do $$ begin execute '{}'; end $$",
        set("10MB").replace('\'', "''")
    );
    demo.rows(USER, &block, json!({})).await;
    assert_eq!(work_mem_values().await, only("10MB"));
    let array = json!([{"q": set("11MB")}, {"q": "select 1 as n"}]);
    assert_eq!(demo.sql(Some(USER), &array).await.status(), 200);
    assert_eq!(work_mem_values().await, only("11MB"));

    // Settings that are changed by another client take effect soon, even if all connections are
    // always in use.
    let admin = demo.admin().await;
    let set = format!("alter role \"demo/{USER}\" in database demo set work_mem = '12MB'");
    admin.batch_execute(&set).await.unwrap();
    eventually("it is set", || async {
        work_mem_values().await == only("12MB")
    })
    .await;
    let reset = format!(
        "alter role \"demo/{USER}\" in database demo reset work_mem; \
         alter role \"demo/{USER}\" reset work_mem"
    );
    admin.batch_execute(&reset).await.unwrap();
    eventually("it is reset", || async {
        work_mem_values().await == before
    })
    .await;
}

/// Operators limit callers with `ALTER ROLE … SET statement_timeout`.
#[tokio::test]
async fn a_statement_timeout_of_a_role_or_database_counts() {
    let folder = demo_folder();
    let demo = Service::start(folder.path().to_str().unwrap(), &[]);
    let sql = "alter role \"demo/guest\" set statement_timeout = '200ms'; \
               alter role \"demo/alice\" set statement_timeout = '40s'; \
               alter database demo set statement_timeout = '300ms'";
    demo.admin().await.batch_execute(sql).await.unwrap();
    let sleep = json!({"q": "select pg_sleep(30)"});
    for user in [None, Some("demo")] {
        let refused = demo.sql(user, &sleep).await;
        assert_eq!(refused.status(), 504, "{user:?}");
        let error: Value = refused.json().await.unwrap();
        assert_eq!(error["errorCode"], "STATEMENT_TIMEOUT", "{error}");
        let hint = error["hint"].as_str().unwrap_or_default();
        assert!(hint.contains("statement_timeout"), "{error}");
    }
    // `Prefer` lowers the service's deadline, and the role's own limit is longer.
    let token = demo.cached_token("alice").await;
    let request = demo.request(Method::POST, "/api/v4/sql").json(&sleep);
    let request = request.bearer_auth(&token).header("prefer", "wait=1");
    let refused = request.send().await.unwrap();
    assert_eq!(refused.status(), 504);
    let error: Value = refused.json().await.unwrap();
    assert_eq!(
        error["message"],
        "the statement did not end before its deadline"
    );
    // A setting that a caller makes does not affect others.
    let lift = json!({"q": "select set_config('statement_timeout', '0', false)"});
    for _ in 0..3 {
        assert_eq!(demo.sql(None, &lift).await.status(), 200);
        assert_eq!(demo.sql(None, &sleep).await.status(), 504);
    }
    let query = json!({"query": "{ getArtists(limit: 1) { id } }"});
    let slow = "create function slow(artists) returns boolean language sql as \
                'select pg_sleep(30) is not null'; \
                alter table artists enable row level security; \
                create policy slow on artists using (slow(artists))";
    demo.admin().await.batch_execute(slow).await.unwrap();
    let path = "/api/graphql/schema/public";
    let response = demo
        .ask(Method::POST, path, None, Some(query.to_string()))
        .await;
    let response = response.json();
    assert_eq!(
        response["errors"][0]["extensions"]["code"], "TIMEOUT",
        "{response}"
    );
}
