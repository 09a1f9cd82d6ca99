//! `POST /api/v4/sql`: what an error of PostgreSQL says (wire.md 4).

use serde_json::json;

use crate::service::demo;

#[tokio::test]
async fn errors_call_placeholders_by_name() {
    for (q, sqlstate, name) in [
        ("select :who is null", "42P18", ":who"),
        ("select * from :who", "42601", "\":who\""),
    ] {
        let body = json!({"q": q, "params": {"who": "artists"}});
        let (status, error) = demo().refusal("demo", &body).await;
        assert_eq!((status, error["sqlstate"].as_str()), (400, Some(sqlstate)));
        assert!(error["message"].as_str().unwrap().contains(name), "{error}");
    }
}

#[tokio::test]
async fn errors_carry_what_postgresql_says() {
    let (status, error) = demo()
        .refusal(
            "demo",
            &json!({"q": "select :a::int, nonsense", "params": {"a": 1}}),
        )
        .await;
    assert_eq!(
        (status, error["errorCode"].as_str()),
        (400, Some("SQL_ERROR"))
    );
    assert_eq!(error["sqlstate"], "42703");
    // The position counts in the caller's text, where the placeholder is longer than `$1`.
    assert_eq!(error["position"], 17, "{error}");
    for (q, status, sqlstate) in [
        ("select * from no_such_table", 404, "42P01"),
        ("select no_such_function()", 404, "42883"),
        ("selec 1", 400, "42601"),
        ("select 1/0", 400, "22012"),
        ("select 'x'::int", 400, "22P02"),
        ("insert into albums (title) values ('x')", 400, "23502"),
        (
            "insert into albums (artist_id, title) values (-1, 'x')",
            409,
            "23503",
        ),
        (
            "do $$ begin raise exception 'mine' using errcode = 'MY001'; end $$",
            400,
            "MY001",
        ),
        ("do $$ begin raise exception 'mine'; end $$", 400, "P0001"),
        (
            "do $$ begin raise exception 'x' using errcode = '40001'; end $$",
            409,
            "40001",
        ),
        (
            "do $$ begin raise exception 'x' using errcode = '55P03'; end $$",
            409,
            "55P03",
        ),
        (
            "do $$ begin raise exception 'x' using errcode = '25006'; end $$",
            405,
            "25006",
        ),
        (
            "do $$ begin raise exception 'x' using errcode = '23P01'; end $$",
            409,
            "23P01",
        ),
    ] {
        let (got, error) = demo().refusal("demo", &json!({"q": q})).await;
        assert_eq!(
            (got, error["sqlstate"].as_str()),
            (status, Some(sqlstate)),
            "{q}: {error}"
        );
        assert_eq!(error["code"], status, "{q}");
        assert!(error["message"].is_string(), "{q}");
    }
    let (_, error) = demo()
        .refusal(
            "demo",
            &json!({"q": "do $$ begin raise exception 'x' using errcode = '40P01'; end $$"}),
        )
        .await;
    assert_eq!(error["retryable"], true);
}
