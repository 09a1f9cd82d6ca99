//! Tests that a request with many errors gets only the first ones, and costs no more for the
//! others.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use serde_json::Value;
use serde_json::value::RawValue;
use tidegate_graphql::{Api, Context};
use tidegate_sql::{Principal, QueryOptions};

use crate::fixture::api;
use crate::variables::UnavailableExecutor;

const REPORTED: usize = 50;

/// The number of errors. With quadratic time, a test would take minutes.
const MANY: usize = 20_000;

/// How long a test may take. A debug build needs seconds for what a release build parses in a tenth
/// of a second.
const TIMEOUT: Duration = Duration::from_secs(30);

fn repeated(one: impl Fn(usize) -> String) -> String {
    (0..MANY).fold(String::new(), |mut text, number| {
        let _ = write!(text, "{} ", one(number));
        text
    })
}

/// The messages of the errors in a document.
fn messages(api: &Api, document: &str) -> Vec<String> {
    let errors = api.prepare(document, None).unwrap_err();
    errors.into_iter().map(|error| error.message).collect()
}

/// Documents, each of which has many errors of one kind.
fn documents() -> Vec<(String, &'static str)> {
    let variables = |r#type: &str| repeated(|number| format!("$v{number}: {type}"));
    let list = |word: &str| repeated(|number| word.replace('#', &number.to_string()));
    let fields = |count: usize, word: &str| {
        (0..count)
            .map(|number| word.replace('#', &number.to_string()))
            .collect::<Vec<_>>()
            .join(" ")
    };
    vec![
        (
            format!("query({}) {{ __typename }}", variables("Int")),
            "unused variables",
        ),
        (
            format!("query({}) {{ __typename }}", variables("Nothing")),
            "types that are none",
        ),
        (
            format!("query({}) {{ __typename }}", variables("Int = \"a\"")),
            "wrong defaults",
        ),
        (
            format!("{{ __typename {} }}", list("@no#")),
            "unknown directives",
        ),
        (
            format!("{{ __typename {} }}", list("@skip(if: false)")),
            "repeated directives",
        ),
        (
            format!("{{ getArtists(where: [{}]) {{ id }} }}", list("$v#")),
            "undefined variables in a literal",
        ),
        (
            format!("{{ getArtists({}) {{ id }} }}", list("a#: 1")),
            "unknown arguments",
        ),
        (
            format!("{{ getArtists {{ {} }} }}", fields(900, "no#")),
            "unknown fields",
        ),
        (
            format!("{{ getArtists {{ {} }} }}", fields(400, "a#: id a#: name")),
            "conflicts",
        ),
        (
            format!(
                "{{ __typename }} {}",
                list("fragment f# on Query { __typename }")
            ),
            "unused fragments",
        ),
    ]
}

#[test]
fn the_first_errors_of_a_document_are_reported() {
    let api = api();
    for (document, what) in documents() {
        let began = Instant::now();
        let found = messages(&api, &document);
        assert!(began.elapsed() < TIMEOUT, "{what}: {:?}", began.elapsed());
        assert_eq!(found.len(), REPORTED + 1, "{what}: {found:?}");
        assert!(
            found[REPORTED].contains("more errors"),
            "{what}: {}",
            found[REPORTED]
        );
        assert!(!found[..REPORTED].contains(&found[REPORTED]), "{what}");
    }
}

#[tokio::test]
async fn the_first_errors_of_variables_are_reported() {
    let api = api();
    let definitions = repeated(|number| format!("$v{number}: Int!"));
    let uses = repeated(|number| format!("$v{number}"));
    let document =
        format!("query({definitions}) {{ getArtists(where: {{id: {{in: [{uses}]}}}}) {{ id }} }}");
    let prepared = api.prepare(&document, None).unwrap();
    let context = Context {
        executor: &UnavailableExecutor,
        principal: &Principal::Control,
        anonymous: false,
        options: QueryOptions::default(),
        response_budget: u64::MAX,
    };
    let values = |value: &str| {
        let members = (0..MANY).map(|number| format!("\"v{number}\":{value}"));
        let members = members.collect::<Vec<_>>().join(",");
        RawValue::from_string(format!("{{{members}}}")).unwrap()
    };
    let began = Instant::now();
    let response = api
        .execute(&prepared, Some(&values("true")), context)
        .await
        .unwrap();
    let body: Value = serde_json::from_slice(&response.body.into_bytes().unwrap()).unwrap();
    let errors = body["errors"].as_array().unwrap();
    assert_eq!(errors.len(), REPORTED + 1);
    assert_eq!(errors[REPORTED]["extensions"]["code"], "BAD_USER_INPUT");
    assert!(
        errors[REPORTED]["message"]
            .as_str()
            .unwrap()
            .contains("more errors")
    );
    // The same number of valid values is sent to PostgreSQL.
    api.execute(&prepared, Some(&values("1")), context)
        .await
        .unwrap_err();
    assert!(began.elapsed() < TIMEOUT, "{:?}", began.elapsed());
}
