//! Tests the common rules (API.md, "Common rules") for every path in the OpenAPI document.

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::resource_metadata::challenge;
use crate::service::{TextResponse, demo};

/// The paths of pages, whose responses are meant for browsers.
const PAGES: [&str; 8] = [
    "/auth",
    "/device",
    "/signup",
    "/signout",
    "/account",
    "/reset",
    "/signin",
    "/console/sign-in",
];

/// The paths that need no token.
const OPEN: [&str; 7] = [
    "/api/v4/sql",
    "/api/v4/call",
    "/api/v4/rpc",
    "/api/v4/oauth",
    "/api/v4/openapi.json",
    "/api/v4/events",
    "/api/graphql",
];

fn is_page(path: &str) -> bool {
    PAGES.iter().any(|page| path.starts_with(page))
}

/// Whether the response of a path ends only when the client disconnects.
fn is_endless(path: &str) -> bool {
    path.starts_with("/api/v4/events")
}

/// The method and path of every operation, with names inserted into the path.
async fn operations() -> Vec<(Method, String)> {
    let path = "/api/v4/openapi.json";
    let document = demo().ask(Method::GET, path, None, None).await.json();
    let mut operations = Vec::new();
    for (template, item) in document["paths"].as_object().unwrap() {
        let mut path = template.replace("{schema}", "public");
        path = path
            .replace("{table}", "artists")
            .replace("{database}", "demo");
        while let (Some(from), Some(to)) = (path.find('{'), path.find('}')) {
            path.replace_range(from..=to, "nobody");
        }
        let methods = item.as_object().unwrap().keys();
        for method in methods.filter(|name| *name != "parameters") {
            let method = method.to_uppercase().parse().unwrap();
            operations.push((method, path.clone()));
        }
    }
    assert!(operations.len() > 50, "{operations:?}");
    operations
}

fn request((method, path): &(Method, String)) -> RequestBuilder {
    let request = demo().request(method.clone(), path);
    match *method {
        Method::POST | Method::PATCH => request.json(&json!({})),
        _ => request,
    }
}

/// Whether there is whitespace outside of strings.
fn has_blanks(text: &str) -> bool {
    let (mut inside, mut escaped) = (false, false);
    text.chars().any(|character| {
        match character {
            _ if escaped => escaped = false,
            '\\' if inside => escaped = true,
            '"' => inside = !inside,
            _ => {}
        }
        !inside && character.is_whitespace()
    })
}

#[tokio::test]
async fn every_response_has_an_id_and_every_json_response_is_compact() {
    let owner = demo().cached_token("demo").await;
    let mut documents = 0;
    for operation in operations().await {
        // Operations that would end the owner's sessions are called without a token.
        let tokens = match operation.0 {
            Method::GET => vec![None, Some(&owner)],
            _ => vec![None],
        };
        for token in tokens {
            let mut asked = request(&operation).header("x-request-id", "sweep-1");
            if let Some(token) = token {
                asked = asked.bearer_auth(token);
            }
            let response = asked.send().await.unwrap();
            let headers = response.headers().clone();
            assert_eq!(headers["x-request-id"], "sweep-1", "{operation:?}");
            let kind = headers
                .get("content-type")
                .map(|kind| kind.to_str().unwrap());
            let Some(kind) = kind.filter(|kind| kind.contains("json")) else {
                continue;
            };
            documents += 1;
            let graphql = operation.1.starts_with("/api/graphql");
            let known = ["application/json; charset=utf-8"];
            let known = known.contains(&kind) || (graphql && kind.ends_with("charset=utf-8"));
            assert!(known, "{operation:?} {kind}");
            let text = response.text().await.unwrap();
            assert!(!has_blanks(&text), "{operation:?} {text}");
        }
    }
    assert!(documents > 40, "{documents}");
}

