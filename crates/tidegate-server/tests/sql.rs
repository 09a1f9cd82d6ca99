//! Tests of the SQL endpoint: requests, arrays, formats and errors.

use http::Method;
use serde_json::{Value, json};
use tidegate_server::Limits;

use crate::executor::ExecutorCall;
use crate::fixture::{Api, request};

#[tokio::test]
async fn a_response_is_schema_and_data_in_compact_json() {
    let api = Api::start().await;
    let response = api.sql(&json!({"q": "select rows 2 3"})).await;
    assert_eq!(response.status, 200);
    assert_eq!(
        response.header("content-type"),
        "application/json; charset=utf-8"
    );
    assert_eq!(
        response.text(),
        r#"{"schema":{"s":{"type":"text","array":false}},"data":[{"s":"xxx"},{"s":"xxx"}]}"#
    );
}

#[tokio::test]
async fn a_write_tells_its_rows_and_the_id_comes_back() {
    let api = Api::start().await;
    let response = api
        .sql(&json!({"q": "insert into t values (1)", "id": {"a": 1}}))
        .await;
    let expected = json!({"schema": {}, "data": [], "affected_rows": 1, "id": {"a": 1}});
    assert_eq!(response.json(), expected);
}

#[tokio::test]
async fn an_array_is_one_transaction_with_an_array_of_responses() {
    let api = Api::start().await;
    let response = api
        .sql(&json!([{"q": "insert 1"}, {"q": "select rows 1 1", "id": 2}]))
        .await;
    assert_eq!(response.status, 200);
    let expected = json!([
        {"schema": {}, "data": [], "affected_rows": 1},
        {"schema": {"s": {"type": "text", "array": false}}, "data": [{"s": "x"}], "id": 2},
    ]);
    assert_eq!(response.json(), expected);
    let query = |text: &str| ExecutorCall::Query(text.to_owned());
    let expected = [
        ExecutorCall::Begin,
        query("insert 1"),
        query("select rows 1 1"),
        ExecutorCall::Commit,
    ];
    assert_eq!(api.executor.calls(), expected);
}

#[tokio::test]
async fn a_failing_request_of_an_array_is_named_and_rolls_back() {
    let api = Api::start().await;
    let response = api
        .sql(&json!([{"q": "insert 1"}, {"q": "select fail 1 23505 1"}]))
        .await;
    assert_eq!(response.error(), (409, "SQL_ERROR".to_owned()));
    assert_eq!(response.json()["message"], "[1]: what PostgreSQL said");
    assert_eq!(api.executor.calls().last(), Some(&ExecutorCall::Rollback));
}

#[tokio::test]
async fn a_wrong_request_of_an_array_runs_nothing() {
    let api = Api::start().await;
    for (wrong, status, code) in [
        (json!({"q": "commit"}), 403, "STATEMENT_NOT_ALLOWED"),
        (json!({"q": "select :a"}), 400, "INPUT_VALIDATION_ERROR"),
        (
            json!({"q": "select 1", "output_format": "csv"}),
            400,
            "INPUT_VALIDATION_ERROR",
        ),
        (json!({"q": 5}), 400, "INPUT_VALIDATION_ERROR"),
    ] {
        let response = api.sql(&json!([{"q": "insert 1"}, wrong])).await;
        assert_eq!(response.error(), (status, code.to_owned()), "{wrong}");
        assert!(
            response.json()["message"].as_str().unwrap().contains("[1]"),
            "{}",
            response.text()
        );
    }
    assert!(api.executor.calls().is_empty());
}

#[tokio::test]
async fn csv_and_ndjson_have_their_types() {
    let api = Api::start().await;
    for (format, kind, text) in [
        ("csv", "text/csv; charset=utf-8", "s\r\nxx\r\nxx\r\n"),
        (
            "ndjson",
            "application/x-ndjson",
            "{\"s\":\"xx\"}\n{\"s\":\"xx\"}\n",
        ),
    ] {
        let response = api
            .sql(&json!({"q": "select rows 2 2", "output_format": format}))
            .await;
        assert_eq!(
            (response.header("content-type"), response.text()),
            (kind, text)
        );
        let essence = kind.split(';').next().unwrap();
        let by_accept = api
            .sql_with("accept", essence, &json!({"q": "select rows 2 2"}))
            .await;
        assert_eq!(
            (by_accept.header("content-type"), by_accept.text()),
            (kind, text)
        );
    }
    let refused = api
        .sql_with("accept", "image/png", &json!({"q": "select rows 2 2"}))
        .await;
    assert_eq!(refused.error(), (406, "NOT_ACCEPTABLE".to_owned()));
    assert_eq!(
        api.executor.calls().len(),
        4,
        "what cannot be answered is not run"
    );
}

