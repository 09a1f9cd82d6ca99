//! Tests of the SQL that callers may run as the default user.

use http::Method;
use serde_json::{Value, json};
use tidegate_identity::AnonymousSql;

use crate::executor::ExecutorCall;
use crate::fixture::{Api, TestResponse, challenge, eventually, request};
use crate::ports::connected;

const SQL: &str = "/api/v4/sql";
const OF_DATABASE: &str = "/api/v4/sql/database/demo";

async fn tenant(setting: AnonymousSql) -> Api {
    // The tenant's settings need an app that manages accounts.
    let (api, _) = connected().await;
    let set = api.directory.set_anonymous_sql("demo", setting).await;
    set.unwrap();
    api
}

async fn ask(api: &Api, path: &str, token: Option<&str>, body: &Value) -> TestResponse {
    let mut request = request(Method::POST, path);
    if let Some(token) = token {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    api.call(request.body(body.to_string()).unwrap()).await
}

async fn guest_token(api: &Api) -> String {
    let body = json!({"database": "demo", "client_id": "app"});
    let guest = api.post("/api/v4/oauth/guest", &body).await.json();
    guest["access_token"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn by_default_nothing_runs_as_the_default_user() {
    let api = tenant(AnonymousSql::Off).await;
    let body = json!({"q": "select who"});
    for path in [SQL, OF_DATABASE] {
        let refused = ask(&api, path, None, &body).await;
        assert_eq!(refused.error(), (401, "MISSING_TOKEN".to_owned()), "{path}");
        assert_eq!(refused.header("www-authenticate"), challenge(""));
        let text = refused.text();
        for word in ["anonymous_sql", "PATCH /api/v4/tenant", "tenant set"] {
            assert!(text.contains(word), "{word}: {text}");
        }
    }
    // Guest tokens do not give more rights, because anyone can get one.
    let guest = guest_token(&api).await;
    let refused = ask(&api, SQL, Some(&guest), &body).await;
    assert_eq!(refused.error(), (403, "INSUFFICIENT_PRIVILEGES".to_owned()));
    assert_eq!(api.executor.calls(), []);
    let alice = api.token("alice").await;
    assert_eq!(ask(&api, SQL, Some(&alice), &body).await.status, 200);
    // On a path that always runs as the default user, the token of another user is ignored.
    let refused = ask(&api, OF_DATABASE, Some(&alice), &body).await;
    assert_eq!(refused.error(), (401, "MISSING_TOKEN".to_owned()));
}

#[tokio::test]
async fn read_lets_one_reading_statement_run_read_only_for_five_seconds() {
    let api = tenant(AnonymousSql::Read).await;
    let guest = guest_token(&api).await;
    for (path, token) in [(SQL, None), (OF_DATABASE, None), (SQL, Some(&*guest))] {
        for format in ["json", "csv"] {
            let before = api.executor.calls().len();
            let body = json!({"q": "select wait", "output_format": format});
            let response = ask(&api, path, token, &body).await;
            assert_eq!(response.status, 200, "{}", response.text());
            assert!(response.text().contains('4'), "{}", response.text());
            let calls = &api.executor.calls()[before..];
            assert_eq!(calls[0], ExecutorCall::BeginReadOnly, "{calls:?}");
            assert_eq!(calls[2], ExecutorCall::Commit, "{calls:?}");
        }
        let before = api.executor.calls();
        for body in [
            json!({"q": "insert into t values (1)"}),
            json!({"q": "with x as (delete from t returning 1) select * from x"}),
            json!({"q": "call p()"}),
            json!({"q": "do 'begin end'"}),
            json!({"q": "create table t (a int)"}),
            json!([{"q": "select 1"}, {"q": "select 2"}]),
        ] {
            let refused = ask(&api, path, token, &body).await;
            let error = refused.error();
            assert_eq!(error, (403, "STATEMENT_NOT_ALLOWED".to_owned()), "{body}");
        }
        assert_eq!(api.executor.calls(), before);
    }
    // The limits do not apply to a user with a token of its own.
    let alice = api.token("alice").await;
    let response = ask(&api, SQL, Some(&alice), &json!({"q": "select wait"})).await;
    assert!(response.text().contains("59"), "{}", response.text());
    assert!(!api.executor.calls().ends_with(&[ExecutorCall::Commit]));
}

#[tokio::test]
async fn few_statements_of_anonymous_callers_run_at_once() {
    let api = tenant(AnonymousSql::Read).await;
    let hang = json!({"q": "select hang 0 0"});
    let held: Vec<_> = (0..4).map(|_| ask(&api, SQL, None, &hang)).collect();
    let held = futures_util::future::join_all(held);
    let late = async {
        eventually("four run", async || {
            let calls = api.executor.calls();
            calls
                .iter()
                .filter(|call| matches!(call, ExecutorCall::Query(_)))
                .count()
                == 4
        })
        .await;
        let body = json!({"q": "select rows 1 1"});
        let refused = ask(&api, SQL, None, &body).await;
        assert_eq!(refused.error(), (503, "POOL_TIMEOUT".to_owned()));
        assert_eq!(refused.header("retry-after"), "1");
        let alice = api.token("alice").await;
        assert_eq!(ask(&api, SQL, Some(&alice), &body).await.status, 200);
    };
    tokio::select! {
        _ = held => panic!("what hangs has ended"),
        () = late => {}
    }
    // The slot of a client that has disconnected is free again.
    let body = json!({"q": "select rows 1 1"});
    assert_eq!(ask(&api, SQL, None, &body).await.status, 200);
}

#[tokio::test]
async fn only_the_owner_reads_and_changes_the_setting() {
    let api = tenant(AnonymousSql::Off).await;
    let (owner, alice) = (api.token("demo").await, api.token("alice").await);
    let call = async |method: Method, token: Option<&str>, body: &str| {
        let mut request = request(method, "/api/v4/tenant");
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        api.call(request.body(body.to_owned()).unwrap()).await
    };
    let patch = async |token, body: &str| call(Method::PATCH, token, body).await;
    let shown = call(Method::GET, Some(&owner), "").await;
    assert_eq!(
        shown.text(),
        r#"{"name":"demo","anonymous_sql":"off","impersonation":true}"#
    );
    let body = json!({"q": "select rows 1 1"});
    assert_eq!(ask(&api, SQL, None, &body).await.status, 401);

    let changed = patch(Some(&owner), r#"{"anonymous_sql":"read"}"#).await;
    assert_eq!(changed.status, 303);
    assert_eq!(changed.header("location"), "/api/v4/tenant");
    let links = r#"[{"_links":{"self":"/api/v4/tenant"}}]"#;
    assert_eq!(changed.text(), links);
    // The change applies to the next request.
    assert_eq!(ask(&api, SQL, None, &body).await.status, 200);
    let audit = request(Method::GET, "/api/v4/audit");
    let audit = audit.header("authorization", format!("Bearer {owner}"));
    let audit = api.call(audit.body(String::new()).unwrap()).await.json();
    let event = audit["events"].as_array().unwrap().last().unwrap();
    assert_eq!(event["event"], "tenant_changed");
    assert_eq!(event["detail"], "anonymous_sql=read");
    assert_eq!(event["actor"], "demo");

    for (token, body, status) in [
        (Some(&*alice), r#"{"anonymous_sql":"on"}"#, 403),
        (None, r#"{"anonymous_sql":"on"}"#, 401),
        (Some(&*owner), r#"{"anonymous_sql":"write"}"#, 400),
        (Some(&*owner), r#"{"anonymous_sql":null}"#, 400),
        (Some(&*owner), r#"{"anonymous":"on"}"#, 400),
    ] {
        let refused = patch(token, body).await;
        assert_eq!(refused.status, status, "{body}: {}", refused.text());
    }
    for token in [Some(&*alice), None] {
        let refused = call(Method::GET, token, "").await;
        assert!(matches!(refused.status.as_u16(), 401 | 403));
    }
    let shown = call(Method::GET, Some(&owner), "").await;
    assert_eq!(shown.json()["anonymous_sql"], "read");
}