#[tokio::test]
async fn a_trailing_slash_means_nothing_on_any_path() {
    let owner = demo().cached_token("demo").await;
    for operation in operations().await {
        // `/` is left as it is, because `//` is another path.
        let is_root = operation.1 == "/";
        if operation.0 == Method::DELETE || is_endless(&operation.1) || is_root {
            continue;
        }
        for token in [None, Some(&owner)] {
            if token.is_some() && operation.0 != Method::GET {
                continue;
            }
            let slashed = (operation.0.clone(), format!("{}/", operation.1));
            let mut responses = Vec::new();
            for operation in [&operation, &slashed] {
                let mut asked = request(operation);
                if let Some(token) = token {
                    asked = asked.bearer_auth(token);
                }
                let response = TextResponse::of(asked).await;
                let code = serde_json::from_str::<Value>(&response.text).unwrap_or_default();
                responses.push((
                    response.status,
                    response.header("content-type").to_owned(),
                    code["errorCode"].clone(),
                ));
            }
            assert_eq!(responses[0], responses[1], "{slashed:?}");
        }
    }
}

#[tokio::test]
async fn any_origin_may_read_every_response_but_the_pages() {
    for operation in operations().await {
        let asked = request(&operation).header("origin", "https://app.example");
        let response = asked.send().await.unwrap();
        let headers = response.headers();
        let allowed = headers.get("access-control-allow-origin");
        let allowed = allowed.map(|origin| origin.to_str().unwrap());
        let expected = (!is_page(&operation.1)).then_some("*");
        assert_eq!(allowed, expected, "{operation:?}");
        let credentials = "access-control-allow-credentials";
        assert!(!headers.contains_key(credentials), "{operation:?}");
        let (method, path) = operation;
        let preflight = demo().request(Method::OPTIONS, &path);
        let preflight = preflight
            .header("origin", "https://app.example")
            .header("access-control-request-method", method.as_str());
        let preflight = TextResponse::of(preflight).await;
        assert_eq!(preflight.status, 204, "{path}");
        let allowed = preflight.header("access-control-allow-origin");
        assert_eq!(allowed, expected.unwrap_or_default(), "{path}");
    }
}

#[tokio::test]
async fn operations_that_are_not_public_need_a_token() {
    let mut closed = 0;
    for operation in operations().await {
        let (method, path) = &operation;
        if !path.starts_with("/api/") {
            continue;
        }
        let dry = path == "/api/v4/call/dry";
        if !dry && OPEN.iter().any(|open| path.starts_with(open)) {
            continue;
        }
        closed += 1;
        let response = TextResponse::of(request(&operation)).await;
        let error = response.error();
        assert_eq!(error, (401, "MISSING_TOKEN".to_owned()), "{method} {path}");
        // The header has no `error`, because nothing in the request was wrong (RFC 6750, section
        // 3.1).
        assert_eq!(
            response.header("www-authenticate"),
            challenge(&demo().url, ""),
            "{method} {path}"
        );
        let bad = TextResponse::of(request(&operation).bearer_auth("x.y.z")).await;
        let error = bad.error();
        assert_eq!(error, (401, "INVALID_TOKEN".to_owned()), "{method} {path}");
        assert_eq!(
            bad.header("www-authenticate"),
            challenge(&demo().url, "invalid_token"),
            "{method} {path}"
        );
    }
    assert!(closed > 15, "{closed}");
}

#[tokio::test]
async fn a_bad_token_is_refused_where_none_is_needed() {
    // These paths ignore a token: a grant, a document, and a path that always runs as the default
    // user.
    let blind = [
        "/api/v4/oauth",
        "/api/v4/openapi.json",
        "/api/v4/sql/database",
    ];
    let mut refused = 0;
    for operation in operations().await {
        let (method, path) = &operation;
        let open = OPEN.iter().any(|open| path.starts_with(open));
        // A WebSocket needs a handshake, which the module `sockets` tests.
        let socket = path == "/api/v4/events";
        if !open || socket || blind.iter().any(|blind| path.starts_with(blind)) {
            continue;
        }
        for token in ["x.y.z", "x"] {
            let response = request(&operation).bearer_auth(token).send().await.unwrap();
            assert_eq!(response.status(), 401, "{method} {path}");
            assert_eq!(
                response.headers()["www-authenticate"],
                challenge(&demo().url, "invalid_token"),
                "{method} {path}"
            );
            refused += 1;
        }
    }
    assert!(refused > 12, "{refused}");
}

