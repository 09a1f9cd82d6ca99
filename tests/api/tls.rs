//! Tests HTTPS and `wss` with the settings of `serve` (`docs/OPERATIONS.md`).

use std::path::Path;
use std::process::Output;

use futures_util::{SinkExt as _, StreamExt as _};
use reqwest::{Certificate, Client};
use serde_json::{Value, json};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::Role;

use crate::node::{Node, operator};
use crate::operator::{text, tidegate};
use crate::service::{TIMEOUT, eventually};

/// Writes a new certificate for the loopback address, and its key. Returns the certificate, which
/// the client must trust.
fn write(folder: &Path) -> Certificate {
    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    std::fs::write(folder.join("key.pem"), made.signing_key.serialize_pem()).unwrap();
    std::fs::write(folder.join("cert.pem"), made.cert.pem()).unwrap();
    Certificate::from_der(made.cert.der()).unwrap()
}

/// A client that trusts this certificate and opens a new connection for every request.
fn client_trusting(certificate: Certificate) -> Client {
    Client::builder()
        .timeout(TIMEOUT)
        .add_root_certificate(certificate)
        .pool_max_idle_per_host(0)
        .build()
        .unwrap()
}

/// The response to a statement over a WebSocket with TLS.
async fn over_socket(client: &Client, url: &str, q: &str) -> Value {
    let request = client.get(url).header("connection", "upgrade");
    let request = request
        .header("upgrade", "websocket")
        .header("sec-websocket-version", "13")
        .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==");
    let response = request.send().await.unwrap();
    assert_eq!(response.status().as_u16(), 101);
    let stream = response.upgrade().await.unwrap();
    let mut socket = WebSocketStream::from_raw_socket(stream, Role::Client, None).await;
    let message = Message::text(json!({"q": q}).to_string());
    socket.send(message).await.unwrap();
    let received = tokio::time::timeout(TIMEOUT, socket.next()).await.unwrap();
    let received = received.unwrap().unwrap();
    serde_json::from_str(received.to_text().unwrap()).unwrap()
}

#[tokio::test]
async fn a_certificate_of_the_settings_is_used_and_taken_up_again_when_it_changes() {
    let operator = operator().await;
    let folder = tempfile::tempdir().unwrap();
    let old = write(folder.path());
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (certificate, key) = (file("cert.pem"), file("key.pem"));
    let flags = ["--tls-certificate", &certificate, "--tls-key", &key];
    let node = Node::start_with(&operator, &flags, ("https", client_trusting(old.clone()))).await;

    let tokens = node.sign_in("shop", "shop", "owner-password").await;
    let token = tokens["access_token"].as_str().unwrap();
    let asked = node.client.post(format!("{}/api/v4/sql", node.url));
    let asked = asked
        .bearer_auth(token)
        .json(&json!({"q": "select 1 as n"}));
    let response = asked.send().await.unwrap();
    assert_eq!(response.status().as_u16(), 200);
    // The port refuses plain HTTP, so that no credential is sent unencrypted by accident.
    let plain = node.url.replace("https://", "http://");
    let response = Client::new().get(format!("{plain}/healthz")).send().await;
    assert_eq!(response.unwrap().status(), 400);

    let path = format!("{}/api/v4/events?token={token}", node.url);
    let response = over_socket(&client_trusting(old.clone()), &path, "select 1 as n").await;
    assert_eq!(response["data"], json!([{"n": 1}]), "{response}");

    let new = client_trusting(write(folder.path()));
    let health = format!("{}/healthz", node.url);
    eventually("the new certificate is used", || async {
        new.get(&health).send().await.is_ok()
    })
    .await;
    // The client is new, because the old one could resume its TLS session without the certificate.
    assert!(client_trusting(old).get(&health).send().await.is_err());
    node.stop();
}

#[test]
fn a_certificate_without_its_key_or_of_no_use_is_one_clear_line() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path());
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(file("nonsense.pem"), "nonsense").unwrap();
    let serve = |flags: &[&str]| -> Output {
        let mut command = tidegate(&[&["serve", "--listen", "127.0.0.1:0"], flags].concat());
        command.env("TIDEGATE_ADMIN_URL", "postgresql://me@127.0.0.1:1/postgres");
        command.output().unwrap()
    };
    let (certificate, key, nonsense) = (file("cert.pem"), file("key.pem"), file("nonsense.pem"));
    for (flags, named) in [
        (vec!["--tls-certificate", &certificate], "tls_key"),
        (vec!["--tls-key", &key], "tls_certificate"),
        (
            vec!["--tls-certificate", &nonsense, "--tls-key", &key],
            "nonsense.pem",
        ),
        (
            vec!["--tls-certificate", &certificate, "--tls-key", &nonsense],
            "nonsense.pem",
        ),
    ] {
        let output = serve(&flags);
        let message = text(&output.stderr);
        assert!(!output.status.success(), "{flags:?}");
        assert_eq!(message.lines().count(), 1, "{message}");
        assert!(message.contains(named), "{named}: {message}");
    }
}
