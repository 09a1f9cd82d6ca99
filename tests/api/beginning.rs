//! With what settings a role's requests begin when these change (wire.md 4: every request starts
//! from the role's initial session state).

use std::collections::BTreeSet;

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::service::{demo, eventually};
use crate::users::owner;

const USER: &str = "resettled";

/// What of `work_mem` requests that come at once and one by one begin with.
async fn begins_with() -> BTreeSet<String> {
    let q = "select current_setting('work_mem') as mem, pg_sleep(0.02) is null as slept";
    let ask = || demo().rows(USER, q, json!({}));
    let mut answers = join_all((0..8).map(|_| ask())).await;
    for _ in 0..3 {
        answers.push(ask().await);
    }
    let mem = |answer: &Value| answer["data"][0]["mem"].as_str().unwrap().to_owned();
    answers.iter().map(mem).collect()
}

fn only(mem: &str) -> BTreeSet<String> {
    BTreeSet::from([mem.to_owned()])
}

#[tokio::test]
async fn settings_of_a_role_count_for_all_of_its_requests_alike() {
    let demo = demo();
    let body = json!({"name": USER, "password": format!("{USER}1234")});
    assert_eq!(owner("POST", "/api/v4/users", body).await.status, 201);
    let before = begins_with().await;
    assert_eq!(before.len(), 1, "{before:?}");

    // Through this node they count for the next request.
    let set = |mem: &str| format!("alter role current_user set work_mem = '{mem}'");
    demo.rows(USER, &set("9MB"), json!({})).await;
    assert_eq!(begins_with().await, only("9MB"));
    let block = format!(
        "do $$ begin execute '{}'; end $$",
        set("10MB").replace('\'', "''")
    );
    demo.rows(USER, &block, json!({})).await;
    assert_eq!(begins_with().await, only("10MB"));
    let array = json!([{"q": set("11MB")}, {"q": "select 1 as n"}]);
    assert_eq!(demo.sql(Some(USER), &array).await.status(), 200);
    assert_eq!(begins_with().await, only("11MB"));

    // By another way they count soon, however busy the connections are kept.
    let admin = demo.admin().await;
    let set = format!("alter role \"demo/{USER}\" in database demo set work_mem = '12MB'");
    admin.batch_execute(&set).await.unwrap();
    eventually("it is set", || async {
        begins_with().await == only("12MB")
    })
    .await;
    let reset = format!(
        "alter role \"demo/{USER}\" in database demo reset work_mem; \
         alter role \"demo/{USER}\" reset work_mem"
    );
    admin.batch_execute(&reset).await.unwrap();
    eventually("it is reset", || async { begins_with().await == before }).await;
}
