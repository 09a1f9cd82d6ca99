//! Tests of HTTPS.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tidegate_server::{Certificate, CertificateError, Limits, Listener, Timeouts};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::fixture::{Api, Server, TIMEOUT};

/// Writes a new certificate for `localhost` and its key to files. Returns the certificate, which
/// the client must trust.
fn write(folder: &Path) -> CertificateDer<'static> {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    std::fs::write(folder.join("key.pem"), made.signing_key.serialize_pem()).unwrap();
    std::fs::write(folder.join("cert.pem"), made.cert.pem()).unwrap();
    made.cert.der().clone()
}

fn certificate(folder: &Path) -> Result<Certificate, CertificateError> {
    Certificate::read(&folder.join("cert.pem"), &folder.join("key.pem"))
}

async fn listen(api: &Api, certificate: Certificate) -> Server {
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    api.serve(Listener::tls(socket, certificate), address)
}

async fn connect(
    server: &Server,
    trusted: &CertificateDer<'static>,
    protocols: &[&str],
) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let mut config = builder
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = protocols
        .iter()
        .map(|name| name.as_bytes().to_vec())
        .collect();
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(Arc::new(config))
        .connect(name, server.connect().await)
        .await
}

#[tokio::test]
async fn http_1_and_2_are_spoken_over_tls() {
    let folder = tempfile::tempdir().unwrap();
    let trusted = write(folder.path());
    let api = Api::start().await;
    let server = listen(&api, certificate(folder.path()).unwrap()).await;

    let mut stream = connect(&server, &trusted, &["http/1.1"]).await.unwrap();
    stream
        .write_all(b"GET /healthz HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
        .await
        .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    assert!(text.starts_with("HTTP/1.1 200 OK"), "{text}");

    let stream = connect(&server, &trusted, &["h2", "http/1.1"])
        .await
        .unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let (mut sender, connection) = h2::client::handshake(stream).await.unwrap();
    tokio::spawn(connection);
    let request = http::Request::builder()
        .uri("https://localhost/healthz")
        .body(())
        .unwrap();
    let (response, _) = sender.send_request(request, true).unwrap();
    assert_eq!(response.await.unwrap().status(), 200);
}

#[tokio::test]
async fn a_changed_certificate_is_taken_up_without_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let old = write(folder.path());
    let api = Api::start().await;
    let certificate = certificate(folder.path()).unwrap();
    let server = listen(&api, certificate.clone()).await;
    let watching = tokio::spawn(certificate.watch(Duration::from_millis(5)));
    connect(&server, &old, &[]).await.unwrap();

    let new = write(folder.path());
    let deadline = std::time::Instant::now() + TIMEOUT;
    while connect(&server, &new, &[]).await.is_err() {
        assert!(
            std::time::Instant::now() < deadline,
            "the new certificate is never used"
        );
    }
    assert!(connect(&server, &old, &[]).await.is_err());
    watching.abort();
}

#[tokio::test]
async fn a_broken_file_leaves_the_certificate_in_use() {
    let folder = tempfile::tempdir().unwrap();
    let trusted = write(folder.path());
    let api = Api::start().await;
    let certificate = certificate(folder.path()).unwrap();
    let server = listen(&api, certificate.clone()).await;
    std::fs::write(folder.path().join("cert.pem"), "nonsense").unwrap();
    assert!(matches!(
        certificate.reload(),
        Err(CertificateError::Unreadable { .. })
    ));
    connect(&server, &trusted, &[]).await.unwrap();
}

#[tokio::test]
async fn an_unusable_certificate_is_reported_with_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let missing = certificate(folder.path()).unwrap_err();
    let expected = "cert.pem with the certificate cannot be read";
    assert!(missing.to_string().contains(expected), "{missing}");
    write(folder.path());
    let other = rcgen::KeyPair::generate().unwrap();
    std::fs::write(folder.path().join("key.pem"), other.serialize_pem()).unwrap();
    let foreign = certificate(folder.path()).unwrap_err();
    assert!(
        matches!(foreign, CertificateError::Unusable { .. }),
        "{foreign}"
    );
}

#[tokio::test]
async fn a_handshake_that_never_begins_is_closed() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path());
    let timeouts = Timeouts {
        handshake: Duration::from_millis(100),
        ..Timeouts::default()
    };
    let api = Api::limited(Limits {
        timeouts,
        ..Limits::default()
    })
    .await;
    let server = listen(&api, certificate(folder.path()).unwrap()).await;
    let mut stream = server.connect().await;
    let mut bytes = Vec::new();
    let closed = tokio::time::timeout(TIMEOUT, stream.read_to_end(&mut bytes)).await;
    assert!(closed.is_ok());
}

#[tokio::test]
async fn plain_http_on_an_https_port_gets_an_explanation() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path());
    let api = Api::start().await;
    let server = listen(&api, certificate(folder.path()).unwrap()).await;
    let mut stream = server.connect().await;
    stream
        .write_all(b"GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n")
        .await
        .unwrap();
    let mut text = String::new();
    let read = stream.read_to_string(&mut text);
    tokio::time::timeout(TIMEOUT, read).await.unwrap().unwrap();
    assert!(text.starts_with("HTTP/1.1 400 Bad Request"), "{text}");
    assert!(text.contains("this port speaks HTTPS"), "{text}");
}
