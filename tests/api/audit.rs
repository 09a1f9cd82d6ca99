//! Tests `GET /api/v4/audit`, the audit log.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::service::{RestResponse, Service, demo_folder};

/// All events of the demo's tenant, page by page.
pub(crate) async fn all_events(demo: &Service) -> Vec<Value> {
    let (mut events, mut since) = (Vec::new(), 0);
    loop {
        let path = format!("/api/v4/audit?limit=1000&since={since}");
        let page = demo.rest(Some("demo"), ("GET", &path), &Value::Null).await;
        let found = page.body["events"].as_array().unwrap();
        if found.is_empty() {
            return events;
        }
        events.extend_from_slice(found);
        since = page.body["next"].as_u64().unwrap();
    }
}

struct Log {
    demo: Service,
    owner: String,
}

impl Log {
    async fn owner(&self, method: &str, path: &str, body: Value) -> RestResponse {
        self.demo
            .rest_with(Some(&self.owner), (method, path), &body)
            .await
    }

    async fn grant(&self, body: Value) -> RestResponse {
        let path = ("POST", "/api/v4/oauth");
        self.demo.rest_with(None, path, &body).await
    }

    async fn page(&self, query: &str) -> Value {
        let path = format!("/api/v4/audit{query}");
        let page = self.owner("GET", &path, Value::Null).await;
        assert_eq!(page.status, 200, "{page:?}");
        page.body
    }
}

fn password(user: &str, password: &str) -> Value {
    json!({
        "grant_type": "password", "username": user, "password": password,
        "database": "demo", "client_id": "demo-app",
    })
}

/// This test has a demo of its own, because it counts all events of a tenant.
#[tokio::test]
async fn the_owner_reads_what_happened_page_by_page() {
    let folder = demo_folder();
    let demo = Service::start(folder.path().to_str().unwrap(), &[]);
    let owner = demo.token("demo").await;
    let log = Log { demo, owner };
    let start = log.page("?limit=1000").await["next"].clone();

    let client = json!({"id": "watched", "name": "W", "redirect_uri": ["https://w.example/"]});
    log.owner("POST", "/api/v4/clients", client).await;
    log.owner(
        "PATCH",
        "/api/v4/clients/watched",
        json!({"rotate_secret": true}),
    )
    .await;
    log.owner("DELETE", "/api/v4/clients/watched", Value::Null)
        .await;
    let user = json!({"name": "vera", "password": "vera-12345"});
    log.owner("POST", "/api/v4/users", user).await;
    let tokens = log.grant(password("vera", "vera-12345")).await.body;
    log.grant(password("vera", "wrong-password")).await;
    log.grant(password("nobody", "wrong-password")).await;
    let secretless = json!({"grant_type": "password", "client_id": "demo-server",
        "username": "vera", "password": "vera-12345", "database": "demo"});
    log.grant(secretless).await;
    // A refresh token is used again after its successor was used.
    let refresh = |token: &Value| {
        let body = json!({"grant_type": "refresh_token", "client_id": "demo-app",
            "refresh_token": token});
        log.grant(body)
    };
    let second = refresh(&tokens["refresh_token"]).await.body;
    refresh(&second["refresh_token"]).await;
    assert_eq!(refresh(&tokens["refresh_token"]).await.status, 400);
    let again = log.grant(password("vera", "vera-12345")).await.body;
    let revoke = json!({"token": again["refresh_token"], "client_id": "demo-app"});
    log.demo
        .rest_with(None, ("POST", "/api/v4/oauth/revoke"), &revoke)
        .await;
    log.grant(password("vera", "vera-12345")).await;
    log.owner(
        "PATCH",
        "/api/v4/users/vera",
        json!({"password": "vera-67890"}),
    )
    .await;
    let path = "/api/v4/schemas/public/tables/artists/privileges";
    for (privilege, status) in [("read", 303), ("all", 400)] {
        let set = json!({"subuser": "vera", "privilege": privilege});
        assert_eq!(log.owner("PATCH", path, set).await.status, status);
    }
    log.owner("DELETE", "/api/v4/users/vera?reassign=true", Value::Null)
        .await;

    let all = log.page(&format!("?since={start}&limit=1000")).await;
    let events = all["events"].as_array().unwrap();
    let names: Vec<_> = events
        .iter()
        .map(|event| {
            let detail = event["detail"]
                .as_str()
                .map_or(String::new(), |d| format!(":{d}"));
            format!("{}{detail}", event["event"].as_str().unwrap())
        })
        .collect();
    assert_eq!(
        names,
        [
            "client_created",
            "client_changed",
            "client_secret_rotated",
            "client_dropped",
            "user_created",
            "session_opened:password",
            "sign_in_failed",
            "sign_in_failed",
            "client_refused",
            "refresh_reuse:refresh_reuse",
            "session_opened:password",
            "session_ended:revoked",
            "session_opened:password",
            "user_changed",
            "session_ended:password_changed",
            "password_changed",
            "privilege_set:read on public.artists",
            "user_dropped",
        ]
    );
    let made = &events[0];
    assert_eq!(
        (&made["actor"], &made["client_id"], &made["address"]),
        (&json!("demo"), &json!("watched"), &json!("127.0.0.1"))
    );
    let privilege = &events[events.len() - 2];
    assert_eq!(
        (
            &privilege["user"],
            &privilege["actor"],
            &privilege["address"]
        ),
        (&json!("vera"), &json!("demo"), &json!("127.0.0.1"))
    );
    assert_eq!(events[7]["user"], "nobody");
    assert_eq!(events[5]["session"], events[9]["session"]);
    let at = made["at"].as_str().unwrap();
    assert!(at.ends_with('Z') && at.len() >= 20, "{at}");
    let members: Vec<_> = made.as_object().unwrap().keys().collect();
    assert_eq!(
        members,
        [
            "id",
            "at",
            "event",
            "detail",
            "user",
            "client_id",
            "session",
            "address",
            "actor"
        ]
    );
    // No event contains a secret.
    let text = all.to_string();
    for secret in [
        "vera-12345",
        "wrong-password",
        tokens["refresh_token"].as_str().unwrap(),
    ] {
        assert!(!text.contains(secret));
    }

    // The pages together contain the same events.
    let (mut since, mut ids) = (start.clone(), Vec::new());
    loop {
        let page = log.page(&format!("?since={since}&limit=3")).await;
        let found = page["events"].as_array().unwrap();
        assert!(found.len() <= 3);
        ids.extend(found.iter().map(|event| event["id"].clone()));
        if found.is_empty() {
            assert_eq!(page["next"], since);
            break;
        }
        since = page["next"].clone();
    }
    let expected: Vec<_> = events.iter().map(|event| event["id"].clone()).collect();
    assert_eq!(ids, expected);
    // `since` takes a day or a time.
    let day = &made["at"].as_str().unwrap()[..10];
    let today = log.page(&format!("?since={day}&limit=1000")).await;
    let today = today["events"].as_array().unwrap();
    assert!(today.len() >= events.len(), "{today:?}");
    let tomorrow = log.page("?since=2999-01-01").await;
    assert_eq!(tomorrow["events"], json!([]));
    let from = events.last().unwrap()["at"].as_str().unwrap();
    let late = log.page(&format!("?since={from}")).await;
    let late = late["events"].as_array().unwrap();
    assert!(
        late.iter().any(|event| event["event"] == "user_dropped"),
        "{late:?}"
    );
    assert!(late.len() < events.len());
}

