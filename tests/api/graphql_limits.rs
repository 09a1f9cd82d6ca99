//! Tests the limits of a GraphQL request, by default and by settings (API.md, "Limits of GraphQL").

use std::fmt::Write as _;

use reqwest::Method;
use serde_json::{Value, json};

use crate::graphql::PUBLIC;
use crate::service::{Service, TextResponse, demo, demo_folder};

pub(crate) async fn ask(service: &Service, query: &str) -> Value {
    let body = json!({"query": query}).to_string();
    let response = service
        .ask(Method::POST, PUBLIC, Some("demo"), Some(body))
        .await;
    assert_eq!(response.status, 200, "{response:?}");
    response.json()
}

/// The code of a document that is refused before anything runs.
pub(crate) async fn code(service: &Service, query: &str) -> Option<String> {
    let response = ask(service, query).await;
    let code = response["errors"][0]["extensions"]["code"].as_str();
    assert!(code.is_none() || response["data"].is_null(), "{response}");
    code.map(str::to_owned)
}

/// A query with nested selections: `getArtists`, then alternately albums and artists.
fn deep(levels: usize) -> String {
    let steps = levels - 1;
    let open: String = (1..steps)
        .map(|at| {
            if at % 2 == 1 {
                "albums { "
            } else {
                "artists { "
            }
        })
        .collect();
    format!(
        "{{ getArtists(limit: 1) {{ {open} id {} }} }}",
        " }".repeat(steps - 1)
    )
}

fn wide(fields: usize) -> String {
    let names: Vec<_> = (0..fields - 1).map(|at| format!("f{at}: id")).collect();
    format!("{{ getArtists(limit: 1) {{ {} }} }}", names.join(" "))
}

fn many(roots: usize) -> String {
    let names: Vec<_> = (0..roots)
        .map(|at| format!("r{at}: getArtists(limit: 1) {{ id }}"))
        .collect();
    format!("{{ {} }}", names.join(" "))
}

fn long(bytes: usize) -> String {
    let query = "{ getArtists(limit: 1) { id } }";
    format!("{query}{}", " ".repeat(bytes - query.len()))
}

async fn bounds(service: &Service, [depth, fields, roots, document]: [usize; 4]) {
    for (fits, beyond) in [
        (deep(depth), deep(depth + 1)),
        (wide(fields), wide(fields + 1)),
        (many(roots), many(roots + 1)),
        (long(document), long(document + 1)),
    ] {
        assert_eq!(
            code(service, &fits).await,
            None,
            "{}",
            &fits[..200.min(fits.len())]
        );
        assert_eq!(
            code(service, &beyond).await,
            Some("TOO_COMPLEX".to_owned()),
            "{}",
            &beyond[..200.min(beyond.len())]
        );
    }
}

#[tokio::test]
async fn a_request_has_these_limits_by_default() {
    bounds(demo(), [15, 1_000, 20, 1 << 20]).await;
    let array = |length| Value::Array(vec![json!({"query": "{ __typename }"}); length]).to_string();
    let status = async |length| {
        demo()
            .ask(Method::POST, PUBLIC, None, Some(array(length)))
            .await
            .status
    };
    assert_eq!((status(50).await, status(51).await), (200, 400));
}

/// The time of validation grows with the square of the number of sibling fields.
#[tokio::test]
async fn a_large_document_is_refused_before_it_is_validated() {
    let spread = |at: usize| format!("...f{at} ");
    let fragment = |at: usize| format!("fragment f{at} on Query {{ __typename }} ");
    let fragments = |count: usize| {
        let spreads: Vec<String> = (0..count).map(spread).collect();
        let fragments: Vec<String> = (0..count).map(fragment).collect();
        let (spreads, fragments) = (spreads.concat(), fragments.concat());
        format!("{{ {spreads} }} {fragments}")
    };
    assert_eq!(code(demo(), &fragments(100)).await, None);
    let equal = |count| format!("{{ {} }}", "a: __typename ".repeat(count));
    for (document, problem) in [
        (
            fragments(2_000),
            "the document spreads fragments 2000 times",
        ),
        (equal(1_001), "a selection has 1001 fields"),
        (equal(50_000), "Document exceeds"),
    ] {
        let response = ask(demo(), &document).await;
        let error = &response["errors"][0];
        assert_eq!(error["extensions"]["code"], "TOO_COMPLEX", "{response}");
        let message = error["message"].as_str().unwrap();
        assert!(message.starts_with(problem), "{message}");
    }
    // The query has as many fields as allowed, all with one response key.
    let titles = |count| format!("{{ getAlbums(limit: 1) {{ {}}} }}", "title ".repeat(count));
    assert_eq!(code(demo(), &titles(999)).await, None);
    let beyond = code(demo(), &titles(1_000)).await;
    assert_eq!(beyond.as_deref(), Some("TOO_COMPLEX"));
    let mut directives = String::new();
    for at in 0..40_000 {
        write!(directives, "@d{at} ").unwrap();
    }
    let code = code(demo(), &format!("{{ __typename {directives} }}")).await;
    assert_ne!(code, None);
}

