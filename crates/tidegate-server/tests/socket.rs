//! Tests of connections: slow clients, clients that disconnect, and shutdown.

use std::time::{Duration, Instant};

use serde_json::json;
use tidegate_server::{Limits, Timeouts};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::fixture::{Api, TIMEOUT, eventually};

const SHORT: Duration = Duration::from_millis(500);
const LONG: Duration = Duration::from_mins(1);

/// Limits with long timeouts, except for the one that `change` sets.
fn timeouts(change: impl FnOnce(&mut Timeouts)) -> Limits {
    let mut timeouts = Timeouts {
        handshake: LONG,
        header: LONG,
        idle: LONG,
        body: LONG,
        body_rate: 16 * 1024,
        write: LONG,
        drain: LONG,
    };
    change(&mut timeouts);
    Limits {
        timeouts,
        ..Limits::default()
    }
}

fn post(body: &serde_json::Value) -> String {
    let body = body.to_string();
    format!(
        "POST /api/v4/sql HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Reads until the server closes the connection.
pub(crate) async fn rest(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let read = tokio::time::timeout(TIMEOUT, stream.read_to_end(&mut bytes)).await;
    // A reset ends the connection too.
    let _ = read.expect("the connection stays open");
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Reads one response that has a `content-length`.
pub(crate) async fn response(stream: &mut TcpStream) -> String {
    let mut text = String::new();
    let mut buffer = [0; 4096];
    loop {
        let read = tokio::time::timeout(TIMEOUT, stream.read(&mut buffer))
            .await
            .unwrap()
            .unwrap();
        assert!(read > 0, "closed after {text:?}");
        text.push_str(std::str::from_utf8(&buffer[..read]).unwrap());
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "));
        if body.len() == length.unwrap().parse::<usize>().unwrap() {
            return text;
        }
    }
}

pub(crate) const HEALTH: &[u8] = b"GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n";

#[tokio::test]
async fn a_connection_answers_one_request_after_the_other() {
    let api = Api::start().await;
    let server = api.listen().await;
    let mut stream = server.connect().await;
    for _ in 0..3 {
        stream.write_all(HEALTH).await.unwrap();
        assert!(
            response(&mut stream)
                .await
                .starts_with("HTTP/1.1 200 OK\r\n")
        );
    }
}

#[tokio::test]
async fn a_peer_that_says_nothing_is_closed() {
    let api = Api::limited(timeouts(|timeouts| timeouts.header = SHORT)).await;
    let server = api.listen().await;
    assert_eq!(rest(&mut server.connect().await).await, "");
}

#[tokio::test]
async fn a_head_that_dribbles_is_closed() {
    let api = Api::limited(timeouts(|timeouts| timeouts.header = SHORT)).await;
    let server = api.listen().await;
    let mut stream = server.connect().await;
    stream.write_all(HEALTH).await.unwrap();
    response(&mut stream).await;
    // The second head never ends. Sending a byte now and then must not extend its timeout.
    let started = Instant::now();
    let (mut reader, mut writer) = stream.into_split();
    let dribble = async {
        for byte in b"GET /healthz HTTP/1.1\r\nx: "
            .iter()
            .chain(std::iter::repeat(&b'y'))
        {
            if writer.write_all(&[*byte]).await.is_err() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let closed = async {
        let mut bytes = Vec::new();
        let _ = reader.read_to_end(&mut bytes).await;
    };
    tokio::select! {
        () = dribble => {}
        () = closed => {}
    }
    assert!(started.elapsed() >= SHORT && started.elapsed() < TIMEOUT);
}

#[tokio::test]
async fn an_idle_connection_outlives_the_time_of_a_head_and_ends_after_its_own() {
    let limits = timeouts(|timeouts| {
        timeouts.header = SHORT;
        timeouts.idle = SHORT * 4;
    });
    let api = Api::limited(limits).await;
    let server = api.listen().await;
    let mut stream = server.connect().await;
    stream.write_all(HEALTH).await.unwrap();
    response(&mut stream).await;
    let idle = Instant::now();
    assert_eq!(rest(&mut stream).await, "");
    assert!(idle.elapsed() >= SHORT * 4, "{:?}", idle.elapsed());
}

#[tokio::test]
async fn a_statement_may_take_longer_than_any_time_of_the_connection() {
    let limits = timeouts(|timeouts| {
        (timeouts.header, timeouts.idle, timeouts.write) = (SHORT, SHORT, SHORT);
    });
    let api = Api::limited(limits).await;
    let server = api.listen().await;
    let mut stream = server.connect().await;
    stream
        .write_all(post(&json!({"q": "select hang 0 0"})).as_bytes())
        .await
        .unwrap();
    let mut byte = [0];
    assert!(
        tokio::time::timeout(SHORT * 4, stream.read(&mut byte))
            .await
            .is_err()
    );
    assert_eq!(api.executor.cancelled(), 0);
}

#[tokio::test]
async fn a_body_that_dribbles_is_a_408() {
    let limits = timeouts(|timeouts| timeouts.body = SHORT);
    let api = Api::limited(limits).await;
    let server = api.listen().await;
    let mut stream = server.connect().await;
    let head = "POST /api/v4/sql HTTP/1.1\r\nhost: a\r\ncontent-length: 1000\r\n\r\n{";
    stream.write_all(head.as_bytes()).await.unwrap();
    let text = rest(&mut stream).await;
    assert!(text.starts_with("HTTP/1.1 408 "), "{text}");
    assert!(text.contains("REQUEST_TIMEOUT"));
}

#[tokio::test]
async fn a_body_that_stops_is_a_408_however_much_came_before() {
    let limits = timeouts(|timeouts| timeouts.body = SHORT);
    let api = Api::limited(limits).await;
    let server = api.listen().await;
    let mut stream = server.connect().await;
    let head = "POST /api/v4/sql HTTP/1.1\r\nhost: a\r\ncontent-length: 9000000\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    // At the lowest rate of 16 KiB per second, these bytes would have extended the deadline by
    // eight minutes.
    stream.write_all(&vec![b' '; 8_000_000]).await.unwrap();
    let sent = Instant::now();
    let text = rest(&mut stream).await;
    assert!(text.starts_with("HTTP/1.1 408 "), "{text}");
    assert!(sent.elapsed() < TIMEOUT / 2);
}

#[tokio::test]
async fn a_body_that_comes_fast_enough_may_take_long() {
    let limits = timeouts(|timeouts| {
        timeouts.body = SHORT;
        timeouts.body_rate = 100;
    });
    let api = Api::limited(limits).await;
    let server = api.listen().await;
    let mut stream = server.connect().await;
    let head = "POST /api/v4/sql HTTP/1.1\r\nhost: a\r\ncontent-length: 1223\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    // The body is sent at twice the lowest rate, and for twice as long as it may be silent.
    for _ in 0..10 {
        stream.write_all(&[b' '; 120]).await.unwrap();
        tokio::time::sleep(SHORT / 5).await;
    }
    let statement = b"{\"q\":\"select rows 1 1\"}";
    stream.write_all(statement).await.unwrap();
    let text = response(&mut stream).await;
    assert!(text.starts_with("HTTP/1.1 200 "), "{text}");
}

#[tokio::test]
async fn a_body_that_is_too_large_is_refused_although_it_was_sent() {
    let api = Api::start().await;
    let server = api.listen().await;
    for head in ["content-length: 11534336", "transfer-encoding: chunked"] {
        let mut stream = server.connect().await;
        let head = format!("POST /api/v4/sql HTTP/1.1\r\nhost: a\r\n{head}\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        let mebibyte = vec![b'x'; 1 << 20];
        for _ in 0..11 {
            if head.contains("chunked") {
                stream.write_all(b"100000\r\n").await.unwrap();
                stream.write_all(&mebibyte).await.unwrap();
                stream.write_all(b"\r\n").await.unwrap();
            } else {
                stream.write_all(&mebibyte).await.unwrap();
            }
        }
        if head.contains("chunked") {
            stream.write_all(b"0\r\n\r\n").await.unwrap();
        }
        let text = response(&mut stream).await;
        assert!(text.starts_with("HTTP/1.1 413 "), "{text}");
    }
}

#[tokio::test]
async fn a_peer_that_leaves_cancels_its_statement() {
    let api = Api::start().await;
    let server = api.listen().await;
    for body in [
        json!({"q": "select hang 0 0"}),
        json!({"q": "select hang 1000 1000", "output_format": "ndjson"}),
        json!([{"q": "select hang 0 0"}]),
    ] {
        let (calls, cancelled) = (api.executor.calls().len(), api.executor.cancelled());
        let mut stream = server.connect().await;
        stream.write_all(post(&body).as_bytes()).await.unwrap();
        eventually("the statement runs", async || {
            api.executor.calls().len() > calls
        })
        .await;
        drop(stream);
        eventually("it is cancelled", async || {
            api.executor.cancelled() > cancelled
        })
        .await;
    }
    let metrics = api.get("/metrics").await;
    // Two clients disconnected before a response, and one during it.
    for line in [
        r#"tidegate_http_requests_total{route="/api/v4/sql",status="4xx"} 2"#,
        r#"tidegate_http_requests_total{route="/api/v4/sql",status="2xx"} 1"#,
        "tidegate_http_aborted_total 3",
        "tidegate_http_requests_in_flight 1",
    ] {
        assert!(
            metrics.text().lines().any(|found| found == line),
            "{line}: {}",
            metrics.text()
        );
    }
}

#[tokio::test]
async fn a_peer_that_does_not_read_is_dropped_and_costs_little() {
    let api = Api::limited(timeouts(|timeouts| timeouts.write = SHORT)).await;
    let server = api.listen().await;
    let mut stream = server.connect().await;
    let body = json!({"q": "select rows 1000000 1000", "output_format": "csv"});
    stream.write_all(post(&body).as_bytes()).await.unwrap();
    eventually("the statement is cancelled", async || {
        api.executor.cancelled() == 1
    })
    .await;
    // The bytes that were sent are in the buffers of the two sockets.
    assert!(api.executor.sent() < 32 << 20, "{}", api.executor.sent());
}

#[tokio::test]
async fn a_response_that_breaks_off_has_no_end() {
    let api = Api::start().await;
    let server = api.listen().await;
    let mut stream = server.connect().await;
    let body = json!({"q": "select fail 500 22012 1000", "output_format": "ndjson"});
    stream.write_all(post(&body).as_bytes()).await.unwrap();
    let text = rest(&mut stream).await;
    assert!(text.starts_with("HTTP/1.1 200 OK"));
    assert!(
        !text.ends_with("0\r\n\r\n"),
        "the last chunk says that all is well"
    );
}

#[tokio::test]
async fn only_responses_that_break_off_count_as_aborted() {
    let api = Api::start().await;
    let server = api.listen().await;
    let aborted = || async {
        let text = api.get("/metrics").await.text().to_owned();
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix("tidegate_http_aborted_total "));
        line.unwrap().parse::<u32>().unwrap()
    };
    let mut stream = server.connect().await;
    for request in [
        HEALTH,
        b"HEAD /healthz HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n",
    ] {
        stream.write_all(request).await.unwrap();
    }
    assert_eq!(
        rest(&mut stream).await.matches("HTTP/1.1 200 OK").count(),
        2
    );
    let mut stream = server.connect().await;
    let large = json!({"q": "select rows 3000 1000"});
    stream.write_all(post(&large).as_bytes()).await.unwrap();
    response(&mut stream).await;
    assert_eq!(aborted().await, 0);
    let broken = json!({"q": "select fail 500 22012 1000", "output_format": "ndjson"});
    stream.write_all(post(&broken).as_bytes()).await.unwrap();
    rest(&mut stream).await;
    assert_eq!(aborted().await, 1);
}

#[tokio::test]
async fn connections_beyond_the_cap_wait() {
    let api = Api::limited(Limits {
        connections: 1,
        ..timeouts(|_| {})
    })
    .await;
    let server = api.listen().await;
    let mut first = server.connect().await;
    first.write_all(HEALTH).await.unwrap();
    response(&mut first).await;
    let mut second = server.connect().await;
    second.write_all(HEALTH).await.unwrap();
    let mut byte = [0];
    assert!(
        tokio::time::timeout(SHORT, second.read(&mut byte))
            .await
            .is_err()
    );
    drop(first);
    response(&mut second).await;
}

#[tokio::test]
async fn the_end_lets_requests_in_flight_end() {
    let api = Api::start().await;
    let mut server = api.listen().await;
    let mut idle = server.connect().await;
    idle.write_all(HEALTH).await.unwrap();
    response(&mut idle).await;
    let mut busy = server.connect().await;
    let body = json!({"q": "select rows 20000 1000", "output_format": "ndjson"});
    busy.write_all(post(&body).as_bytes()).await.unwrap();
    eventually("the statement runs", async || api.executor.sent() > 0).await;
    server.stop();
    assert_eq!(rest(&mut idle).await, "");
    eventually("nobody is let in", async || {
        std::net::TcpStream::connect(server.address).is_err()
    })
    .await;
    let text = rest(&mut busy).await;
    assert!(text.ends_with("0\r\n\r\n"), "the answer was cut off");
    server.stopped().await;
}

#[tokio::test]
async fn the_end_cancels_what_takes_too_long() {
    let api = Api::limited(timeouts(|timeouts| timeouts.drain = SHORT)).await;
    let mut server = api.listen().await;
    let mut busy = server.connect().await;
    busy.write_all(post(&json!({"q": "select hang 0 0"})).as_bytes())
        .await
        .unwrap();
    eventually("the statement runs", async || {
        !api.executor.calls().is_empty()
    })
    .await;
    server.stop();
    server.stopped().await;
    assert_eq!(api.executor.cancelled(), 1);
}
