//! Tests `/api/v4/methods`: defining, showing, changing and dropping (API.md, "Methods").

use reqwest::Method;
use serde_json::{Value, json};

use crate::service::{TextResponse, demo};

pub(crate) const METHODS: &str = "/api/v4/methods";

pub(crate) async fn define(user: &str, definitions: Value) -> TextResponse {
    let body = Some(definitions.to_string());
    demo().ask(Method::POST, METHODS, Some(user), body).await
}

/// Defines methods as the owner. The methods must not exist yet.
pub(crate) async fn defined(definitions: Value) {
    let response = define("demo", definitions).await;
    assert_eq!(response.status, 201, "{response:?}");
}

pub(crate) async fn get(names: &str) -> TextResponse {
    let path = format!("{METHODS}/{names}");
    demo().ask(Method::GET, &path, Some("demo"), None).await
}

pub(crate) async fn patch(user: &str, names: &str, change: Value) -> TextResponse {
    let path = format!("{METHODS}/{names}");
    let body = Some(change.to_string());
    demo().ask(Method::PATCH, &path, Some(user), body).await
}

pub(crate) async fn delete(user: &str, names: &str) -> TextResponse {
    let path = format!("{METHODS}/{names}");
    demo().ask(Method::DELETE, &path, Some(user), None).await
}

