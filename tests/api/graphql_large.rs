//! Tests a schema whose introspection is too large to be held in memory (API.md, "Protocol").

use futures_util::StreamExt;
use reqwest::{Method, Response};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::graphql_names::prepare_in;
use crate::service::{Service, TIMEOUT, demo, demo_folder};
use crate::socket_client::socket;
use crate::sql_outputs::memory;

const PATH: &str = "/api/graphql/schema/gql_large";
const TABLES: usize = 150;
const TYPES: &str = "{ __schema { types { kind name description fields { name description \
    args { name description type { kind name ofType { kind name } } defaultValue } \
    type { kind name ofType { kind name ofType { kind name ofType { name } } } } } } } }";

/// Creates the schema in the shared demo.
async fn schema() {
    static MADE: OnceCell<()> = OnceCell::const_new();
    MADE.get_or_init(|| make(demo())).await;
}

async fn make(demo: &Service) {
    let tables: Vec<_> = (1..=TABLES)
        .map(|at| {
            let key = if at > 1 {
                format!(", before int references t{}", at - 1)
            } else {
                String::new()
            };
            format!("create table t{at} (id int primary key, a text, b int, c float8{key});")
        })
        .collect();
    let tables = tables.join(" ");
    prepare_in(demo, "gql_large", tables.trim_end_matches(';')).await;
}

async fn post(body: &Value, encoding: Option<&str>) -> Response {
    post_to(demo(), body, encoding).await
}

async fn post_to(demo: &Service, body: &Value, encoding: Option<&str>) -> Response {
    let mut request = demo
        .request(Method::POST, PATH)
        .bearer_auth(demo.cached_token("demo").await)
        .json(body);
    if let Some(encoding) = encoding {
        request = request.header("accept-encoding", encoding);
    }
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), 200);
    response
}

/// Checks that the response has all tables, and no type twice.
fn check(types: &Value) {
    let types = types.as_array().unwrap();
    let mut names: Vec<_> = types.iter().map(|one| one["name"].to_string()).collect();
    let known = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), known);
    for table in 1..=TABLES {
        assert!(names.binary_search(&format!("\"T{table}\"")).is_ok());
    }
}

#[tokio::test]
async fn its_introspection_is_streamed_and_whole() {
    schema().await;
    for _ in 0..2 {
        let response = post(&json!({"query": TYPES}), None).await;
        assert!(!response.headers().contains_key("content-length"));
        let text = response.text().await.unwrap();
        assert!(text.len() > 1 << 20, "{}", text.len());
        let body: Value = serde_json::from_str(&text).unwrap();
        check(&body["data"]["__schema"]["types"]);
        for encoding in ["gzip", "zstd"] {
            let response = post(&json!({"query": TYPES}), Some(encoding)).await;
            assert_eq!(response.headers()["content-encoding"], encoding);
            let size = response.bytes().await.unwrap().len();
            assert!((1..text.len() / 5).contains(&size), "{size}");
        }
    }
}

#[tokio::test]
async fn it_may_stand_between_other_answers() {
    schema().await;
    let batch = json!([
        {"query": "{ __typename }"},
        {"query": TYPES},
        {"query": "{"},
        {"query": TYPES},
    ]);
    let body: Value = post(&batch, None).await.json().await.unwrap();
    assert_eq!(body[0], json!({"data": {"__typename": "Query"}}));
    check(&body[1]["data"]["__schema"]["types"]);
    assert!(body[2]["errors"].is_array());
    assert_eq!(body[3], body[1]);
    assert_eq!(body.as_array().unwrap().len(), 4);
    let message = json!({"type": "subscribe", "id": "a", "schema": "gql_large", "query": TYPES});
    let mut socket = socket("demo").await;
    let response = socket.ask(message).await;
    assert_eq!(response["type"], "next");
    assert_eq!(response["data"], body[1]["data"]);
    assert_eq!(
        socket.receive().await,
        json!({"type": "complete", "id": "a"})
    );
}

#[tokio::test]
async fn an_introspection_of_hundreds_of_megabytes_uses_memory_only_as_it_is_read() {
    // The test has a demo of its own, because it measures memory, and other tests use memory too.
    let folder = demo_folder();
    let demo = Service::start(folder.path().to_str().unwrap(), &[]);
    make(&demo).await;
    let described = "name description args { name description type { name description } }";
    // The query nests fields of types of fields several times, and selects many of the innermost
    // fields.
    let inner: Vec<_> = (0..12)
        .map(|at| format!("f{at}: fields {{ {described} type {{ name ofType {{ name }} }} }} "))
        .collect();
    let inner = inner.concat();
    let named = format!("name ofType {{ fields {{ {described} type {{ name {inner} }} }} }}");
    let roots: Vec<_> = (0..5)
        .map(|at| {
            format!(
                "r{at}: __schema {{ types {{ fields {{ {described} type {{ {named} }} }} }} }} "
            )
        })
        .collect();
    let query = json!({"query": format!("{{ {} }}", roots.concat())});
    let before = memory(&demo).await;
    let response = post_to(&demo, &query, None).await;
    let (mut size, mut stream) = (0, response.bytes_stream());
    while size < 8 << 20 {
        let chunk = tokio::time::timeout(TIMEOUT, stream.next()).await.unwrap();
        let Some(chunk) = chunk else {
            panic!("it ends after {size} bytes")
        };
        size += chunk.unwrap().len();
    }
    // If the rest of the response were still being rendered, that would go on while these
    // statements run.
    for _ in 0..20 {
        demo.rows("demo", "select 1 as n", json!({})).await;
    }
    let after = memory(&demo).await;
    let most = 160.0 * 1024.0 * 1024.0;
    assert!(after < before + most, "{before} grew to {after}");
}
