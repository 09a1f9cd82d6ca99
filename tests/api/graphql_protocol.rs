//! Tests the transport of GraphQL over HTTP (API.md, "Protocol"). The audits of the specification's
//! authors are in tests/clients.

use reqwest::Method;
use serde_json::json;

use crate::graphql::{PUBLIC, ask, code, run};
use crate::service::{TextResponse, demo, eventually};

async fn post(accept: Option<&str>, body: &str) -> TextResponse {
    let mut request = demo()
        .request(Method::POST, PUBLIC)
        .header("content-type", "application/json")
        .body(body.to_owned());
    if let Some(accept) = accept {
        request = request.header("accept", accept);
    }
    TextResponse::of(request).await
}

#[tokio::test]
async fn the_media_type_decides_over_the_status() {
    const RESPONSE: &str = "application/graphql-response+json";
    let cases = [
        (r#"{"query":"{ __typename }"}"#, 200, 200),
        (r#"{"query":"{"}"#, 200, 400),
        (r#"{"query":"{ nothing }"}"#, 200, 400),
        (
            r#"{"query":"query($i: Int!) { getArtists(limit: $i) { id } }"}"#,
            200,
            400,
        ),
        (
            r#"{"query":"query($i: Int) { getArtists(limit: $i) { id } }","variables":{"i":"x"}}"#,
            200,
            400,
        ),
        (
            r#"{"query":"{ __typename }","operationName":"x"}"#,
            200,
            400,
        ),
        // The request is valid and was executed; only a value is wrong.
        (
            r#"{"query":"{ getArtists(where: {nothing: 1}) { id } }"}"#,
            200,
            200,
        ),
        (r#"{"variables":{}}"#, 400, 400),
        (r#"{"query":1}"#, 400, 400),
        (r#"{"query":"{ __typename }","variables":[]}"#, 400, 400),
        (r#"{"query":"{ __typename }","extensions":1}"#, 400, 400),
        (r#""{ __typename }""#, 400, 400),
        ("{", 400, 400),
        ("[]", 400, 400),
    ];
    for (body, plain, response) in cases {
        for (accept, status, media) in [
            (None, plain, "application/json; charset=utf-8"),
            (Some("*/*"), plain, "application/json; charset=utf-8"),
            (
                Some(RESPONSE),
                response,
                "application/graphql-response+json; charset=utf-8",
            ),
        ] {
            let reply = post(accept, body).await;
            assert_eq!(reply.status, status, "{body} {accept:?}: {reply:?}");
            assert_eq!(reply.header("content-type"), media, "{body}");
            let body = reply.json();
            assert!(body.get("data").is_some() || body["errors"][0]["message"].is_string());
            assert!(reply.status == 200 || body.get("data").is_none(), "{body}");
        }
    }
    assert_eq!(post(Some("text/csv"), "{}").await.status, 406);
}

#[tokio::test]
async fn null_members_are_absent_and_unknown_ones_mean_nothing() {
    let body = r#"{"query":"{ __typename }","variables":null,"operationName":null,"extensions":null,"more":1}"#;
    assert_eq!(
        post(None, body).await.text,
        r#"{"data":{"__typename":"Query"}}"#
    );
}

#[tokio::test]
async fn errors_before_the_protocol_have_its_shape() {
    let query = Some(r#"{"query":"{ __typename }"}"#.to_owned());
    for unknown in ["nothing", "%00", "public%00"] {
        let path = format!("/api/graphql/schema/{unknown}");
        let response = demo()
            .ask(Method::POST, &path, Some("demo"), query.clone())
            .await;
        let code = response.json()["errors"][0]["extensions"]["code"].clone();
        assert_eq!((response.status, code), (404, json!("BAD_USER_INPUT")));
    }

    let request = demo()
        .request(Method::POST, PUBLIC)
        .bearer_auth("not.a.token");
    let response = TextResponse::of(request.json(&json!({"query": "{ __typename }"}))).await;
    assert_eq!(
        (
            response.status,
            response.json()["errors"][0]["extensions"]["code"].as_str()
        ),
        (401, Some("UNAUTHENTICATED"))
    );
    assert!(
        response
            .header("www-authenticate")
            .contains("invalid_token")
    );

    let request = demo()
        .request(Method::POST, PUBLIC)
        .header("tidegate-database", "no_such_database");
    let response = TextResponse::of(request.json(&json!({"query": "{ __typename }"}))).await;
    assert_eq!(response.status, 401);
    assert!(response.json()["errors"].is_array());

    let request = demo()
        .request(Method::POST, PUBLIC)
        .header("content-type", "text/plain");
    let response = TextResponse::of(request.body("{ __typename }")).await;
    assert_eq!(response.status, 415);
    assert!(response.json()["errors"].is_array());

    let response = demo().ask(Method::PUT, PUBLIC, None, query).await;
    assert_eq!(
        (response.status, response.header("allow")),
        (405, "GET, HEAD, POST, OPTIONS")
    );
    assert!(response.json()["errors"].is_array());
}

#[tokio::test]
async fn get_reads_and_does_not_write() {
    let get = |query: &str| {
        let path = format!("{PUBLIC}?{query}");
        async move { demo().ask(Method::GET, &path, Some("demo"), None).await }
    };
    let response = get("query=query(%24l:Int)%7BgetArtists(limit:%24l)%7B__typename%7D%7D&variables=%7B%22l%22:1%7D").await;
    assert_eq!(
        (response.status, &*response.text),
        (200, r#"{"data":{"getArtists":[{"__typename":"Artists"}]}}"#)
    );
    let response =
        get("query=query+A%7Ba:__typename%7D+query+B%7Bb:__typename%7D&operationName=B").await;
    assert_eq!(response.text, r#"{"data":{"b":"Query"}}"#);
    let response = get("query=mutation%7BdeletePlaylists(id:0)%7Bid%7D%7D").await;
    assert_eq!(
        (response.status, response.header("allow")),
        (405, "POST, OPTIONS")
    );
    for bad in [
        "",
        "variables=%7B%7D",
        "query=%7B__typename%7D&variables=1",
        "query=%zz",
    ] {
        assert_eq!(get(bad).await.status, 400, "{bad}");
    }
}

#[tokio::test]
async fn an_array_is_a_request_each() {
    let body = r#"[{"query":"{ a: __typename }"},{"query":"{"},5,{"query":"mutation { deletePlaylists(id: 0) { id } }"}]"#;
    let response = demo()
        .ask(Method::POST, PUBLIC, Some("demo"), Some(body.to_owned()))
        .await;
    assert_eq!(response.status, 200);
    let body = response.json();
    assert_eq!(body[0], json!({"data": {"a": "Query"}}));
    assert_eq!(
        body[1]["errors"][0]["extensions"]["code"],
        "GRAPHQL_PARSE_FAILED"
    );
    assert_eq!(body[2]["errors"][0]["extensions"]["code"], "BAD_USER_INPUT");
    assert_eq!(body[3], json!({"data": {"deletePlaylists": []}}));

    let many = format!("[{}]", vec![r#"{"query":"{ __typename }"}"#; 51].join(","));
    assert_eq!(post(None, &many).await.status, 400);
}

#[tokio::test]
async fn anonymous_callers_read_as_the_default_user_and_see_no_mutations() {
    // Other tests let the default user write to tables of the schema public.
    let sql = "create schema if not exists gql_readable; \
        create table if not exists gql_readable.things (id int primary key); \
        grant usage on schema gql_readable to \"demo/guest\"; \
        grant select on gql_readable.things to \"demo/guest\"";
    run(sql).await;
    let query = "{ getThings { __typename } __schema { mutationType { name } } }";
    let expected = json!({"getThings": [], "__schema": {"mutationType": null}});
    eventually("the schema gql_readable", || async {
        let body = json!({"query": query}).to_string();
        let path = "/api/graphql/schema/gql_readable";
        let response = demo().ask(Method::POST, path, None, Some(body)).await;
        response.json()["data"] == expected
    })
    .await;
    let response = ask(
        None,
        "mutation { insertArtists(data: {name: \"x\"}) { id } }",
        json!({}),
    )
    .await;
    assert_eq!(
        response["errors"][0]["extensions"]["code"],
        "GRAPHQL_VALIDATION_FAILED"
    );
    // The user alice may write playlists and nothing else.
    let response = ask(
        Some("alice"),
        "{ __type(name: \"Mutation\") { fields { name } } }",
        json!({}),
    )
    .await;
    let fields = response["data"]["__type"]["fields"].as_array().unwrap();
    let names: Vec<_> = fields
        .iter()
        .map(|field| field["name"].as_str().unwrap())
        .collect();
    assert!(names.contains(&"insertPlaylists"), "{names:?}");
    assert!(!names.contains(&"insertArtists"), "{names:?}");
}

#[tokio::test]
async fn a_browser_gets_a_page_that_needs_no_other_host() {
    let request = demo().request(Method::GET, PUBLIC);
    let accept = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
    let response = TextResponse::of(request.header("accept", accept)).await;
    assert_eq!(response.status, 200);
    assert_eq!(response.header("content-type"), "text/html; charset=utf-8");
    let policy = response.header("content-security-policy");
    assert!(
        policy.starts_with("default-src 'none'; connect-src 'self';"),
        "{policy}"
    );
    assert!(!response.text.contains("http://") && !response.text.contains("https://"));
}

#[tokio::test]
async fn the_schema_is_to_be_had_as_text() {
    let path = format!("{PUBLIC}/sdl");
    let response = demo().ask(Method::GET, &path, Some("demo"), None).await;
    assert_eq!(response.status, 200);
    assert_eq!(response.header("content-type"), "text/plain; charset=utf-8");
    assert!(
        response
            .text
            .contains("type Albums {\n  id: ID!\n  artist_id: Int!\n"),
        "{}",
        response.text
    );
}

#[tokio::test]
async fn documents_that_are_too_large_run_nothing() {
    let roots: Vec<_> = (0..21)
        .map(|n| format!("a{n}: getArtists(limit: 1) {{ id }}"))
        .collect();
    let roots = roots.join(" ");
    let fields: Vec<_> = (0..1_001).map(|n| format!("a{n}: id")).collect();
    let fields = fields.join(" ");
    let deep = format!("{}id{}", "albums { artists { ".repeat(8), " } }".repeat(8));
    for query in [
        format!("{{ {roots} }}"),
        format!("{{ getArtists {{ {fields} }} }}"),
        format!("{{ getArtists {{ {deep} }} }}"),
    ] {
        assert_eq!(code("demo", &query, json!({})).await, "TOO_COMPLEX");
    }
    let cyclic = "{ getArtists { ...f } } fragment f on Artists { albums { artists { ...f } } }";
    assert_eq!(
        code("demo", cyclic, json!({})).await,
        "GRAPHQL_VALIDATION_FAILED"
    );
    let large = format!(
        "{{ getArtists(where: {{name: \"{}\"}}) {{ id }} }}",
        "x".repeat(1 << 20)
    );
    assert_eq!(code("demo", &large, json!({})).await, "TOO_COMPLEX");
}

#[tokio::test]
async fn null_parameters_of_an_address_are_absent() {
    let path = format!(
        "{PUBLIC}?query=%7B__typename%7D&variables=null&operationName=&extensions=null&more=1"
    );
    let response = demo().ask(Method::GET, &path, Some("demo"), None).await;
    assert_eq!(
        (response.status, &*response.text),
        (200, r#"{"data":{"__typename":"Query"}}"#)
    );
    // A query that is null counts as missing, whatever the media type.
    let response = post(None, r#"{"query":null}"#).await;
    assert_eq!(response.status, 400, "{response:?}");
    let body = response.json();
    let message = body["errors"][0]["message"].as_str().unwrap();
    assert!(message.contains("`query` is missing"), "{message}");
}