#[tokio::test]
async fn a_subscription_has_its_own_way() {
    let subscription = "subscription { ArtistsMessageAdded { id } }";
    let response = ask(demo(), subscription).await;
    let error = &response["errors"][0];
    assert_eq!(error["extensions"]["code"], "BAD_USER_INPUT", "{response}");
    assert!(
        error["message"].as_str().unwrap().contains("WebSocket"),
        "{response}"
    );
}

/// Fragments count where they are used. No part of a document that is too large runs.
#[tokio::test]
async fn nothing_runs_of_what_is_too_large() {
    let fragment = |at: usize| {
        let next = at + 1;
        let four = ["w", "x", "y", "z"].map(|key| format!("{key}: artists {{ ...f{next} }} "));
        format!(
            " fragment f{at} on Artists {{ id albums {{ {} }} }}",
            four.concat()
        )
    };
    let doubled: String = (0..6).map(fragment).collect();
    let doubled = format!("{{ getArtists {{ ...f0 }} }}{doubled} fragment f6 on Artists {{ id }}");
    assert_eq!(code(demo(), &doubled).await, Some("TOO_COMPLEX".to_owned()));
    let setup = "create table if not exists gql_counted_rows (id int primary key)";
    demo().rows("demo", setup, json!({})).await;
    let inserts: Vec<_> = (0..21)
        .map(|at| format!("r{at}: insertGqlCountedRows(data: {{id: {at}}}) {{ id }}"))
        .collect();
    let mutation = format!("mutation {{ {} }}", inserts.join(" "));
    assert_eq!(
        code(demo(), &mutation).await,
        Some("TOO_COMPLEX".to_owned())
    );
    let count = demo()
        .rows(
            "demo",
            "select count(*) as n from gql_counted_rows",
            json!({}),
        )
        .await;
    assert_eq!(count["data"][0]["n"], 0);
    for cyclic in [
        "{ getArtists { ...f } } fragment f on Artists { ...f }",
        "{ getArtists { ...f } } fragment f on Artists { albums { ...g } } fragment g on Albums { artists { ...f } }",
    ] {
        assert_eq!(
            code(demo(), cyclic).await.as_deref(),
            Some("GRAPHQL_VALIDATION_FAILED")
        );
    }
    // Brackets that are not closed do not overflow the stack.
    for open in ["{a", "[", "{a:{", "query($x:[", "{a(b:[", "{a(b:{c:"] {
        let text = open.repeat((1 << 20) / open.len());
        let code = code(demo(), &text).await.unwrap();
        assert!(
            ["GRAPHQL_PARSE_FAILED", "TOO_COMPLEX"].contains(&&*code),
            "{open}: {code}"
        );
    }
    let nested = format!(
        "{{ getArtists(where: {}{{}}{}) {{ id }} }}",
        "{not: ".repeat(20_000),
        "}".repeat(20_000)
    );
    let code = code(demo(), &nested).await.unwrap();
    assert!(
        ["GRAPHQL_PARSE_FAILED", "TOO_COMPLEX", "BAD_USER_INPUT"].contains(&&*code),
        "{code}"
    );
    let variables = format!(
        "{{\"w\": {}{{}}{}}}",
        "{\"not\": ".repeat(20_000),
        "}".repeat(20_000)
    );
    let body = format!(
        "{{\"query\": \"query($w: JSON) {{ getArtists(where: $w) {{ id }} }}\", \"variables\": {variables}}}"
    );
    let response = demo().ask(Method::POST, PUBLIC, None, Some(body)).await;
    assert!(
        response.json()["errors"][0]["message"].is_string(),
        "{}",
        &response.text[..200]
    );
}

