//! Tests of HTTP/2.

use bytes::Bytes;
use h2::client;
use http::{Method, Request};
use serde_json::json;
use tidegate_server::{Limits, Timeouts};

use crate::fixture::{Api, Server, TIMEOUT, eventually};

async fn connect(server: &Server) -> client::SendRequest<Bytes> {
    let (sender, connection) = client::handshake(server.connect().await).await.unwrap();
    tokio::spawn(connection);
    sender.ready().await.unwrap()
}

fn sql() -> Request<()> {
    let request = Request::builder()
        .method(Method::POST)
        .uri("http://a/api/v4/sql");
    request
        .header("content-type", "application/json")
        .body(())
        .unwrap()
}

async fn text(mut body: h2::RecvStream) -> String {
    let mut bytes = Vec::new();
    while let Some(chunk) = body.data().await {
        let chunk = chunk.unwrap();
        body.flow_control().release_capacity(chunk.len()).unwrap();
        bytes.extend_from_slice(&chunk);
    }
    String::from_utf8(bytes).unwrap()
}

#[tokio::test]
async fn many_requests_share_a_connection() {
    let api = Api::start().await;
    let server = api.listen().await;
    let mut sender = connect(&server).await;
    let mut responses = Vec::new();
    for _ in 0..20 {
        let (response, mut body) = sender.send_request(sql(), false).unwrap();
        let request = json!({"q": "select rows 100 1000", "output_format": "ndjson"}).to_string();
        body.send_data(request.into(), true).unwrap();
        responses.push(tokio::spawn(async move {
            let response = response.await.unwrap();
            assert_eq!(response.status(), 200);
            text(response.into_body()).await
        }));
    }
    for response in responses {
        let text = tokio::time::timeout(TIMEOUT, response)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(text.lines().count(), 100);
    }
}

#[tokio::test]
async fn head_has_no_body() {
    let api = Api::start().await;
    let server = api.listen().await;
    let mut sender = connect(&server).await;
    let head = Request::builder()
        .method(Method::HEAD)
        .uri("http://a/api/v4/openapi.json");
    let (response, _) = sender.send_request(head.body(()).unwrap(), true).unwrap();
    let response = response.await.unwrap();
    assert!(
        response.headers()["content-length"]
            .to_str()
            .unwrap()
            .parse::<u64>()
            .unwrap()
            > 0
    );
    assert_eq!(text(response.into_body()).await, "");
}

#[tokio::test]
async fn a_head_that_is_too_large_is_refused_with_a_body_and_an_id() {
    let api = Api::start().await;
    let server = api.listen().await;
    let mut sender = connect(&server).await;
    for (value, path) in [
        (10_000, "/healthz".to_owned()),
        (1, format!("/{}", "x".repeat(10_000))),
    ] {
        let get = |size: usize| {
            let request = Request::builder().uri(format!("http://a{path}"));
            request.header("x", "y".repeat(size)).body(()).unwrap()
        };
        // A head of this size fits, so that the next one is refused for its size only.
        let (response, _) = sender.send_request(get(value), true).unwrap();
        assert_ne!(response.await.unwrap().status(), 431);
        let (response, _) = sender.send_request(get(value + 10_000), true).unwrap();
        let response = response.await.unwrap();
        assert_eq!(response.status(), 431);
        assert_eq!(response.headers()["x-request-id"].len(), 33);
        let kind = &response.headers()["content-type"];
        assert_eq!(kind, "application/json; charset=utf-8");
        assert_eq!(
            text(response.into_body()).await,
            concat!(
                r#"{"success":false,"message":"the head is too large, expected at most 16 KiB "#,
                r#"over HTTP/2","code":431,"errorCode":"INPUT_VALIDATION_ERROR"}"#
            )
        );
    }
    // Above twice the limit, hyper responds by itself. The connection stays open.
    let get = Request::builder().uri("http://a/healthz");
    let get = get.header("x", "y".repeat(40_000)).body(()).unwrap();
    let (response, _) = sender.send_request(get, true).unwrap();
    let response = response.await.unwrap();
    assert_eq!(response.status(), 431);
    assert!(!response.headers().contains_key("x-request-id"));
    let get = Request::builder().uri("http://a/healthz").body(()).unwrap();
    let (response, _) = sender.send_request(get, true).unwrap();
    assert_eq!(response.await.unwrap().status(), 200);
}

