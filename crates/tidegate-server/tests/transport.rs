//! Tests of what requires HTTPS, with TLS here or at a trusted proxy.

use http::Method;
use tidegate_server::Peer;

use crate::fixture::{Api, TestResponse, password, request};

const HSTS: &str = "strict-transport-security";

/// A service that trusts a proxy on the same machine.
async fn behind_a_proxy() -> Api {
    Api::with(|builder| builder.trusted_proxies(vec!["127.0.0.1/32".parse().unwrap()])).await
}

async fn token(api: &Api, headers: &[(&str, &str)]) -> TestResponse {
    let mut request =
        request(Method::POST, "/api/v4/oauth").header("content-type", "application/json");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let body = password("alice").to_string();
    api.call(request.body(body).unwrap()).await
}

#[tokio::test]
async fn https_sends_hsts_and_plain_loopback_does_not() {
    let mut api = behind_a_proxy().await;
    for (headers, expected) in [
        (&[][..], ""),
        (&[("x-forwarded-proto", "http")][..], ""),
        (&[("x-forwarded-proto", "https")][..], "max-age=31536000"),
    ] {
        let response = token(&api, headers).await;
        assert_eq!(response.header(HSTS), expected, "{headers:?}");
    }
    api.peer.encrypted = true;
    for path in ["/healthz", "/account", "/nowhere", "/assets/tidegate.css"] {
        let response = api.get(path).await;
        assert_eq!(response.header(HSTS), "max-age=31536000", "{path}");
    }
    let stranger = Peer {
        address: "203.0.113.9".parse().unwrap(),
        encrypted: false,
        loopback: false,
    };
    api.peer = stranger;
    let response = token(&api, &[("x-forwarded-proto", "https")]).await;
    assert_eq!(response.status, 400);
    assert_eq!(response.header(HSTS), "");
}

#[tokio::test]
async fn a_local_proxy_may_forward_remote_clients() {
    let api = behind_a_proxy().await;
    for (headers, status) in [
        (&[][..], 200),
        (&[("x-forwarded-for", "127.0.0.1")][..], 200),
        (&[("x-forwarded-for", "1.2.3.4")][..], 400),
        (&[("x-forwarded-for", "unknown")][..], 400),
        (&[("forwarded", "for=1.2.3.4;proto=http")][..], 400),
        (
            &[
                ("x-forwarded-for", "1.2.3.4"),
                ("x-forwarded-proto", "https"),
            ][..],
            200,
        ),
    ] {
        let response = token(&api, headers).await;
        assert_eq!(response.status, status, "{headers:?}: {}", response.text());
    }
    let page = request(Method::GET, "/account").header("x-forwarded-for", "1.2.3.4");
    let page = api.call(page.body(String::new()).unwrap()).await;
    assert_eq!(page.status, 400, "the pages too");
}
