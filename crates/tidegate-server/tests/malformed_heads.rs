//! Tests of malformed HTTP/1.1 heads, and of `Host`.

use serde_json::Value;
use tokio::io::AsyncWriteExt as _;

use crate::fixture::{Api, Server};
use crate::socket::{response, rest};

const HEALTH: &[u8] = b"GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n";

/// Sends the bytes and reads the response, up to the end of the connection.
async fn sent(server: &Server, bytes: &[u8]) -> String {
    let mut stream = server.connect().await;
    stream.write_all(bytes).await.unwrap();
    rest(&mut stream).await
}

/// Checks that the response is a complete error response.
fn assert_refused(response: &str, status: u16) {
    let (head, body) = response.split_once("\r\n\r\n").expect(response);
    assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{head}");
    let field = |name: &str| {
        let named: Vec<_> = head
            .lines()
            .filter_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
            .collect();
        assert_eq!(named.len(), 1, "{name} in {head}");
        named[0]
    };
    assert_eq!(field("x-request-id").len(), 33);
    assert_eq!(field("content-type"), "application/json; charset=utf-8");
    assert_eq!(field("content-length"), body.len().to_string());
    assert!(!field("date").is_empty());
    let body: Value = serde_json::from_str(body).unwrap();
    assert_eq!(body["success"], false);
    assert_eq!(body["code"], status);
    assert_eq!(body["errorCode"], "INPUT_VALIDATION_ERROR");
}

#[tokio::test]
async fn what_is_no_http_is_answered_like_every_other_mistake() {
    let api = Api::start().await;
    let server = api.listen().await;
    let many = "x: y\r\n".repeat(101);
    let long = "x".repeat(70_000);
    for (status, head) in [
        (400, "nonsense\r\n\r\n".to_owned()),
        (400, "GET /healthz HTTP/3.7\r\nhost: a\r\n\r\n".to_owned()),
        (400, "GET /healthz HTTP/1.1\r\nhost a\r\n\r\n".to_owned()),
        (400, "GET /a b HTTP/1.1\r\nhost: a\r\n\r\n".to_owned()),
        (
            400,
            "POST /api/v4/sql HTTP/1.1\r\nhost: a\r\ncontent-length: x\r\n\r\n".to_owned(),
        ),
        (431, format!("GET / HTTP/1.1\r\nhost: a\r\n{many}\r\n")),
        (
            431,
            format!("GET / HTTP/1.1\r\nhost: a\r\nx: {long}\r\n\r\n"),
        ),
        (431, format!("GET /{long} HTTP/1.1\r\nhost: a\r\n\r\n")),
    ] {
        assert_refused(&sent(&server, head.as_bytes()).await, status);
    }
}

#[tokio::test]
async fn nonsense_behind_a_request_is_answered_after_it() {
    let api = Api::start().await;
    let server = api.listen().await;
    let mut stream = server.connect().await;
    for _ in 0..2 {
        stream.write_all(HEALTH).await.unwrap();
        assert!(
            response(&mut stream)
                .await
                .starts_with("HTTP/1.1 200 OK\r\n")
        );
    }
    stream.write_all(b"nonsense\r\n\r\n").await.unwrap();
    assert_refused(&rest(&mut stream).await, 400);
    // Both requests are sent in one piece. The invalid request must not change the response to the
    // valid one.
    let mut stream = server.connect().await;
    let both = [HEALTH, b"nonsense\r\n\r\n"].concat();
    stream.write_all(&both).await.unwrap();
    let replies = rest(&mut stream).await;
    let second = replies.rfind("HTTP/1.1 ").unwrap();
    assert!(replies.starts_with("HTTP/1.1 200 OK\r\n"), "{replies}");
    assert_refused(&replies[second..], 400);
}

#[tokio::test]
async fn a_request_of_http_1_1_has_exactly_one_valid_host() {
    let api = Api::start().await;
    let server = api.listen().await;
    for host in [
        "",
        "host: a\r\nhost: a\r\n",
        "host: a\r\nHost: b\r\n",
        "host: a/b\r\n",
        "host: user@a\r\n",
        "host: a:b\r\n",
    ] {
        for line in [
            "GET /healthz",
            "OPTIONS /api/v4/sql",
            "GET http://a/healthz",
        ] {
            let head = format!("{line} HTTP/1.1\r\n{host}connection: close\r\n\r\n");
            assert_refused(&sent(&server, head.as_bytes()).await, 400);
        }
    }
    for head in [
        "GET /healthz HTTP/1.1\r\nhost:\r\nconnection: close\r\n\r\n",
        "GET /healthz HTTP/1.1\r\nhost: [::1]:8080\r\nconnection: close\r\n\r\n",
        "GET /healthz HTTP/1.0\r\n\r\n",
    ] {
        let response = sent(&server, head.as_bytes()).await;
        assert!(response.contains(" 200 OK\r\n"), "{head}{response}");
    }
}