#[tokio::test]
async fn a_content_type_without_a_body_is_no_error() {
    let token = demo().cached_token("demo").await;
    for (method, path, status) in [
        (Method::GET, "/api/v4/users", 200),
        (Method::GET, "/api/v4/methods", 200),
        (Method::GET, "/api/v4/sql/schema/public", 200),
        (Method::GET, "/healthz", 200),
        (Method::DELETE, "/api/v4/users/nobody-here", 404),
        (Method::DELETE, "/api/v4/methods/nothing_here", 404),
        (Method::DELETE, "/api/v4/clients/nothing-here", 404),
    ] {
        for kind in ["application/json", "application/json; charset=utf-8"] {
            let request = demo().request(method.clone(), path).bearer_auth(&token);
            let response = TextResponse::of(request.header("content-type", kind)).await;
            assert_eq!(response.status, status, "{method} {path}: {response:?}");
        }
    }
}

#[tokio::test]
async fn unknown_members_are_refused_by_rest_and_ignored_by_the_protocols() {
    let owner = Some("demo");
    for (method, path, body) in [
        ("POST", "/api/v4/sql", json!({"q": "select 1", "odd": 1})),
        ("POST", "/api/v4/sql", json!([{"q": "select 1", "odd": 1}])),
        (
            "POST",
            "/api/v4/sql/database/demo",
            json!({"q": "select 1", "odd": 1}),
        ),
        (
            "POST",
            "/api/v4/methods",
            json!({"method": "x_odd", "q": "select 1", "odd": 1}),
        ),
        (
            "POST",
            "/api/v4/users",
            json!({"name": "odd", "password": "odd-password", "odd": 1}),
        ),
        (
            "POST",
            "/api/v4/clients",
            json!({"name": "odd", "redirect_uri": ["https://odd.example/"], "odd": 1}),
        ),
        ("PATCH", "/api/v4/users/alice", json!({"odd": 1})),
        ("PATCH", "/api/v4/clients/demo-app", json!({"odd": 1})),
        (
            "PATCH",
            "/api/v4/schemas/public/tables/artists/privileges",
            json!({"subuser": "alice", "privilege": "read", "odd": 1}),
        ),
    ] {
        let refused = demo().rest(owner, (method, path), &body).await;
        let (status, code, message) = refused.error();
        assert_eq!(
            (status, code),
            (400, "INPUT_VALIDATION_ERROR"),
            "{method} {path}"
        );
        assert!(message.contains("odd"), "{method} {path}: {message}");
    }
    for (path, body) in [
        (
            "/api/v4/oauth",
            json!({
                "grant_type": "password", "username": "demo", "password": "demo1234",
                "client_id": "demo-app", "odd": 1,
            }),
        ),
        (
            "/api/graphql/schema/public",
            json!({"query": "{ __typename }", "odd": 1}),
        ),
    ] {
        let response = demo().rest(owner, ("POST", path), &body).await;
        assert_eq!(response.status, 200, "{path}: {response:?}");
        assert!(response.body.get("errors").is_none(), "{response:?}");
    }
    let call = json!({"jsonrpc": "2.0", "method": "nothing_here", "id": 1, "odd": 1});
    let response = demo().rest(owner, ("POST", "/api/v4/call"), &call).await;
    assert_eq!(response.body["error"]["code"], -32601, "{response:?}");
}