#[tokio::test]
async fn defining_answers_201_with_links_and_runs_nothing() {
    let one = define(
        "demo",
        json!({"method": "m_one", "q": "insert into no_such_table values (:a)"}),
    )
    .await;
    assert_eq!(
        (one.status, one.header("location")),
        (201, "/api/v4/methods/m_one")
    );
    assert_eq!(
        one.header("content-type"),
        "application/json; charset=utf-8"
    );
    assert_eq!(one.text, r#"[{"_links":{"self":"/api/v4/methods/m_one"}}]"#);
    let two = define(
        "demo",
        json!([{"method": "m_two", "q": "select 1"}, {"method": "m_three", "q": "select 2"}]),
    )
    .await;
    assert_eq!(
        (two.status, two.header("location")),
        (201, "/api/v4/methods/m_two,m_three")
    );
    assert_eq!(
        two.text,
        r#"[{"_links":{"self":"/api/v4/methods/m_two"}},{"_links":{"self":"/api/v4/methods/m_three"}}]"#
    );
}

#[tokio::test]
async fn a_name_has_up_to_128_characters() {
    let longest = format!("m_{}.-9Z", "x".repeat(122));
    assert_eq!(longest.len(), 128);
    for name in [&*longest, "_", "m"] {
        let response = define("demo", json!({"method": name, "q": "select 1"})).await;
        assert_eq!(response.status, 201, "{response:?}");
        assert_eq!(get(name).await.json()["method"], name);
        assert_eq!(delete("demo", name).await.status, 204);
    }
}

#[tokio::test]
async fn a_definition_posted_to_sql_is_one_too() {
    let response = demo()
        .sql(
            Some("alice"),
            &json!({"method": "m_by_sql", "q": "select :x::int as x", "type_hints": {"x": "int"}}),
        )
        .await;
    assert_eq!(response.status(), 201);
    assert_eq!(response.headers()["location"], "/api/v4/methods/m_by_sql");
    let shown = get("m_by_sql").await.json();
    assert_eq!(shown["type_hints"], json!({"x": "int"}));
    let several = json!([
        {"method": "m_by_sql_1", "q": "select 1"}, {"method": "m_by_sql_2", "q": "select 2"},
    ]);
    let response = demo().sql(Some("alice"), &several).await;
    assert_eq!(response.status(), 201);
    assert_eq!(
        response.headers()["location"],
        "/api/v4/methods/m_by_sql_1,m_by_sql_2"
    );
    assert_eq!(get("m_by_sql_2").await.json()["q"], "select 2");
    let anonymous = demo()
        .sql(None, &json!({"method": "m_by_nobody", "q": "select 1"}))
        .await;
    assert_eq!(anonymous.status(), 401);
}

#[tokio::test]
async fn a_method_is_shown_with_all_members_in_their_order() {
    defined(json!({
        "method": "m_shown", "q": "select :d::date as d",
        "type_hints": {"d": "date"}, "type_formats": {"d": "d.m.Y"}, "output_format": "csv",
    }))
    .await;
    defined(json!({"method": "m_bare", "q": "select 1 as n"})).await;
    let (full, bare) = (
        r#"{"q":"select :d::date as d","method":"m_shown","type_hints":{"d":"date"},"type_formats":{"d":"d.m.Y"},"output_format":"csv","input_schema":null,"output_schema":null}"#,
        r#"{"q":"select 1 as n","method":"m_bare","type_hints":null,"type_formats":null,"output_format":null,"input_schema":null,"output_schema":null}"#,
    );
    assert_eq!(get("m_shown").await.text, full);
    assert_eq!(
        get("m_shown/").await.text,
        full,
        "a trailing slash means nothing"
    );
    for names in ["m_shown,m_bare", "m_shown%2Cm_bare", "m_shown%2cm_bare/"] {
        assert_eq!(get(names).await.text, format!("[{full},{bare}]"), "{names}");
    }
    let missing = get("m_shown,m_missing").await;
    assert_eq!(missing.error(), (404, "NOT_FOUND".to_owned()));
    assert!(missing.text.contains("m_missing"), "{}", missing.text);
}

#[tokio::test]
async fn the_list_is_ordered_by_name() {
    defined(json!([
        {"method": "m_order.b", "q": "select 1"},
        {"method": "m_order-a", "q": "select 1"},
        {"method": "M_order", "q": "select 1"},
    ]))
    .await;
    let list = demo()
        .ask(Method::GET, "/api/v4/methods/", Some("alice"), None)
        .await;
    let list = list.json();
    let names: Vec<_> = list
        .as_array()
        .unwrap()
        .iter()
        .map(|m| m["method"].as_str().unwrap())
        .collect();
    let mut sorted = names.clone();
    sorted.sort_unstable();
    assert_eq!(names, sorted);
    for name in ["M_order", "m_order-a", "m_order.b"] {
        assert!(names.contains(&name), "{name}");
    }
}

#[tokio::test]
async fn a_name_that_is_taken_is_a_conflict_and_nothing_is_defined() {
    defined(json!({"method": "m_taken", "q": "select 1"})).await;
    for definitions in [
        json!({"method": "m_taken", "q": "select 2"}),
        json!([{"method": "m_free", "q": "select 1"}, {"method": "m_taken", "q": "select 1"}]),
        json!([{"method": "m_free", "q": "select 1"}, {"method": "m_free", "q": "select 2"}]),
    ] {
        let response = define("alice", definitions).await;
        assert_eq!(response.error(), (409, "ALREADY_EXISTS".to_owned()));
    }
    assert_eq!(get("m_free").await.status, 404);
    assert_eq!(get("m_taken").await.json()["q"], "select 1");
}

#[tokio::test]
async fn a_wrong_definition_is_named() {
    let cases = [
        (
            json!({"method": "m_wrong", "q": "select 1", "params": {}}),
            400,
            "params",
        ),
        (
            json!({"method": "m_wrong", "q": "select 1", "colour": 1}),
            400,
            "colour",
        ),
        (json!({"method": "m_wrong"}), 400, "`q`"),
        (json!({"q": "select 1"}), 400, "method"),
        (json!({"method": "m_wrong", "q": ""}), 400, "statement"),
        (
            json!({"method": "m_wrong", "q": " -- nothing\n"}),
            400,
            "statement",
        ),
        (json!({"method": "m_wrong", "q": 1}), 400, "`q`"),
        (json!({"method": 1, "q": "select 1"}), 400, "method"),
        (json!({"method": "", "q": "select 1"}), 400, "method"),
        (json!({"method": "1m", "q": "select 1"}), 400, "method"),
        (json!({"method": "rpc.mine", "q": "select 1"}), 400, "rpc."),
        (json!({"method": "a b", "q": "select 1"}), 400, "method"),
        (json!({"method": "é", "q": "select 1"}), 400, "method"),
        (
            json!({"method": "m".repeat(129), "q": "select 1"}),
            400,
            "method",
        ),
        (
            json!({"method": "m_wrong", "q": "select 1", "type_hints": [1]}),
            400,
            "type_hints",
        ),
        (
            json!({"method": "m_wrong", "q": "select 1", "type_hints": {"a": 1}}),
            400,
            "type_hints",
        ),
        (
            json!({"method": "m_wrong", "q": "select 1", "type_formats": "Y"}),
            400,
            "type_formats",
        ),
        (
            json!({"method": "m_wrong", "q": "select 1", "output_format": "geojson"}),
            400,
            "output_format",
        ),
        (
            json!({"method": "m_wrong", "q": "select 1; select 2"}),
            400,
            "one statement",
        ),
        (json!({"method": "m_wrong", "q": "commit"}), 403, ""),
        (
            json!({"method": "m_wrong", "q": "copy albums to stdout"}),
            403,
            "",
        ),
        (json!({"method": "m_wrong", "q": "set role alice"}), 403, ""),
        (
            json!([{"method": "m_wrong", "q": "select 1"}, {"method": "n", "q": "listen x"}]),
            403,
            "[1]",
        ),
        (
            json!([{"method": "m_wrong", "q": "select 1"}, 7]),
            400,
            "[1]",
        ),
        (json!([]), 400, ""),
        (json!(7), 400, ""),
    ];
    for (body, status, part) in cases {
        let response = define("demo", body.clone()).await;
        let code = if status == 403 {
            "STATEMENT_NOT_ALLOWED"
        } else {
            "INPUT_VALIDATION_ERROR"
        };
        assert_eq!(
            response.error(),
            (status, code.to_owned()),
            "{body}: {}",
            response.text
        );
        assert!(response.text.contains(part), "{body}: {}", response.text);
    }
    let no_json = Some("{\"method\"".to_owned());
    let response = demo()
        .ask(Method::POST, METHODS, Some("demo"), no_json)
        .await;
    assert_eq!(response.error(), (400, "INVALID_JSON".to_owned()));
    assert_eq!(get("m_wrong").await.status, 404, "nothing of it is defined");
}

#[tokio::test]
async fn a_syntax_error_is_accepted_and_named_by_a_dry_run() {
    defined(json!({"method": "m_syntax", "q": "selekt 1"})).await;
    let body = Some(json!({"jsonrpc": "2.0", "method": "m_syntax", "id": 1}).to_string());
    let response = demo()
        .ask(Method::POST, "/api/v4/call/dry", Some("demo"), body)
        .await;
    let error = &response.json()["error"];
    assert_eq!(
        (&error["code"], &error["data"]["sqlstate"]),
        (&json!(-32603), &json!("42601"))
    );
}

#[tokio::test]
async fn a_patch_changes_what_it_names_and_null_clears() {
    defined(json!({
        "method": "m_patch", "q": "select :d::date as d", "type_hints": {"d": "date"},
        "type_formats": {"d": "Y"}, "output_format": "csv",
    }))
    .await;
    let response = patch(
        "demo",
        "m_patch",
        json!({"type_formats": null, "output_format": "ndjson"}),
    )
    .await;
    assert_eq!(
        (response.status, response.header("location")),
        (303, "/api/v4/methods/m_patch")
    );
    assert_eq!(
        response.text,
        r#"[{"_links":{"self":"/api/v4/methods/m_patch"}}]"#
    );
    let shown = get("m_patch").await.json();
    assert_eq!(shown["type_formats"], Value::Null);
    assert_eq!(shown["output_format"], "ndjson");
    assert_eq!(shown["type_hints"], json!({"d": "date"}));

    let bare = json!({"type_hints": null, "output_format": null});
    assert_eq!(patch("demo", "m_patch/", bare).await.status, 303);
    let shown = get("m_patch").await.json();
    assert_eq!(shown["type_hints"], Value::Null);
    assert_eq!(shown["output_format"], Value::Null);
    assert_eq!(shown["q"], "select :d::date as d", "what is left out stays");

    let renamed = patch("demo", "m_patch", json!({"method": "m_patched"})).await;
    assert_eq!(
        (renamed.status, renamed.header("location")),
        (303, "/api/v4/methods/m_patched")
    );
    assert_eq!(get("m_patch").await.status, 404);

    defined(json!({"method": "m_other", "q": "select 1"})).await;
    let onto = patch("demo", "m_other", json!({"method": "m_patched"})).await;
    assert_eq!(onto.error(), (409, "ALREADY_EXISTS".to_owned()));
    let both = patch(
        "demo",
        "m_other%2Cm_patched",
        json!({"output_format": "json"}),
    )
    .await;
    assert_eq!(both.header("location"), "/api/v4/methods/m_other,m_patched");
    assert_eq!(get("m_other").await.json()["output_format"], "json");
    for wrong in [
        json!({"q": null}),
        json!({"method": null}),
        json!({"colour": 1}),
        json!({"method": "rpc.mine"}),
        json!({"params": {}}),
        json!({"q": ""}),
        json!([]),
    ] {
        let response = patch("demo", "m_other", wrong.clone()).await;
        assert_eq!(
            response.error(),
            (400, "INPUT_VALIDATION_ERROR".to_owned()),
            "{wrong}"
        );
    }
    let one_name = patch("demo", "m_other,m_patched", json!({"method": "m_x"})).await;
    assert_eq!(one_name.error(), (400, "INPUT_VALIDATION_ERROR".to_owned()));
    assert_eq!(
        patch("demo", "m_missing", json!({})).await.error(),
        (404, "NOT_FOUND".to_owned())
    );
}

#[tokio::test]
async fn deleting_is_all_or_none() {
    defined(json!([{"method": "m_del1", "q": "select 1"}, {"method": "m_del2", "q": "select 1"}]))
        .await;
    let missing = delete("demo", "m_del1,m_del_missing").await;
    assert_eq!(missing.error(), (404, "NOT_FOUND".to_owned()));
    assert_eq!(get("m_del1").await.status, 200);
    let gone = delete("demo", "m_del1%2Cm_del2").await;
    assert_eq!((gone.status, &*gone.text), (204, ""));
    assert_eq!(get("m_del1").await.status, 404);
    assert_eq!(get("m_del2").await.status, 404);
}
