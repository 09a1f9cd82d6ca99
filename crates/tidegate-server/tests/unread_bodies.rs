//! Tests of request bodies that are unread when an error response is ready (RFC 9112, section 9.6).

use std::time::Duration;

use tokio::io::AsyncWriteExt as _;

use crate::fixture::Api;
use crate::socket::{response, rest};

/// Requests that are refused because of their heads.
const REFUSED: [(u16, &str); 4] = [
    (404, "POST /nowhere HTTP/1.1\r\nhost: a\r\n"),
    (405, "POST /healthz HTTP/1.1\r\nhost: a\r\n"),
    (
        415,
        "POST /api/v4/sql HTTP/1.1\r\nhost: a\r\ncontent-type: text/plain\r\n",
    ),
    (
        401,
        "POST /api/v4/sql HTTP/1.1\r\nhost: a\r\nauthorization: Bearer x\r\n",
    ),
];

/// Whether a response announces that the connection will be closed.
fn closes(response: &str) -> bool {
    response
        .lines()
        .any(|line| line.eq_ignore_ascii_case("connection: close"))
}

#[tokio::test]
async fn a_small_body_behind_a_refused_head_leaves_the_connection_open() {
    let api = Api::start().await;
    let server = api.listen().await;
    let mut stream = server.connect().await;
    for (status, head) in REFUSED {
        for (framing, body) in [
            ("content-length: 7\r\n\r\n", "{\"q\":1}"),
            (
                "transfer-encoding: chunked\r\n\r\n",
                "7\r\n{\"q\":1}\r\n0\r\n\r\n",
            ),
        ] {
            let sent = format!("{head}{framing}");
            stream.write_all(sent.as_bytes()).await.unwrap();
            // The head must be handled before the body arrives.
            tokio::time::sleep(Duration::from_millis(20)).await;
            stream.write_all(body.as_bytes()).await.unwrap();
            let response = response(&mut stream).await;
            assert!(
                response.starts_with(&format!("HTTP/1.1 {status} ")),
                "{response}"
            );
            assert!(!closes(&response), "{response}");
        }
    }
}

#[tokio::test]
async fn a_large_or_missing_body_behind_a_refused_head_ends_the_connection_and_says_so() {
    let api = Api::start().await;
    let server = api.listen().await;
    for (status, head) in REFUSED {
        for (framing, body) in [
            // The body is too large to be read and discarded.
            ("content-length: 100000\r\n\r\n", "{"),
            // The body is sent too slowly.
            ("content-length: 7\r\n\r\n", "{\"q\""),
            // The body has no end.
            ("transfer-encoding: chunked\r\n\r\n", "1\r\n{\r\n"),
            // The client waits for `100 Continue` before it sends the body.
            ("content-length: 7\r\nexpect: 100-continue\r\n\r\n", ""),
        ] {
            let mut stream = server.connect().await;
            let sent = format!("{head}{framing}{body}");
            stream.write_all(sent.as_bytes()).await.unwrap();
            let response = rest(&mut stream).await;
            assert!(
                response.starts_with(&format!("HTTP/1.1 {status} ")),
                "{response}"
            );
            assert!(closes(&response), "{framing}: {response}");
        }
    }
}
