//! An issuer on this machine: its key, its tokens, and the HTTP server of its documents.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::{Value, json};
use tidegate_issuers::{Issuer, IssuerSettings, Network, TokenError, VerifiedToken};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// The current time in all tests, in seconds since 1970.
pub(crate) const NOW: u64 = 1_500;

pub(crate) fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

/// A key that signs with ES256.
pub(crate) struct Signer {
    id: String,
    pair: EcdsaKeyPair,
}

#[expect(
    clippy::disallowed_methods,
    reason = "tests use the system's random source"
)]
impl Signer {
    pub(crate) fn new(id: &str) -> Self {
        let (algorithm, random) = (&ECDSA_P256_SHA256_FIXED_SIGNING, SystemRandom::new());
        let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        Self {
            id: id.to_owned(),
            pair: EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random).unwrap(),
        }
    }

    pub(crate) fn jwk(&self) -> Value {
        let point = self.pair.public_key().as_ref();
        let text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        json!({"kty": "EC", "crv": "P-256", "kid": self.id, "use": "sig",
            "x": text(&point[1..33]), "y": text(&point[33..])})
    }

    pub(crate) fn sign(&self, header: &Value, claims: &Value) -> String {
        self.sign_text(&header.to_string(), &claims.to_string())
    }

    pub(crate) fn sign_text(&self, header: &str, claims: &str) -> String {
        let text = |part: &str| URL_SAFE_NO_PAD.encode(part);
        let signed = format!("{}.{}", text(header), text(claims));
        let signature = self.pair.sign(&SystemRandom::new(), signed.as_bytes());
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature.unwrap()))
    }

    pub(crate) fn token(&self, claims: &Value) -> String {
        self.sign(&json!({"alg": "ES256", "kid": self.id}), claims)
    }
}

/// What the server responds at a path.
#[derive(Clone)]
pub(crate) enum Document {
    Json(Value),
    /// The bytes of a whole response.
    Raw(String),
    /// A response whose body does not end.
    Endless,
    /// The server does not respond.
    Silence,
}

/// The HTTP server of an issuer, which serves its documents.
pub(crate) struct IssuerServer {
    pub(crate) url: String,
    documents: Arc<Mutex<HashMap<String, Document>>>,
    requests: Arc<AtomicUsize>,
}

impl IssuerServer {
    /// Starts a server with a discovery document and these keys.
    pub(crate) async fn start(keys: &[&Signer]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let server = Self {
            url: url.clone(),
            documents: Arc::default(),
            requests: Arc::default(),
        };
        let discovery = json!({"issuer": url, "jwks_uri": format!("{url}/keys")});
        server.set(
            "/.well-known/openid-configuration",
            Document::Json(discovery),
        );
        server.set_keys(keys);
        let (documents, requests) = (Arc::clone(&server.documents), Arc::clone(&server.requests));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(respond(
                    stream,
                    Arc::clone(&documents),
                    Arc::clone(&requests),
                ));
            }
        });
        server
    }

    pub(crate) fn set(&self, path: &str, document: Document) {
        self.documents
            .lock()
            .unwrap()
            .insert(path.to_owned(), document);
    }

    pub(crate) fn remove(&self, path: &str) {
        self.documents.lock().unwrap().remove(path);
    }

    /// Moves the document at `path` to `/elsewhere`, and redirects requests for `path` there.
    pub(crate) fn redirect(&self, path: &str) {
        let mut documents = self.documents.lock().unwrap();
        let document = documents.remove(path).unwrap();
        documents.insert("/elsewhere".to_owned(), document);
        let redirect = "HTTP/1.1 302 Found\r\nlocation: /elsewhere\r\nconnection: close\r\n\
                        content-length: 0\r\n\r\n";
        documents.insert(path.to_owned(), Document::Raw(redirect.to_owned()));
    }

    pub(crate) fn set_keys(&self, keys: &[&Signer]) {
        let keys: Vec<_> = keys.iter().map(|key| key.jwk()).collect();
        self.set("/keys", Document::Json(json!({"keys": keys})));
    }

    /// The number of requests that the server has answered.
    pub(crate) fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }

    /// The issuer of this server; `more` are further members of its settings.
    pub(crate) fn issuer(&self, more: Value) -> Issuer {
        let mut settings = json!({"issuer": self.url, "audience": ["api"]});
        let Value::Object(more) = more else {
            panic!("an object was expected");
        };
        settings.as_object_mut().unwrap().extend(more);
        Issuer::new(read(settings), Network::AllowPrivate).unwrap()
    }

    /// The claims of a valid token.
    pub(crate) fn claims(&self) -> Value {
        json!({"iss": self.url, "aud": "api", "sub": "ada", "iat": 1_000, "exp": 2_000})
    }
}

pub(crate) fn read(settings: Value) -> IssuerSettings {
    serde_json::from_value(settings).unwrap()
}

pub(crate) async fn verify(issuer: &Issuer, token: &str) -> Result<VerifiedToken, TokenError> {
    issuer.verify(token, at(NOW)).await
}

async fn respond(
    mut stream: TcpStream,
    documents: Arc<Mutex<HashMap<String, Document>>>,
    requests: Arc<AtomicUsize>,
) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        if stream.read_exact(&mut byte).await.is_err() {
            return;
        }
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    // A response to a request whose body was not read may be lost with the connection.
    let length = head.split("content-length: ").nth(1);
    let length = length.and_then(|rest| rest.lines().next());
    let mut body = vec![0; length.map_or(0, |text| text.parse().unwrap())];
    if stream.read_exact(&mut body).await.is_err() {
        return;
    }
    let path = head.split(' ').nth(1).unwrap().to_owned();
    requests.fetch_add(1, Ordering::SeqCst);
    let document = documents.lock().unwrap().get(&path).cloned();
    let response = match document {
        Some(Document::Json(body)) => response("200 OK", &body.to_string()),
        Some(Document::Raw(response)) => response,
        Some(Document::Silence) => return std::future::pending().await,
        Some(Document::Endless) => {
            let start = "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{\"keys\": [\"";
            let mut result = stream.write_all(start.as_bytes()).await;
            let filler = vec![b'a'; 65_536];
            while result.is_ok() {
                result = stream.write_all(&filler).await;
            }
            return;
        }
        None => response("404 Not Found", ""),
    };
    let _ = stream.write_all(response.as_bytes()).await;
}

fn response(status: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}")
}