#[tokio::test]
async fn every_limit_is_a_setting() {
    let folder = demo_folder();
    let settings = [
        "--graphql-depth-limit=4",
        "--graphql-field-limit=30",
        "--graphql-root-limit=3",
        "--graphql-document-limit=2KiB",
        "--graphql-page-size=5",
        "--graphql-row-limit=8",
        "--graphql-batch-limit=2",
        "--body-limit=4KiB",
        "--response-limit=20KiB",
    ];
    let service = Service::start(folder.path().to_str().unwrap(), &settings);
    bounds(&service, [4, 30, 3, 2 << 10]).await;
    let response = ask(&service, "{ getTracks { id } few: getTracks(limit: 6) { id } most: getTracks(limit: 9) { id } groups: getTracksAggregate(groupBy: [\"album_id\"]) { album_id } }").await;
    assert_eq!(response["errors"][0]["extensions"]["code"], "TOO_COMPLEX");
    let response = ask(
        &service,
        "{ getTracks { id } few: getTracks(limit: 6) { id } most: getTracks(limit: 9) { id } }",
    )
    .await;
    let lengths =
        ["getTracks", "few", "most"].map(|key| response["data"][key].as_array().unwrap().len());
    assert_eq!(lengths, [5, 6, 8]);
    assert_eq!(
        response["extensions"],
        json!({"truncated": [["getTracks"], ["most"]]})
    );
    let response = ask(
        &service,
        "{ getTracksAggregate(groupBy: [\"album_id\"]) { album_id } }",
    )
    .await;
    assert_eq!(
        response["data"]["getTracksAggregate"]
            .as_array()
            .unwrap()
            .len(),
        8
    );
    assert_eq!(
        response["extensions"],
        json!({"truncated": [["getTracksAggregate"]]})
    );
    let one = r#"{"query":"{ __typename }"}"#;
    let status = async |body: String| {
        let response: TextResponse = service.ask(Method::POST, PUBLIC, None, Some(body)).await;
        assert!(
            response.status == 200 || response.json()["errors"].is_array(),
            "{response:?}"
        );
        response.status
    };
    assert_eq!(status(format!("[{one},{one}]")).await, 200);
    assert_eq!(status(format!("[{one},{one},{one}]")).await, 400);
    assert_eq!(status(format!("{one}{}", " ".repeat(4 << 10))).await, 413);
    // A response above the limit is refused, and not cut.
    let notes = "{ getVenues(limit: 8) { a: name b: name c: name } getTracks(limit: 8) { title albums { title artists { name } } } }";
    assert!(ask(&service, notes).await["data"].is_object());
    let long = "x".repeat(1_500);
    for _ in 0..3 {
        ask(
            &service,
            &format!("mutation {{ insertPlaylists(data: {{name: \"{long}\"}}) {{ id }} }}"),
        )
        .await;
    }
    let copies: Vec<_> = (0..20).map(|at| format!("c{at}: name")).collect();
    let large = format!(
        "{{ getPlaylists(limit: 8, where: {{name: {{startsWith: \"xxx\"}}}}) {{ {} }} }}",
        copies.join(" ")
    );
    let response = ask(&service, &large).await;
    assert_eq!(
        response["errors"][0]["extensions"]["code"], "TOO_COMPLEX",
        "{response}"
    );
    assert_eq!(response["data"], json!({"getPlaylists": null}));
}

/// A role's limits do not affect other roles.
#[tokio::test]
async fn a_role_has_limits_of_its_own() {
    let folder = demo_folder();
    let setting = "--graphql-role-limits=demo=4/30/3,demo/guest=2/10/1";
    let service = Service::start(folder.path().to_str().unwrap(), &[setting]);
    bounds(&service, [4, 30, 3, 1 << 20]).await;
    let code_of = async |user: Option<&str>, query: String| {
        let body = json!({"query": query}).to_string();
        let response = service.ask(Method::POST, PUBLIC, user, Some(body)).await;
        response.json()["errors"][0]["extensions"]["code"].clone()
    };
    for (user, [depth, fields, roots]) in [(None, [2, 10, 1]), (Some("alice"), [15, 1_000, 20])] {
        for (fits, beyond) in [
            (deep(depth), deep(depth + 1)),
            (wide(fields), wide(fields + 1)),
            (many(roots), many(roots + 1)),
        ] {
            assert_eq!(code_of(user, fits).await, Value::Null, "{user:?}");
            assert_eq!(code_of(user, beyond).await, "TOO_COMPLEX", "{user:?}");
        }
    }
}

/// A query with nested selections, each in a fragment of its own.
fn chained(levels: usize) -> String {
    let last = levels - 2;
    let on = |at: usize| {
        if at.is_multiple_of(2) {
            "Artists"
        } else {
            "Albums"
        }
    };
    let fragment = |at: usize| {
        let (on, next) = (on(at), at + 1);
        let field = if on == "Artists" { "albums" } else { "artists" };
        format!(" fragment f{at} on {on} {{ {field} {{ ...f{next} }} }}")
    };
    let fragments: String = (0..last).map(fragment).collect();
    let on = on(last);
    format!("{{ getArtists(limit: 0) {{ ...f0 }} }}{fragments} fragment f{last} on {on} {{ id }}")
}

#[tokio::test]
async fn levels_count_in_fragments_too() {
    assert_eq!(code(demo(), &chained(15)).await, None);
    let found = code(demo(), &chained(16)).await;
    assert_eq!(found.as_deref(), Some("TOO_COMPLEX"));
}