/// While one client reads page by page, many requests write events, and the client misses none.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_beside_many_writers_misses_nothing() {
    let folder = demo_folder();
    let demo = Service::start(folder.path().to_str().unwrap(), &[]);
    let owner = demo.token("demo").await;
    let log = Log { demo, owner };
    let start = log.page("?limit=1000").await["next"].clone();
    let guest = json!({"database": "demo", "client_id": "demo-app"});
    let path = ("POST", "/api/v4/oauth/guest");
    let writers = futures_util::future::join_all((0..8).map(|_| async {
        for _ in 0..25 {
            assert_eq!(log.demo.rest_with(None, path, &guest).await.status, 201);
        }
    }));
    let reader = async {
        let (mut since, mut seen) = (start, BTreeSet::new());
        while seen.len() < 200 {
            let page = log.page(&format!("?since={since}&limit=7")).await;
            for event in page["events"].as_array().unwrap() {
                assert!(seen.insert(event["id"].as_u64().unwrap()), "one came twice");
            }
            since = page["next"].clone();
        }
        seen.len()
    };
    let both = async { tokio::join!(writers, reader) };
    let (_, seen) = tokio::time::timeout(crate::service::TIMEOUT, both)
        .await
        .unwrap();
    assert_eq!(seen, 200);
}

#[tokio::test]
async fn only_the_owner_reads_it_and_a_wrong_query_is_named() {
    let demo = crate::service::demo();
    let path = ("GET", "/api/v4/audit");
    let refused = demo.rest(Some("alice"), path, &Value::Null).await;
    assert_eq!(
        (refused.error().0, refused.error().1),
        (403, "INSUFFICIENT_PRIVILEGES")
    );
    let stranger = demo.rest(None, path, &Value::Null).await;
    assert_eq!(
        (stranger.error().0, stranger.error().1),
        (401, "MISSING_TOKEN")
    );
    for (query, expected) in [
        (
            "since=yesterday",
            "`since`: expected the `next` of another page",
        ),
        (
            "since=2026-11-21T00:00",
            "`since`: expected the `next` of another page",
        ),
        ("since=-1", "`since`: expected the `next` of another page"),
        ("limit=0", "`limit`: expected a number from 1 to 1000"),
        ("limit=1001", "`limit`: expected a number from 1 to 1000"),
        (
            "user=x",
            "`user`: unknown parameter; known are since, limit",
        ),
    ] {
        let path = format!("/api/v4/audit?{query}");
        let refused = demo.rest(Some("demo"), ("GET", &path), &Value::Null).await;
        let (status, _, message) = refused.error();
        assert!(status == 400 && message.starts_with(expected), "{message}");
    }
}
