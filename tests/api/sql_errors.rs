//! Tests PostgreSQL's errors in responses of `POST /api/v4/sql` (API.md, "SQL").

use serde_json::{Value, json};

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
async fn a_wrong_value_of_an_inferred_parameter_is_named() {
    let wrong = json!({"q": "select now() - :i", "params": {"i": "1 day"}});
    let sets = json!({"q": "select now() - :i", "params": [{"i": "2020-01-01"}, {"i": "1 day"}]});
    let array = json!([{"q": "select 1"}, wrong]);
    for (body, named) in [
        (&wrong, "`params.i`: "),
        (&sets, "`params[1].i`: "),
        (&array, "[1]: `params.i`: "),
    ] {
        let (status, error) = demo().refusal("demo", body).await;
        let actual = "invalid input syntax for type timestamp with time zone: \"1 day\"";
        let reported = (status, error["message"].as_str().unwrap_or_default());
        assert_eq!(reported, (400, &*format!("{named}{actual}")), "{error}");
        assert_eq!(error["sqlstate"], "22007");
    }
    let mut socket = crate::socket_client::socket("demo").await;
    let mut message = wrong.clone();
    message["id"] = json!("a");
    let response = socket.ask(message).await;
    let actual = response["message"].as_str().unwrap_or_default();
    assert!(actual.starts_with("`params.i`: "), "{response}");
}

#[tokio::test]
async fn what_a_caller_does_wrong_is_not_the_services_fault() {
    for (q, status, sqlstate) in [
        ("lock table artists", 400, "25P01"),
        ("fetch all from nowhere", 400, "34000"),
        ("move 1 in nowhere", 400, "34000"),
        ("close nowhere", 400, "34000"),
        ("select lastval()", 400, "55000"),
        (
            "do $$ begin execute 'execute nothing'; end $$",
            400,
            "26000",
        ),
        (
            "do $$ begin case 1 when 2 then null; end case; end $$",
            400,
            "20000",
        ),
        (
            "do $$ begin raise exception 'x' using errcode = '38000'; end $$",
            400,
            "38000",
        ),
        (
            "do $$ begin raise exception 'x' using errcode = '55006'; end $$",
            409,
            "55006",
        ),
    ] {
        let (got, error) = demo().refusal("demo", &json!({"q": q})).await;
        let reported = (got, error["sqlstate"].as_str());
        assert_eq!(reported, (status, Some(sqlstate)), "{q}: {error}");
    }
    // PostgreSQL reports this conflict as an internal error.
    let q = "do $$ begin raise exception 'tuple concurrently updated' using errcode = 'XX000'; \
             end $$";
    let (status, error) = demo().refusal("demo", &json!({"q": q})).await;
    let reported = (status, error["sqlstate"].as_str(), &error["retryable"]);
    assert_eq!(reported, (409, Some("40001"), &json!(true)), "{error}");
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
    // The position refers to the caller's text, in which the placeholder is longer than `$1`.
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

#[tokio::test]
async fn a_configured_limit_is_named_and_is_not_an_outage() {
    let q = "do $$ begin raise exception 'too many files' using errcode = '53400'; end $$";
    let response = demo().sql(Some("demo"), &json!({"q": q})).await;
    assert_eq!(response.status(), 503);
    assert!(
        !response.headers().contains_key("retry-after"),
        "{response:?}"
    );
    let error: Value = response.json().await.unwrap();
    assert_eq!(error["errorCode"], "SQL_ERROR", "{error}");
    assert_eq!(error["message"], "too many files", "{error}");

    let method = json!({"method": "limitedSort", "q": q});
    let made = demo().rest(Some("demo"), ("POST", "/api/v4/methods"), &method);
    assert_eq!(made.await.status, 201);
    let call = json!({"jsonrpc": "2.0", "method": "limitedSort", "id": 1});
    let response = demo().rest(Some("demo"), ("POST", "/api/v4/call"), &call);
    let data = response.await.body["error"]["data"].clone();
    assert_eq!(data["message"], "too many files", "{data}");
    assert!(data.get("retryable").is_none(), "{data}");
    let method = "/api/v4/methods/limitedSort";
    let nothing = Value::Null;
    let gone = demo().rest(Some("demo"), ("DELETE", method), &nothing);
    assert_eq!(gone.await.status, 204);
}
