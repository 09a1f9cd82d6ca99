//! Tests output formats, date formats and streaming (API.md, "SQL").

use std::time::Duration;

use futures_util::StreamExt as _;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::service::{Service, TIMEOUT, demo, demo_folder, eventually};

async fn output(body: Value, accept: Option<&str>) -> (u16, String, String) {
    let token = demo().token("demo").await;
    let mut request = demo()
        .request(Method::POST, "/api/v4/sql")
        .bearer_auth(token)
        .json(&body);
    if let Some(accept) = accept {
        request = request.header("accept", accept);
    }
    let response = request.send().await.unwrap();
    let kind = response.headers()["content-type"]
        .to_str()
        .unwrap()
        .to_owned();
    (
        response.status().as_u16(),
        kind,
        response.text().await.unwrap(),
    )
}

const MIXED: &str = "select * from (values (1, 'a,b', null::text, '{1,2}'::int[], '{\"k\": 1}'::jsonb), \
                     (2, 'say \"hi\"', '', null, null)) t(n, s, empty, list, doc)";

#[tokio::test]
async fn csv_follows_rfc_4180() {
    let (status, kind, text) = output(json!({"q": MIXED, "output_format": "csv"}), None).await;
    assert_eq!((status, kind.as_str()), (200, "text/csv; charset=utf-8"));
    assert_eq!(
        text,
        "n,s,empty,list,doc\r\n1,\"a,b\",,\"[1,2]\",\"{\"\"k\"\": 1}\"\r\n2,\"say \"\"hi\"\"\",\"\",,\r\n"
    );
}

#[tokio::test]
async fn ndjson_is_one_object_a_line() {
    let (status, kind, text) = output(json!({"q": MIXED, "output_format": "ndjson"}), None).await;
    assert_eq!((status, kind.as_str()), (200, "application/x-ndjson"));
    assert_eq!(
        text,
        "{\"n\":1,\"s\":\"a,b\",\"empty\":null,\"list\":[1,2],\"doc\":{\"k\": 1}}\n\
         {\"n\":2,\"s\":\"say \\\"hi\\\"\",\"empty\":\"\",\"list\":null,\"doc\":null}\n"
    );
}

#[tokio::test]
async fn accept_chooses_where_the_request_does_not() {
    let q = json!({"q": "select 1 as n"});
    assert_eq!(output(q.clone(), Some("text/csv")).await.2, "n\r\n1\r\n");
    assert_eq!(
        output(q.clone(), Some("application/x-ndjson")).await.2,
        "{\"n\":1}\n"
    );
    assert!(
        output(q.clone(), Some("application/json"))
            .await
            .1
            .starts_with("application/json")
    );
    assert!(
        output(q.clone(), Some("*/*"))
            .await
            .1
            .starts_with("application/json")
    );
    let (status, _, text) = output(q, Some("image/png")).await;
    assert_eq!(status, 406, "{text}");
    assert!(text.contains("NOT_ACCEPTABLE"), "{text}");
    // The member takes precedence over the header, and `application/json` in Accept never excludes
    // a format.
    let body = json!({"q": "select 1 as n", "output_format": "csv"});
    assert_eq!(output(body, Some("application/json")).await.2, "n\r\n1\r\n");
    let (status, _, _) = output(json!({"q": "select 1", "output_format": "pdf"}), None).await;
    assert_eq!(status, 400);
}

#[tokio::test]
async fn csv_and_ndjson_can_be_large() {
    let body = json!({"q": "select i, repeat('x', 50) as s from generate_series(1, 200000) i", "output_format": "ndjson"});
    let (status, _, text) = output(body, None).await;
    assert_eq!(status, 200);
    assert_eq!(text.lines().count(), 200_000);
    assert!(text.ends_with("}\n"));
}

#[tokio::test]
async fn an_error_in_a_stream_breaks_it_audibly() {
    let token = demo().token("demo").await;
    let body = json!({"q": "select 1 / (500000 - i) as n from generate_series(1, 600000) i", "output_format": "ndjson"});
    let response = demo()
        .request(Method::POST, "/api/v4/sql")
        .bearer_auth(token)
        .json(&body)
        .send()
        .await
        .unwrap();
    assert_eq!(response.status(), 200);
    let mut stream = response.bytes_stream();
    let broken = loop {
        match stream.next().await {
            Some(Ok(_)) => {}
            Some(Err(_)) => break true,
            None => break false,
        }
    };
    assert!(broken, "the stream ended as if it were whole");
}

#[tokio::test]
async fn an_error_before_the_first_byte_is_an_error() {
    let body = json!({"q": "select 1 / (5 - i) as n from generate_series(1, 10) i", "output_format": "csv"});
    let (status, kind, text) = output(body, None).await;
    assert_eq!(status, 400, "{text}");
    assert!(kind.starts_with("application/json"));
    assert!(text.contains("22012"));
}