#[tokio::test]
async fn every_sqlstate_has_the_status_of_the_contract() {
    for (sqlstates, status) in [
        (
            &["22012", "22P02", "22023", "23502", "23514", "0A000"][..],
            400,
        ),
        (&["21000", "25001", "3F000", "42601", "42703"], 400),
        (&["42804", "42P07", "44000", "54000", "54001", "P0001"], 400),
        (&["P0002", "MY001", "ZZ999"], 400),
        (&["42P01", "42883"], 404),
        (&["42501", "28000", "28P01"], 403),
        (&["23503", "23505", "23P01", "2BP01", "55P03"], 409),
        (&["23000", "55006"], 409),
        (&["40001", "40P01"], 409),
        (&["25006"], 405),
        (
            &[
                "53000", "53100", "53300", "08000", "08006", "57P01", "57P03",
            ],
            503,
        ),
        (&["XX000", "XX001", "58030", "F0000", "HV000"], 500),
        // The table of errors has 500 for all SQLSTATEs that it does not list. These are errors of
        // callers.
        (
            &[
                "25P01", "25P02", "26000", "34000", "55000", "38000", "39000",
            ],
            400,
        ),
        (&["40002", "40003", "57000"], 500),
    ] {
        for sqlstate in sqlstates {
            let q =
                format!("do $$ begin raise exception 'said' using errcode = '{sqlstate}'; end $$");
            let response = demo().sql(Some("demo"), &json!({"q": q})).await;
            let retry = response.headers().contains_key("retry-after");
            assert_eq!(response.status(), status, "{sqlstate}");
            let error: Value = response.json().await.unwrap();
            assert_eq!(error["sqlstate"], **sqlstate, "{error}");
            // Messages of an unavailable PostgreSQL may name files of the server.
            let ours = "the database is not available";
            let reported = if status == 503 { ours } else { "said" };
            assert_eq!(error["message"], reported, "{error}");
            assert_eq!(retry, status == 503, "{sqlstate}");
            let again = ["40001", "40P01"].contains(sqlstate);
            assert_eq!(
                error.get("retryable"),
                again.then_some(&json!(true)),
                "{error}"
            );
        }
    }
    // An anonymous caller without a privilege is asked for a token.
    let refused = demo().sql(None, &json!({"q": "delete from artists"})).await;
    assert_eq!(refused.status(), 401);
    assert_eq!(
        refused.headers()["www-authenticate"],
        challenge(&demo().url, "")
    );
    let error: Value = refused.json().await.unwrap();
    assert_eq!(error["sqlstate"], "42501", "{error}");
}

#[tokio::test]
async fn an_error_of_postgresql_has_its_members_in_order() {
    let raise = "do $$ begin raise exception 'said' using errcode = '23514', detail = 'more', \
                 hint = 'advice', constraint = 'c', column = 'k', table = 't'; end $$";
    let (_, error) = demo().refusal("demo", &json!({"q": raise})).await;
    let text = error.to_string();
    assert_eq!(
        text,
        concat!(
            r#"{"success":false,"message":"said","code":400,"errorCode":"SQL_ERROR","#,
            r#""sqlstate":"23514","detail":"more","hint":"advice","constraint":"c","#,
            r#""column":"k","table":"t"}"#
        )
    );
    let (_, error) = demo().refusal("demo", &json!({"q": "select albmus"})).await;
    let members: Vec<_> = error.as_object().unwrap().keys().collect();
    let expected = [
        "success",
        "message",
        "code",
        "errorCode",
        "sqlstate",
        "position",
    ];
    assert_eq!(members, expected);
}

#[tokio::test]
async fn no_error_names_a_file_of_the_server() {
    // PostgreSQL's message about a missing file names the folder.
    for (users, q) in [
        (
            &[Some("demo"), Some("alice"), None][..],
            "create extension no_such_extension_4718",
        ),
        (
            &[Some("demo")],
            "create text search dictionary no_such_words \
             (template = simple, stopwords = no_such_words_4718)",
        ),
    ] {
        for user in users {
            let response = demo().sql(*user, &json!({"q": q})).await;
            assert!(response.status().as_u16() >= 400, "{user:?} {q}");
            let text = response.text().await.unwrap();
            let error: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(error["success"], false, "{text}");
            for part in ["/usr", "/share/", "/tsearch_data/", "/extension/"] {
                assert!(!text.contains(part), "{user:?} {q}: {text}");
            }
        }
    }
}
