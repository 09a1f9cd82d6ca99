//! From a request to an open socket (RFC 6455, section 4.2).

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use http::header::{
    CONNECTION, HeaderName, ORIGIN, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY,
    SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use hyper::upgrade::OnUpgrade;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use tidegate_http::app::{App, Origins};
use tidegate_http::body::Body;
use tidegate_http::error::Failure;
use tidegate_http::report::REQUEST_ID;
use tidegate_http::{authenticate, percent};

/// The sub-protocol of GraphQL clients.
const TRANSPORT: &str = "graphql-transport-ws";

/// Where a request leaves its socket for the connection's task.
#[derive(Clone, Debug, Default)]
pub struct Handoff(Arc<Mutex<Option<Opening>>>);

/// A socket that opens.
pub struct Opening {
    /// The bytes behind the handshake.
    pub(crate) on_upgrade: OnUpgrade,
    /// Which messages it speaks.
    pub(crate) dialect: Dialect,
    /// What the request said of who asks.
    pub(crate) credentials: Credentials,
    /// The id of the request, for the log.
    pub(crate) request_id: String,
}

impl fmt::Debug for Opening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opening")
            .field("dialect", &self.dialect)
            .field("request_id", &self.request_id)
            .finish_non_exhaustive()
    }
}

/// Which messages a socket speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// The service's own.
    Own,
    /// `graphql-transport-ws`; the schema in the address, if there is one, is kept beside.
    Transport,
    /// None of those that the client offered.
    Unknown,
}

/// What a request said of who asks.
pub(crate) struct Credentials {
    /// The token, or why what stood in its place is none.
    pub token: Option<Result<String, Failure>>,
    /// The database whose default user strangers are.
    pub database: Option<String>,
    /// The schema of the address.
    pub schema: Option<String>,
}

impl Handoff {
    /// Takes the socket out, if the connection became one.
    pub fn take(&self) -> Option<Opening> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn put(&self, opening: Opening) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(opening);
    }
}

/// Whether a request asks for a WebSocket.
pub fn is_handshake(headers: &HeaderMap) -> bool {
    has_word(headers, &CONNECTION, "upgrade") && has_word(headers, &UPGRADE, "websocket")
}

/// Answers the handshake; who asks is found out on the socket, where a browser can read the answer.
///
/// # Errors
///
/// 426 for a request that is no handshake, 400 for one that is wrong, 403 for a page of an origin
/// that may not call.
pub fn upgrade(app: &App, head: &Parts, schema: Option<&str>) -> Result<Response<Body>, Failure> {
    let parts = (
        head.extensions.get::<Handoff>(),
        head.extensions.get::<OnUpgrade>(),
    );
    let (Some(handoff), Some(on_upgrade), true) = (parts.0, parts.1, is_handshake(&head.headers))
    else {
        return Err(Failure::upgrade_required());
    };
    let accept = accept_key(&head.headers)?;
    check_origin(app, &head.headers)?;
    let (dialect, protocol) = dialect(&head.headers);
    if schema.is_some() && dialect == Dialect::Own {
        return Err(Failure::input(
            "this address serves the sub-protocol graphql-transport-ws",
        ));
    }
    let request_id = head.headers.get(REQUEST_ID).and_then(|id| id.to_str().ok());
    handoff.put(Opening {
        on_upgrade: on_upgrade.clone(),
        dialect,
        credentials: credentials(head, schema)?,
        request_id: request_id.unwrap_or_default().to_owned(),
    });
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
    if let Some(protocol) = protocol {
        headers.insert(SEC_WEBSOCKET_PROTOCOL, protocol);
    }
    Ok(response)
}

fn accept_key(headers: &HeaderMap) -> Result<HeaderValue, Failure> {
    if headers
        .get(SEC_WEBSOCKET_VERSION)
        .map(HeaderValue::as_bytes)
        != Some(b"13")
    {
        return Err(Failure::upgrade_required());
    }
    let key = headers.get(SEC_WEBSOCKET_KEY);
    let key = key
        .filter(|key| key.len() == 24)
        .ok_or_else(|| Failure::input("`Sec-WebSocket-Key` must be 16 random bytes in base64"))?;
    HeaderValue::try_from(derive_accept_key(key.as_bytes())).map_err(Failure::internal)
}

/// Browsers let every page open a socket, so that it is for the server to look.
fn check_origin(app: &App, headers: &HeaderMap) -> Result<(), Failure> {
    match (app.origins(), headers.get(ORIGIN)) {
        (Origins::Listed(list), Some(origin)) if !list.contains(origin) => Err(
            Failure::insufficient_privileges("pages of this origin may not call"),
        ),
        _ => Ok(()),
    }
}

/// The dialect and the protocol to name. A client that offers only others is told so by a close
/// code, which it can read, and not by a refused handshake.
fn dialect(headers: &HeaderMap) -> (Dialect, Option<HeaderValue>) {
    if has_word(headers, &SEC_WEBSOCKET_PROTOCOL, TRANSPORT) {
        let protocol = HeaderValue::from_static(TRANSPORT);
        return (Dialect::Transport, Some(protocol));
    }
    let dialect = if headers.contains_key(SEC_WEBSOCKET_PROTOCOL) {
        Dialect::Unknown
    } else {
        Dialect::Own
    };
    (dialect, None)
}

fn credentials(head: &Parts, schema: Option<&str>) -> Result<Credentials, Failure> {
    let pairs = percent::form(head.uri.query().unwrap_or_default())
        .ok_or_else(|| Failure::input("the query of the address cannot be decoded"))?;
    let member = |wanted: &str| {
        let found = pairs
            .iter()
            .find(|(name, value)| name == wanted && !value.is_empty());
        found.map(|(_, value)| value.clone())
    };
    let token = match authenticate::bearer(&head.headers) {
        Ok(None) => member("token").map(Ok),
        Ok(Some(token)) => Some(Ok(token.to_owned())),
        Err(failure) => Some(Err(failure)),
    };
    Ok(Credentials {
        token,
        database: authenticate::named_database(&head.headers)?.map(str::to_owned),
        schema: schema.map(str::to_owned),
    })
}

/// Whether a word stands in a header's list, in any letter case.
fn has_word(headers: &HeaderMap, name: &HeaderName, word: &str) -> bool {
    let lines = headers.get_all(name).iter();
    lines
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(','))
        .any(|one| one.trim().eq_ignore_ascii_case(word))
}
