//! Tests a user that the operator does not let log in to PostgreSQL (API.md, "Errors": 28* and
//! 42501 are 403).

use serde_json::json;
use tokio_postgres::error::SqlState;

use crate::graphql::PUBLIC;
use crate::service::{demo, eventually};
use crate::socket_client::socket;
use crate::users::{SQL, owner};

async fn end_sessions(of: &str) {
    let admin = demo().admin().await;
    let kick = "select pg_terminate_backend(pid) from pg_stat_activity where usename = $1";
    eventually("its sessions are gone", || async {
        admin.execute(kick, &[&of]).await.unwrap() == 0
    })
    .await;
}

/// Runs a statement as the administrator. Retries if privileges of the same database or role change
/// at the same time, which PostgreSQL reports as an internal error: "tuple concurrently updated".
async fn as_administrator(sql: &str) {
    let admin = demo().admin().await;
    eventually("nobody else changes it", || async {
        let Err(error) = admin.batch_execute(sql).await else {
            return true;
        };
        assert_eq!(error.code(), Some(&SqlState::INTERNAL_ERROR), "{error:?}");
        false
    })
    .await;
}

async fn create_user(name: &str) {
    let body = json!({"name": name, "password": format!("{name}1234")});
    assert_eq!(owner("POST", "/api/v4/users", body).await.status, 201);
    let response = demo().rows(name, "select 1 as n", json!({})).await;
    assert_eq!(response["data"], json!([{"n": 1}]));
}

async fn wait_until_let_in(name: &str) {
    eventually("it is let in", || async {
        let response = demo().sql(Some(name), &json!({"q": "select 1"})).await;
        response.status() == 200
    })
    .await;
}

#[tokio::test]
async fn a_locked_out_user_gets_an_error_and_can_be_let_in_again() {
    create_user("barred").await;
    let cases = [
        (
            "alter role \"demo/barred\" nologin",
            "28000",
            "role \"demo/barred\" is not permitted to log in",
            "alter role \"demo/barred\" login",
        ),
        (
            "alter role \"demo/barred\" valid until '2020-01-01'",
            "28000",
            "PostgreSQL does not let this user log in",
            "alter role \"demo/barred\" valid until 'infinity'",
        ),
        (
            "revoke \"demo/$users\" from \"demo/barred\"",
            "42501",
            "permission denied for database \"demo\"",
            "grant \"demo/$users\" to \"demo/barred\"",
        ),
    ];
    // Each case runs twice. The second time is within the minute in which a password is repaired
    // only once.
    for (bars, sqlstate, message, lets_in) in cases.into_iter().chain(cases) {
        as_administrator(bars).await;
        end_sessions("demo/barred").await;
        for _ in 0..2 {
            let token = demo().cached_token("barred").await;
            let request = json!({"q": "select 1"});
            let response = demo().rest_with(Some(&token), SQL, &request).await;
            assert_eq!(response.error(), (403, "SQL_ERROR", message), "{bars}");
            assert_eq!(response.body["sqlstate"], sqlstate, "{bars}");
        }
        let plain = demo().sql(Some("barred"), &json!({"q": "select 1"})).await;
        assert!(!plain.headers().contains_key("retry-after"), "{bars}");
        as_administrator(lets_in).await;
        wait_until_let_in("barred").await;
    }
}

#[tokio::test]
async fn every_interface_tells_it() {
    create_user("shut").await;
    as_administrator("grant select on artists to \"demo/shut\"").await;
    let query = "subscription { ArtistsMessageAdded { id } }";
    socket("shut").await.subscribe("a", query).await;
    as_administrator("alter role \"demo/shut\" nologin").await;
    end_sessions("demo/shut").await;
    let artists = json!({"query": "{ getArtists(limit: 1) { id } }"});
    let response = demo().rest(Some("shut"), ("POST", PUBLIC), &artists).await;
    let error = &response.body["errors"][0];
    assert_eq!(error["extensions"]["code"], "FORBIDDEN", "{response:?}");
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "no_such_method"});
    let called = demo()
        .rest(Some("shut"), ("POST", "/api/v4/call"), &call)
        .await;
    assert_eq!(called.body["error"]["code"], -32601, "{called:?}");
    let mut socket = socket("shut").await;
    let subscribe = json!({"type": "subscribe", "id": "a", "schema": "public", "query": query});
    let refused = socket.ask(subscribe).await;
    assert_eq!(refused["error"], "not_allowed", "{refused}");
    as_administrator("alter role \"demo/shut\" login").await;
    wait_until_let_in("shut").await;
}

/// PostgreSQL sessions end within a second without a request.
#[tokio::test]
async fn an_open_connection_of_a_role_ends_with_its_right_to_log_in() {
    create_user("ended").await;
    let open = "select count(*) from pg_stat_activity where usename = 'demo/ended'";
    let admin = demo().admin().await;
    for (change, undo, status) in [
        ("nologin", "login", 403),
        ("valid until '2020-01-01'", "valid until 'infinity'", 403),
        (
            "set default_transaction_read_only = on",
            "reset default_transaction_read_only",
            405,
        ),
    ] {
        as_administrator(&format!("alter role \"demo/ended\" {change}")).await;
        eventually("its connections are closed", || async {
            admin.query_one(open, &[]).await.unwrap().get::<_, i64>(0) == 0
        })
        .await;
        // The statement is the first one on its connection, and is refused.
        let write = json!({"q": "create table ended (a int)"});
        let response = demo().sql(Some("ended"), &write).await;
        assert_eq!(response.status(), status, "{change}");
        as_administrator(&format!("alter role \"demo/ended\" {undo}")).await;
        wait_until_let_in("ended").await;
    }
}
