//! Tests the locations and paths of GraphQL errors (API.md, "Errors of GraphQL").

use serde_json::json;

use crate::graphql::{ask, error};

#[tokio::test]
async fn errors_say_where() {
    let error = error(
        "demo",
        "{\n  x: getArtists(where: {and: [{formed: {gt: \"soon\"}}]}) { id }\n}",
        json!({}),
    )
    .await;
    assert_eq!(error["locations"], json!([{"line": 2, "column": 3}]));
    assert_eq!(error["path"], json!(["x"]));
    assert_eq!(error["extensions"]["code"], "BAD_USER_INPUT");
    assert_eq!(error["extensions"]["sqlstate"], "22007");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("where.and[0].formed.gt"), "{message}");
}

/// An error that is found before PostgreSQL runs has a location, too.
#[tokio::test]
async fn errors_of_objects_say_where() {
    for (arguments, place) in [
        ("data: {nope: 1}", "data.nope"),
        ("data: 5", "data"),
        ("objects: [{name: \"a\"}, {nope: 1}]", "objects[1].nope"),
        ("objects: [{name: \"a\"}, 5]", "objects[1]"),
    ] {
        let query = format!("mutation {{\n  x: insertPlaylists({arguments}) {{ id }}\n}}");
        let error = error("alice", &query, json!({})).await;
        assert_eq!(error["extensions"]["code"], "BAD_USER_INPUT", "{error}");
        assert_eq!(error["locations"], json!([{"line": 2, "column": 3}]));
        assert_eq!(error["path"], json!(["x"]), "{error}");
        let message = error["message"].as_str().unwrap();
        assert!(message.starts_with(&format!("`{place}`")), "{message}");
    }
    let query = "mutation { updatePlaylists(id: 1, data: {}) { id } }";
    let error = error("alice", query, json!({})).await;
    assert_eq!(error["path"], json!(["updatePlaylists"]), "{error}");
}

/// A condition in a selection has no value. The error has its location, wherever it is.
#[tokio::test]
async fn a_condition_without_a_value_says_where() {
    for (query, column) in [
        (
            "query($a: Boolean = true) {\n  __typename @skip(if: $a) }",
            14,
        ),
        (
            "query($a: Boolean = true) {\n  ... @include(if: $a) { __typename } }",
            7,
        ),
        (
            "query($a: Boolean = true) { getArtists {\n  id @skip(if: $a) } }",
            6,
        ),
    ] {
        let error = error("demo", query, json!({"a": null})).await;
        let locations = json!([{"line": 2, "column": column}]);
        assert_eq!(error["locations"], locations, "{error}");
        assert_eq!(error["extensions"]["code"], "BAD_USER_INPUT", "{error}");
    }
}

/// Errors of a document have locations, and all of them are reported.
#[tokio::test]
async fn what_is_wrong_with_a_document_says_where() {
    for (query, expected, places) in [
        (
            "{ getArtists { id }\n  ) }",
            "GRAPHQL_PARSE_FAILED",
            &[[2, 3]][..],
        ),
        (
            "{\n  one\n  two\n}",
            "GRAPHQL_VALIDATION_FAILED",
            &[[2, 3], [3, 3]],
        ),
        (
            "{ getArtists(limit: 1) { id }\n  getAlbums(nope: 1) { id } }",
            "GRAPHQL_VALIDATION_FAILED",
            &[[2, 13]],
        ),
        (
            "query(\n  $i: Int!) { getArtists(limit: $i) { id } }",
            "BAD_USER_INPUT",
            &[[2, 3]],
        ),
    ] {
        let response = ask(Some("demo"), query, json!({})).await;
        assert_eq!(response.get("data"), None, "{query}: {response}");
        let errors = response["errors"].as_array().unwrap();
        let found: Vec<_> = errors
            .iter()
            .map(|error| {
                assert_eq!(error["extensions"]["code"], expected, "{query}: {response}");
                error["locations"][0].clone()
            })
            .collect();
        let places: Vec<_> = places
            .iter()
            .map(|[line, column]| json!({"line": line, "column": column}))
            .collect();
        assert_eq!(found, places, "{query}: {response}");
    }
}

/// The parser refuses characters that no document may have, in any place.
#[tokio::test]
async fn a_zero_character_is_a_syntax_error_with_its_place() {
    for (query, column) in [
        ("{ __typename }\n\0", 1),
        ("\n{ a: \0__typename }", 6),
        ("\n# \0\n{ __typename }", 3),
        ("\n{ getArtists(where: {name: \"é\0\"}) { id } }", 30),
    ] {
        let response = ask(None, query, json!({})).await;
        assert_eq!(response.get("data"), None, "{query:?}: {response}");
        let error = &response["errors"][0];
        let code = &error["extensions"]["code"];
        assert_eq!(code, "GRAPHQL_PARSE_FAILED", "{query:?}: {response}");
        let place = json!([{"line": 2, "column": column}]);
        assert_eq!(error["locations"], place, "{query:?}: {response}");
    }
}