#[tokio::test]
async fn a_slow_reader_costs_no_memory_and_no_other_reader() {
    // The test has a demo of its own, because it measures memory, and other tests use memory too.
    let folder = demo_folder();
    let demo = Service::start(folder.path().to_str().unwrap(), &[]);
    let token = demo.cached_token("demo").await;
    let admin = demo.admin().await;
    let before = memory(&demo).await;
    let q = "select repeat('x', 1000) as slow_reader from generate_series(1, 300000) i";
    let body = json!({"q": q, "output_format": "ndjson"});
    let response = demo
        .request(Method::POST, "/api/v4/sql")
        .bearer_auth(token)
        .json(&body)
        .send()
        .await
        .unwrap();
    let waits = async || {
        let q = "select count(*) from pg_stat_activity \
                 where wait_event = 'ClientWrite' and query like '%slow_reader%'";
        let waiting = admin.query_one(q, &[]).await.unwrap();
        waiting.get::<_, i64>(0) == 1
    };
    // When every buffer is full, PostgreSQL waits and does not continue. It may also wait briefly
    // before, but would soon continue if the response were read.
    eventually("PostgreSQL waits for the reader", || async {
        for _ in 0..20 {
            demo.rows("demo", "select 1 as n", json!({})).await;
            if !waits().await {
                return false;
            }
        }
        true
    })
    .await;
    let after = memory(&demo).await;
    assert!(
        after < before + 64.0 * 1024.0 * 1024.0,
        "{before} grew to {after}"
    );
    let mut size = 0;
    let mut stream = response.bytes_stream();
    while let Some(chunk) = tokio::time::timeout(TIMEOUT, stream.next()).await.unwrap() {
        size += chunk.unwrap().len();
    }
    assert!(size > 300_000_000, "{size}");
}

/// The memory of the server in bytes.
pub(crate) async fn memory(demo: &Service) -> f64 {
    let text = demo
        .request(Method::GET, "/metrics")
        .send()
        .await
        .unwrap()
        .text()
        .await
        .unwrap();
    let line = text
        .lines()
        .find(|line| line.starts_with("process_resident_memory_bytes "));
    line.unwrap_or_else(|| panic!("{text}"))
        .split(' ')
        .nth(1)
        .unwrap()
        .parse()
        .unwrap()
}

#[tokio::test]
async fn a_client_that_leaves_ends_its_statement() {
    let admin = demo().admin().await;
    let token = demo().token("demo").await;
    let marker = "select pg_sleep(120) as the_client_left";
    let request = demo()
        .request(Method::POST, "/api/v4/sql")
        .bearer_auth(token)
        .json(&json!({"q": marker}));
    let asking = tokio::spawn(request.send());
    let runs = async || {
        let q = "select count(*) from pg_stat_activity where state = 'active' and query = $1";
        let running = admin.query_one(q, &[&marker]).await.unwrap();
        running.get::<_, i64>(0) == 1
    };
    eventually("the statement runs", || async { runs().await }).await;
    asking.abort();
    assert!(asking.await.unwrap_err().is_cancelled());
    let gone = std::time::Instant::now();
    eventually("the statement is gone", || async { !runs().await }).await;
    assert!(
        gone.elapsed() < Duration::from_secs(10),
        "{:?}",
        gone.elapsed()
    );
}

#[tokio::test]
async fn format_specifiers_format_columns_and_parse_placeholders() {
    let body = json!({
        "q": "select '2024-03-09 07:05:03.5+00'::timestamptz as t, '2024-03-09'::date as d, \
              tstzrange('2024-01-01', '2024-02-01') as r, :i::date as i",
        "params": {"i": "09/03/2024"},
        "type_formats": {"t": "D, d M Y H:i:s.u P", "d": "jS F y \\Y", "r": "Y-m", "i": "d/m/Y"},
    });
    let response: Value = demo().sql(Some("demo"), &body).await.json().await.unwrap();
    let row = &response["data"][0];
    assert_eq!(
        row["t"], "Sat, 09 Mar 2024 07:05:03.500000 +00:00",
        "{response}"
    );
    assert_eq!(row["d"], "9th March 24 Y");
    assert_eq!(row["r"]["lower"], "2024-01");
    assert_eq!(
        row["i"], "09/03/2024",
        "the column `i` has the format too: {response}"
    );
    for body in [
        json!({"q": "select 1 as n", "type_formats": {"n": "Y"}}),
        json!({"q": "select :d::date as x", "params": {"d": "2024-01-01"}, "type_formats": {"d": "d/m/Y"}}),
    ] {
        let (status, error) = demo().refusal("demo", &body).await;
        assert_eq!(
            (status, error["errorCode"].as_str()),
            (400, Some("INPUT_VALIDATION_ERROR")),
            "{error}"
        );
    }
}

#[tokio::test]
async fn formatted_values_follow_the_preferred_timezone() {
    let token = demo().token("demo").await;
    let body = json!({"q": "select '2024-07-01 12:00+00'::timestamptz as t", "type_formats": {"t": "Y-m-d H:i T"}});
    let response = demo()
        .request(Method::POST, "/api/v4/sql")
        .bearer_auth(token)
        .header("prefer", "timezone=Europe/Berlin")
        .json(&body)
        .send()
        .await
        .unwrap();
    let response: Value = response.json().await.unwrap();
    assert_eq!(response["data"][0]["t"], "2024-07-01 14:00 CEST");
}

/// HTTP/1.0 has no chunks, so only a reset distinguishes an aborted response from a complete one.
#[tokio::test]
async fn an_error_in_a_stream_of_http_1_0_resets_the_connection() {
    let token = demo().token("demo").await;
    let address = demo().url.trim_start_matches("http://").to_owned();
    let ask = async |rows: u32| {
        let q = format!("select 1 / (500000 - i) as n from generate_series(1, {rows}) i");
        let body = json!({"q": q, "output_format": "csv"}).to_string();
        let head = format!(
            "POST /api/v4/sql HTTP/1.0\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        let mut stream = TcpStream::connect(&address).await.unwrap();
        stream.write_all((head + &body).as_bytes()).await.unwrap();
        let mut response = Vec::new();
        let read = stream.read_to_end(&mut response).await;
        assert!(response.starts_with(b"HTTP/1.0 200"), "{rows}");
        read.map(|_| response.split(|byte| *byte == b'\n').count())
    };
    assert!(ask(400_000).await.unwrap() > 400_001);
    let broken = ask(600_000).await.unwrap_err();
    assert_eq!(broken.kind(), std::io::ErrorKind::ConnectionReset);
}
