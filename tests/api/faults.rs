//! Tests faults around the service. Each test that breaks something has a demo of its own.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::service::{Service, TIMEOUT, demo, demo_folder, eventually};

/// A parameter of the startup packet takes precedence over a role's own settings.
#[tokio::test]
async fn settings_of_its_own_keep_no_role_out() {
    let folder = demo_folder();
    let demo = Service::start(folder.path().to_str().unwrap(), &[]);
    let admin = demo.admin().await;
    let kick =
        "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'demo/alice'";
    for setting in [
        "alter role current_user set local_preload_libraries = 'no_such_library'",
        "alter role current_user set search_path = 'pg_temp'",
    ] {
        demo.rows("alice", setting, json!({})).await;
        eventually("alice's sessions are gone", || async {
            admin.execute(kick, &[]).await.unwrap() == 0
        })
        .await;
        let response = demo.rows("alice", "select 1 as n", json!({})).await;
        assert_eq!(response["data"], json!([{"n": 1}]), "{setting}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn postgresql_killed_under_load_gives_clear_responses_and_recovers() {
    let folder = demo_folder();
    let demo = Arc::new(Service::start(folder.path().to_str().unwrap(), &[]));
    let q = "create table f_load (n bigint primary key)";
    demo.rows("demo", q, json!({})).await;
    let stop = Arc::new(AtomicBool::new(false));
    let unavailable = Arc::new(AtomicUsize::new(0));
    let tasks: Vec<_> = (0..8)
        .map(|worker| {
            let (demo, stop, unavailable) = (demo.clone(), stop.clone(), unavailable.clone());
            tokio::spawn(load(demo, worker, stop, unavailable))
        })
        .collect();
    for _ in 0..3 {
        crash(&demo).await;
        eventually("queries are answered again", || async {
            let response = demo.sql(Some("demo"), &json!({"q": "select 1"})).await;
            let status = response.status().as_u16();
            assert!(matches!(status, 200 | 503), "{status}");
            status == 200
        })
        .await;
    }
    stop.store(true, Ordering::Relaxed);
    let mut written = 0;
    for task in tasks {
        let ended = tokio::time::timeout(TIMEOUT, task).await;
        written += ended.expect("a request hung").unwrap();
    }
    let q = "select count(*)::int as n from f_load";
    let rows = demo.rows("demo", q, json!({})).await;
    // Every acknowledged row is stored. Rows without a response may be stored too.
    let stored = usize::try_from(rows["data"][0]["n"].as_u64().unwrap()).unwrap();
    let unanswered = unavailable.load(Ordering::Relaxed);
    assert!(
        stored >= written && stored <= written + unanswered,
        "{written} {stored} {unanswered}"
    );
}

/// Kills a backend, so that PostgreSQL ends all backends and restarts. Returns when they have
/// ended, including one with a statement in progress.
async fn crash(demo: &Arc<Service>) {
    let (witness, ended) = session(demo).await;
    let (victim, _) = session(demo).await;
    let q = "select pg_sleep(3600) as f_in_flight";
    let asking = demo.clone();
    let in_flight =
        tokio::spawn(async move { asking.sql(Some("demo"), &json!({"q": q})).await.status() });
    let active = "select count(*) from pg_stat_activity where state = 'active' and query = $1";
    eventually("the statement runs", || async {
        let active = witness.query_one(active, &[&q]).await.unwrap();
        active.get::<_, i64>(0) == 1
    })
    .await;
    let pid = victim.query_one("select pg_backend_pid()", &[]).await;
    let pid = pid.unwrap().get::<_, i32>(0).to_string();
    let killed = Command::new("kill").args(["-KILL", &pid]).status();
    assert!(killed.unwrap().success());
    let ended = tokio::time::timeout(TIMEOUT, ended).await;
    ended.expect("PostgreSQL ended nobody").unwrap();
    let response = tokio::time::timeout(TIMEOUT, in_flight).await;
    assert_eq!(response.expect("a request hung").unwrap(), 503);
}

/// Opens a session of the administrator as soon as PostgreSQL accepts one. Also returns the task of
/// its connection.
async fn session(demo: &Service) -> (tokio_postgres::Client, tokio::task::JoinHandle<()>) {
    loop {
        let connected = tokio_postgres::connect(&demo.database_url, tokio_postgres::NoTls).await;
        if let Ok((client, connection)) = connected {
            let ended = tokio::spawn(async move {
                // The result of the task does not matter.
                let _ = connection.await;
            });
            return (client, ended);
        }
        tokio::task::yield_now().await;
    }
}

/// Writes rows until it is stopped. Returns how many were acknowledged. A missing response is an
/// error of the client, whose timeout is a minute.
async fn load(
    demo: Arc<Service>,
    worker: i64,
    stop: Arc<AtomicBool>,
    unavailable: Arc<AtomicUsize>,
) -> usize {
    let mut written = 0;
    let mut n = worker * 1_000_000_000;
    while !stop.load(Ordering::Relaxed) {
        n += 1;
        let body = json!({"q": "insert into f_load values (:n)", "params": {"n": n}});
        let response = demo.sql(Some("demo"), &body).await;
        match response.status().as_u16() {
            200 => written += 1,
            503 => {
                assert!(response.headers().contains_key("retry-after"));
                let error: Value = response.json().await.unwrap();
                // While PostgreSQL takes long to restart, requests wait for a connection.
                let code = error["errorCode"].as_str().unwrap();
                let known = ["DATABASE_UNAVAILABLE", "POOL_TIMEOUT"];
                assert!(known.contains(&code), "{error}");
                unavailable.fetch_add(1, Ordering::Relaxed);
            }
            other => panic!("{other}: {}", response.text().await.unwrap()),
        }
    }
    written
}

#[tokio::test(flavor = "multi_thread")]
async fn an_exhausted_pool_answers_in_bounded_time() {
    let folder = demo_folder();
    let few = [
        ("TIDEGATE_ROLE_CONNECTIONS", "4"),
        ("TIDEGATE_POOL_TIMEOUT", "5s"),
    ];
    let demo = Service::start_with(folder.path().to_str().unwrap(), &[], &few);
    let admin = demo.admin().await;
    let hold = "select pg_advisory_lock(4712); \
                grant execute on function pg_advisory_xact_lock(bigint) to \"demo/alice\"";
    admin.batch_execute(hold).await.unwrap();
    let body = json!({"q": "select pg_advisory_xact_lock(4712) is not null as held"});
    let mut responses: FuturesUnordered<_> =
        (0..40).map(|_| demo.sql(Some("alice"), &body)).collect();
    // Four requests wait for the lock. All others fail at their deadline.
    for _ in 0..36 {
        let refused = responses.next().await.unwrap();
        assert_eq!(refused.status(), 503);
        assert!(refused.headers().contains_key("retry-after"));
        let error: Value = refused.json().await.unwrap();
        assert_eq!(error["errorCode"], "POOL_TIMEOUT", "{error}");
    }
    let release = "select pg_advisory_unlock(4712)";
    admin.batch_execute(release).await.unwrap();
    while let Some(response) = responses.next().await {
        assert_eq!(response.status(), 200);
    }
}

#[tokio::test]
async fn bad_input_has_clear_responses() {
    let token = demo().token("demo").await;
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let long = format!(r#"{{"q":"select '{}'"}}"#, "x".repeat(2 * 1024 * 1024));
    for (body, status, code) in [
        ("{".to_owned(), 400, "INVALID_JSON"),
        ("nonsense".to_owned(), 400, "INVALID_JSON"),
        (String::new(), 400, "INVALID_JSON"),
        ("5".to_owned(), 400, "INPUT_VALIDATION_ERROR"),
        ("[]".to_owned(), 400, "INPUT_VALIDATION_ERROR"),
        (r#"{"params":{}}"#.to_owned(), 400, "INPUT_VALIDATION_ERROR"),
        (r#"{"q":5}"#.to_owned(), 400, "INPUT_VALIDATION_ERROR"),
        (
            r#"{"q":"select 1","params":[1]}"#.to_owned(),
            400,
            "INPUT_VALIDATION_ERROR",
        ),
        (
            r#"{"q":"select 1","params":5}"#.to_owned(),
            400,
            "INPUT_VALIDATION_ERROR",
        ),
        (
            r#"{"q":"select 1","type_hints":{"a":1}}"#.to_owned(),
            400,
            "INPUT_VALIDATION_ERROR",
        ),
        (
            r#"{"q":"select '\u0000'"}"#.to_owned(),
            400,
            "INPUT_VALIDATION_ERROR",
        ),
        (
            r#"{"q":"select :a::text","params":{"a":"\u0000"}}"#.to_owned(),
            400,
            "INPUT_VALIDATION_ERROR",
        ),
        (
            r#"{"q":"select '\ud800'"}"#.to_owned(),
            400,
            "INPUT_VALIDATION_ERROR",
        ),
        (
            format!(r#"{{"q":"select :a::jsonb","params":{{"a":{deep}}}}}"#),
            400,
            "INVALID_JSON",
        ),
        (long, 400, "INPUT_VALIDATION_ERROR"),
    ] {
        let shown: String = body.chars().take(60).collect();
        let response = post_raw(&token, body).await;
        assert_eq!(response.status(), status, "{shown}");
        let error: Value = response.json().await.unwrap();
        assert_eq!(error["errorCode"], code, "{shown}: {error}");
    }
}

#[tokio::test]
async fn a_body_over_the_limit_is_too_large() {
    let token = demo().token("demo").await;
    let response = post_raw(&token, "x".repeat(11 * 1024 * 1024)).await;
    assert_eq!(response.status(), 413);
    assert_eq!(
        response.json::<Value>().await.unwrap()["errorCode"],
        "PAYLOAD_TOO_LARGE"
    );
}

async fn post_raw(token: &str, body: String) -> reqwest::Response {
    demo()
        .request(reqwest::Method::POST, "/api/v4/sql")
        .bearer_auth(token)
        .header("content-type", "application/json")
        .body(body)
        .send()
        .await
        .unwrap()
}

#[tokio::test]
async fn a_dropped_database_is_a_clear_response() {
    let folder = demo_folder();
    let demo = Service::start(folder.path().to_str().unwrap(), &[]);
    demo.rows("demo", "select 1", json!({})).await;
    let url = demo.database_url.rsplit_once('/').unwrap().0.to_owned() + "/postgres";
    let admin = tidegate_testkit::connect(&url).await;
    admin
        .batch_execute("drop database demo with (force)")
        .await
        .unwrap();
    let response = demo.sql(Some("demo"), &json!({"q": "select 1"})).await;
    let status = response.status().as_u16();
    let error: Value = response.json().await.unwrap();
    assert!(matches!(status, 404 | 503), "{status} {error}");
    eventually("the database is known to be gone", || async {
        demo.sql(Some("demo"), &json!({"q": "select 1"}))
            .await
            .status()
            == 404
    })
    .await;
}

/// A client may send more after the end of a request. The service does not read it before the end
/// of the response.
#[tokio::test]
async fn a_client_that_leaves_with_more_to_say_ends_its_statement() {
    let demo = demo();
    let (witness, _) = session(demo).await;
    let token = demo.cached_token("demo").await;
    let address = demo.url.strip_prefix("http://").unwrap();
    let silent = "select pg_sleep(120) as pipelined";
    // The statement returns some rows at once, and then none for a long time.
    let begun = "select repeat('x', 70000) as pipelined from generate_series(1, 3) \
                 union all select pg_sleep(120)::text";
    let active = "select count(*) from pg_stat_activity where state = 'active' and query = $1";
    for (q, has_begun, more) in [
        (silent, false, "\r\n"),
        (
            silent,
            false,
            "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
        ),
        (begun, true, "\r\n"),
    ] {
        let running = || async {
            let active = witness.query_one(active, &[&q]).await.unwrap();
            active.get::<_, i64>(0)
        };
        let body = json!({"q": q, "output_format": "ndjson"}).to_string();
        let request = format!(
            "POST /api/v4/sql HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}{more}",
            body.len()
        );
        let mut socket = TcpStream::connect(address).await.unwrap();
        socket.write_all(request.as_bytes()).await.unwrap();
        eventually("it runs", || async { running().await == 1 }).await;
        let (mut bytes, mut seen) = ([0; 4096], 0);
        while has_begun && seen < 100_000 {
            seen += socket.read(&mut bytes).await.unwrap();
        }
        drop(socket);
        eventually("it has ended", || async { running().await == 0 }).await;
    }
}