#[tokio::test]
async fn a_reset_stream_cancels_its_statement() {
    let api = Api::start().await;
    let server = api.listen().await;
    let mut sender = connect(&server).await;
    let (response, mut body) = sender.send_request(sql(), false).unwrap();
    body.send_data(json!({"q": "select hang 0 0"}).to_string().into(), true)
        .unwrap();
    eventually("the statement runs", async || {
        !api.executor.calls().is_empty()
    })
    .await;
    body.send_reset(h2::Reason::CANCEL);
    drop(response);
    eventually("it is cancelled", async || api.executor.cancelled() == 1).await;
}

#[tokio::test]
async fn a_response_that_breaks_off_is_reset() {
    let api = Api::start().await;
    let server = api.listen().await;
    let mut sender = connect(&server).await;
    let (response, mut body) = sender.send_request(sql(), false).unwrap();
    let request = json!({"q": "select fail 500 22012 1000", "output_format": "csv"}).to_string();
    body.send_data(request.into(), true).unwrap();
    let response = response.await.unwrap();
    assert_eq!(response.status(), 200);
    let mut body = response.into_body();
    let broken = async {
        while let Some(chunk) = body.data().await {
            match chunk {
                Ok(chunk) => body.flow_control().release_capacity(chunk.len()).unwrap(),
                Err(_) => return true,
            }
        }
        false
    };
    assert!(tokio::time::timeout(TIMEOUT, broken).await.unwrap());
}

#[tokio::test]
async fn a_flood_of_resets_ends_the_connection() {
    let api = Api::start().await;
    let server = api.listen().await;
    let mut sender = connect(&server).await;
    let mut flood = 0;
    while flood < 100_000 {
        let Ok(ready) = sender.clone().ready().await else {
            break;
        };
        sender = ready;
        let Ok((response, mut body)) = sender.send_request(sql(), false) else {
            break;
        };
        body.send_reset(h2::Reason::CANCEL);
        drop(response);
        flood += 1;
        tokio::task::yield_now().await;
    }
    assert!(flood < 100_000, "the server let {flood} resets pass");
}

#[tokio::test]
async fn an_idle_connection_is_closed_in_good_order() {
    let idle = std::time::Duration::from_millis(150);
    let timeouts = Timeouts {
        idle,
        ..Timeouts::default()
    };
    let api = Api::limited(Limits {
        timeouts,
        ..Limits::default()
    })
    .await;
    let server = api.listen().await;
    let (mut sender, connection) = client::handshake(server.connect().await).await.unwrap();
    let running = tokio::spawn(connection);
    let health = Request::builder().uri("http://a/healthz").body(()).unwrap();
    let (response, _) = sender.send_request(health, true).unwrap();
    assert_eq!(response.await.unwrap().status(), 200);
    // There is no error, because the server ended the connection gracefully.
    tokio::time::timeout(TIMEOUT, running)
        .await
        .unwrap()
        .unwrap()
        .unwrap();
}

#[tokio::test]
async fn an_unread_response_is_aborted_and_the_others_continue() {
    let timeouts = Timeouts {
        write: std::time::Duration::from_secs(1),
        ..Timeouts::default()
    };
    let api = Api::limited(Limits {
        timeouts,
        memory: 14_000_000,
        ..Limits::default()
    })
    .await;
    let server = api.listen().await;
    let mut sender = connect(&server).await;
    // One response has a statement, the other most of the memory budget. Neither fits into a window
    // of 64 KiB.
    let streamed = json!({"q": "select rows 100000 1000", "output_format": "csv"});
    let whole = json!({"q": "select rows 1500 1000"});
    let mut stalled = Vec::new();
    for request in [&streamed, &whole] {
        let (response, mut body) = sender.send_request(sql(), false).unwrap();
        body.send_data(request.to_string().into(), true).unwrap();
        let response = response.await.unwrap();
        assert_eq!(response.status(), 200);
        stalled.push(response.into_body());
    }
    eventually("the statement is cancelled", async || {
        api.executor.cancelled() == 1
    })
    .await;
    let given_back = async {
        while api.sql(&whole).await.status != 200 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(TIMEOUT, given_back).await.unwrap();
    let request = json!({"q": "select rows 100 1000", "output_format": "csv"});
    let (response, mut body) = sender.send_request(sql(), false).unwrap();
    body.send_data(request.to_string().into(), true).unwrap();
    for mut body in stalled {
        let read_on = async {
            while let Some(chunk) = body.data().await {
                let size = chunk?.len();
                body.flow_control().release_capacity(size)?;
            }
            Ok::<_, h2::Error>(())
        };
        let end = tokio::time::timeout(TIMEOUT, read_on).await.unwrap();
        assert!(end.is_err_and(|error| error.is_reset()));
    }
    let text = text(response.await.unwrap().into_body()).await;
    assert_eq!(text.lines().count(), 101);
}