#[tokio::test]
async fn invalid_bodies_get_distinct_errors() {
    let api = Api::start().await;
    for (body, code) in [
        ("{", "INVALID_JSON"),
        ("", "INVALID_JSON"),
        ("5", "INPUT_VALIDATION_ERROR"),
        ("[]", "INPUT_VALIDATION_ERROR"),
        (r#"{"q":"select 1","parms":{}}"#, "INPUT_VALIDATION_ERROR"),
    ] {
        let request = request(Method::POST, "/api/v4/sql")
            .body(body.to_owned())
            .unwrap();
        assert_eq!(
            api.call(request).await.error(),
            (400, code.to_owned()),
            "{body}"
        );
    }
}

#[tokio::test]
async fn what_postgresql_says_is_passed_on_in_this_order() {
    let api = Api::start().await;
    let response = api.sql(&json!({"q": "select fail 0 23514"})).await;
    assert_eq!(response.status, 400);
    assert_eq!(
        response.text(),
        concat!(
            r#"{"success":false,"message":"what PostgreSQL said","code":400,"errorCode":"SQL_ERROR","#,
            r#""sqlstate":"23514","detail":"more","hint":"advice","position":8,"#,
            r#""constraint":"albums_price_check","column":"price","table":"albums"}"#
        )
    );
    let response = api.sql(&json!({"q": "select fail 0 40001"})).await;
    assert_eq!(
        (response.status.as_u16(), &response.json()["retryable"]),
        (409, &Value::from(true))
    );
}

#[tokio::test]
async fn faults_of_the_database_say_when_to_come_again() {
    let api = Api::start().await;
    for (kind, status, code, retry) in [
        ("deadline", 504, "STATEMENT_TIMEOUT", ""),
        ("pool", 503, "POOL_TIMEOUT", "2"),
        ("unavailable", 503, "DATABASE_UNAVAILABLE", "2"),
        ("nodatabase", 404, "NOT_FOUND", ""),
        ("internal", 500, "INTERNAL_ERROR", ""),
    ] {
        let response = api.sql(&json!({"q": format!("select error {kind}")})).await;
        assert_eq!(response.error(), (status, code.to_owned()));
        assert_eq!(response.header("retry-after"), retry);
        assert!(!response.text().contains("secret"), "{}", response.text());
    }
    let response = api.sql(&json!({"q": "select fail 0 57P01"})).await;
    assert_eq!(response.error(), (503, "DATABASE_UNAVAILABLE".to_owned()));
    assert_eq!(response.header("retry-after"), "1");
    let response = api.sql(&json!({"q": "select fail 0 25006"})).await;
    assert_eq!(
        (response.status.as_u16(), response.header("allow")),
        (405, "POST, OPTIONS")
    );
}

#[tokio::test]
async fn a_request_lowers_its_deadline_and_never_raises_it() {
    let api = Api::start().await;
    let body = json!({"q": "select wait"});
    let left = |response: &Value| {
        response["data"][0]["s"]
            .as_str()
            .unwrap()
            .parse::<u64>()
            .unwrap()
    };
    assert!((50..=60).contains(&left(&api.sql(&body).await.json())));
    let lower = api.sql_with("prefer", "wait=5", &body).await;
    assert!(left(&lower.json()) < 5);
    assert_eq!(lower.header("preference-applied"), "wait=5");
    let longer = api.sql_with("prefer", "wait=600", &body).await;
    assert!(left(&longer.json()) <= 60);
    assert_eq!(longer.header("preference-applied"), "wait=60");
    for wrong in ["wait=soon", "timezone=Europe/Atlantis"] {
        let response = api.sql_with("prefer", wrong, &body).await;
        assert_eq!(
            response.error(),
            (400, "INPUT_VALIDATION_ERROR".to_owned()),
            "{wrong}"
        );
    }
}

#[tokio::test]
async fn a_buffered_response_has_a_limit_and_a_streamed_one_has_none() {
    let api = Api::limited(Limits {
        response: 100_000,
        ..Limits::default()
    })
    .await;
    let rows = "select rows 200 1000";
    let reply = api.sql(&json!({"q": rows})).await;
    assert_eq!(reply.error(), (413, "PAYLOAD_TOO_LARGE".to_owned()));
    assert!(reply.json()["message"].as_str().unwrap().contains("ndjson"));
    let batch = api
        .sql(&json!([{"q": "select rows 60 1000"}, {"q": "select rows 60 1000"}]))
        .await;
    assert_eq!(batch.error(), (413, "PAYLOAD_TOO_LARGE".to_owned()));
    let streamed = api.sql(&json!({"q": rows, "output_format": "csv"})).await;
    assert_eq!(
        (streamed.status.as_u16(), streamed.text().lines().count()),
        (200, 201)
    );
}

#[tokio::test]
async fn large_bodies_and_responses_share_what_memory_there_is() {
    let api = Api::limited(Limits {
        memory: 7_000_000,
        ..Limits::default()
    })
    .await;
    let response = api.sql(&json!({"q": "select rows 2000 1000"})).await;
    assert_eq!(response.error(), (429, "TOO_MANY_REQUESTS".to_owned()));
    assert_eq!(response.header("retry-after"), "1");
    let large =
        json!({"q": format!("insert -- {}", "x".repeat(900_000)), "id": "y".repeat(400_000)});
    assert_eq!(
        api.sql(&large).await.error(),
        (429, "TOO_MANY_REQUESTS".to_owned())
    );
    // The memory was freed, so the next response fits. A streamed response takes none.
    assert_eq!(
        api.sql(&json!({"q": "select rows 700 1000"})).await.status,
        200
    );
    let streamed = json!({"q": "select rows 2000 1000", "output_format": "csv"});
    assert_eq!(api.sql(&streamed).await.status, 200);
}

#[tokio::test]
async fn a_statement_without_columns_is_answered_in_json() {
    let api = Api::start().await;
    for format in ["csv", "ccsv", "ndjson", "geojson"] {
        let body = json!({"q": "insert into t values (1)", "output_format": format});
        let response = api.sql(&body).await;
        let expected = r#"{"schema":{},"data":[],"affected_rows":1}"#;
        assert_eq!(response.text(), expected, "{format}");
        let kind = response.header("content-type");
        assert_eq!(kind, "application/json; charset=utf-8", "{format}");
        assert_eq!(response.header("content-disposition"), "", "{format}");
    }
}

#[tokio::test]
async fn a_format_for_files_that_was_asked_for_by_name_names_a_file() {
    let api = Api::start().await;
    let body = |format: &str| json!({"q": "select rows 2 3", "output_format": format});
    for (format, name) in [
        ("csv", "attachment; filename=\"data.csv\""),
        ("ccsv", "attachment; filename=\"data.csv\""),
        ("ndjson", "attachment; filename=\"data.ndjson\""),
        ("geojson", "attachment; filename=\"data.geojson\""),
        ("json", ""),
    ] {
        let response = api.sql(&body(format)).await;
        assert_eq!(response.status, 200, "{}", response.text());
        assert_eq!(response.header("content-disposition"), name, "{format}");
    }
    let rows = json!({"q": "select rows 2 3"});
    let response = api.sql_with("accept", "text/csv", &rows).await;
    assert_eq!(response.header("content-type"), "text/csv; charset=utf-8");
    assert_eq!(response.header("content-disposition"), "");
}

#[tokio::test]
async fn a_large_response_is_whole() {
    let api = Api::start().await;
    let response = api.sql(&json!({"q": "select rows 3000 1000"})).await;
    let rows = response.json()["data"].as_array().unwrap().len();
    assert_eq!(rows, 3_000);
}

#[tokio::test]
async fn schemas_are_described_one_or_all() {
    let api = Api::start().await;
    let public = r#"{"name":"public","tables":[]}"#;
    for path in [
        "/api/v4/sql/schema",
        "/api/v4/sql/schema/",
        "/api/v4/sql/schema?schema=",
    ] {
        let response = api.get(path).await;
        assert_eq!(
            (response.status.as_u16(), response.text()),
            (200, &*format!("[{public}]")),
            "{path}"
        );
        assert_eq!(
            response.header("content-type"),
            "application/json; charset=utf-8"
        );
    }
    for path in [
        "/api/v4/sql/schema/public",
        "/api/v4/sql/schema?schema=public",
    ] {
        let response = api.get(path).await;
        assert_eq!(
            (response.status.as_u16(), response.text()),
            (200, public),
            "{path}"
        );
    }
    let response = api.get("/api/v4/sql/schema?schema=%").await;
    assert_eq!(response.error(), (400, "INPUT_VALIDATION_ERROR".to_owned()));
}
