//! Tests GraphQL responses that are larger than allowed (API.md, "Limits of GraphQL").

use reqwest::Method;
use serde_json::{Value, json};

use crate::graphql::PUBLIC;
use crate::graphql_limits::ask;
use crate::service::{Service, demo_folder};

/// The mutation is rolled back in each of three cases: one field is too large, one field of several
/// is, or only all fields together are.
#[tokio::test]
async fn a_mutation_whose_response_is_too_large_has_not_happened() {
    let folder = demo_folder();
    let service = Service::start(folder.path().to_str().unwrap(), &["--response-limit=20KiB"]);
    let row = |letter: &str| format!("{{name: \"{}\"}}", letter.repeat(12_000));
    for (letter, mutation) in [
        (
            "q",
            format!("insertPlaylists(objects: [{0}, {0}]) {{ name }}", row("q")),
        ),
        (
            "x",
            format!(
                "a: insertPlaylists(data: {0}) {{ id }} b: insertPlaylists(objects: [{0}, {0}]) {{ name }}",
                row("x")
            ),
        ),
        (
            "y",
            format!(
                "a: insertPlaylists(data: {0}) {{ name }} b: insertPlaylists(data: {0}) {{ name }}",
                row("y")
            ),
        ),
    ] {
        let response = ask(&service, &format!("mutation {{ {mutation} }}")).await;
        assert_eq!(response["data"], Value::Null, "{letter}");
        let code = &response["errors"][0]["extensions"]["code"];
        assert_eq!(code, "TOO_COMPLEX", "{letter}: {response}");
        let text = "select count(*)::int as n from playlists where name like :name";
        let name = format!("{}%", letter.repeat(9));
        let rows = service.rows("demo", text, json!({"name": name})).await;
        assert_eq!(rows["data"][0]["n"], 0, "{letter}: {response}");
    }
}

/// A large row may be in the response several times. The row is read once, so only the finished
/// response is too large.
#[tokio::test]
async fn a_mutation_whose_response_is_too_large_when_finished_is_rolled_back() {
    let folder = demo_folder();
    let service = Service::start(folder.path().to_str().unwrap(), &["--response-limit=20KiB"]);
    let title = "l".repeat(12_000);
    let album =
        format!("mutation {{ insertAlbums(data: {{artist_id: 1, title: \"{title}\"}}) {{ id }} }}");
    let id = ask(&service, &album).await["data"]["insertAlbums"][0]["id"].clone();
    for (tracks, fits) in [(1, true), (3, false)] {
        let track = format!("{{album_id: {id}, title: \"{tracks} shown\"}}");
        let objects = vec![track; tracks].join(", ");
        let insert = format!("insertTracks(objects: [{objects}]) {{ albums {{ title }} }}");
        let response = ask(&service, &format!("mutation {{ {insert} }}")).await;
        assert_eq!(response["data"].is_object(), fits, "{response:.300}");
        let text = "select count(*)::int as n from tracks where title = :title";
        let parameters = json!({"title": format!("{tracks} shown")});
        let rows = service.rows("demo", text, parameters).await;
        assert_eq!(rows["data"][0]["n"], usize::from(fits), "{response:.300}");
    }
}

/// When the response is full, the following requests of the array do not run. The requests before
/// keep their responses.
#[tokio::test]
async fn in_an_array_only_what_can_be_answered_is_done() {
    let folder = demo_folder();
    let service = Service::start(folder.path().to_str().unwrap(), &["--response-limit=20KiB"]);
    let insert = |name: String| {
        let data = format!("{{name: \"{name}\"}}");
        json!({"query": format!("mutation {{ insertPlaylists(data: {data}) {{ name }} }}")})
    };
    let requests = json!([
        insert("first ".repeat(2_000)),
        insert("second ".repeat(2_000)),
        insert("third".to_owned()),
    ]);
    let response = service
        .ask(
            Method::POST,
            PUBLIC,
            Some("demo"),
            Some(requests.to_string()),
        )
        .await;
    assert_eq!(response.status, 200, "{:.300}", response.text);
    let responses = response.json();
    let codes = [0, 1, 2].map(|at| responses[at]["errors"][0]["extensions"]["code"].clone());
    assert_eq!(codes, [Value::Null, json!("TOO_COMPLEX"), Value::Null]);
    let q = "select split_part(name, ' ', 1) as word from playlists \
             where name ~ '^(first|second|third)' order by id";
    let found = service.rows("demo", q, json!({})).await;
    assert_eq!(found["data"], json!([{"word": "first"}, {"word": "third"}]));
}
