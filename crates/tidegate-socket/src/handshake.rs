//! The opening handshake (RFC 6455, section 4.2).

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
use tidegate_http::error::ApiError;
use tidegate_http::report::REQUEST_ID;
use tidegate_http::{authenticate, percent};

/// The name of the sub-protocol that GraphQL clients use.
const GRAPHQL_TRANSPORT_WS: &str = "graphql-transport-ws";

/// Passes a WebSocket from the handler of the handshake request to the task of the connection.
#[derive(Clone, Debug, Default)]
pub struct Handoff(Arc<Mutex<Option<AcceptedSocket>>>);

/// A WebSocket whose handshake was accepted.
pub struct AcceptedSocket {
    /// Yields the connection when the handshake is complete.
    pub(crate) on_upgrade: OnUpgrade,
    /// The protocol of the socket's messages.
    pub(crate) dialect: Dialect,
    /// The credentials in the request.
    pub(crate) credentials: Credentials,
    /// The id of the request, for log lines.
    pub(crate) request_id: String,
}

impl fmt::Debug for AcceptedSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AcceptedSocket")
            .field("dialect", &self.dialect)
            .field("request_id", &self.request_id)
            .finish_non_exhaustive()
    }
}

/// The sub-protocol of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// Tidegate's own protocol.
    Tidegate,
    GraphQlTransportWs,
    /// The client offered only protocols that are not supported.
    Unknown,
}

/// The credentials in the request of a handshake.
pub(crate) struct Credentials {
    /// The bearer token, or the error if it is malformed; `None` if the request has no token.
    pub token: Option<Result<String, ApiError>>,
    /// The database that the request names. An anonymous caller runs as the default user of this
    /// database.
    pub database: Option<String>,
    /// The schema that the URL names. If it names none, `connection_init` may set the schema.
    pub schema: Option<String>,
}

impl Handoff {
    /// Takes the WebSocket; `None` if no handshake was accepted on the connection.
    pub fn take(&self) -> Option<AcceptedSocket> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn put(&self, accepted: AcceptedSocket) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(accepted);
    }
}

/// Whether a request is a WebSocket handshake.
pub fn is_handshake(headers: &HeaderMap) -> bool {
    has_word(headers, &CONNECTION, "upgrade") && has_word(headers, &UPGRADE, "websocket")
}

/// Accepts the handshake. The caller is authenticated later, on the socket. Browsers hide the
/// response to a failed handshake from the page, so the page could not read the error.
///
/// # Errors
///
/// - 426 if the request is not a WebSocket handshake of version 13.
/// - 400 if the handshake or the query is invalid, or if the address has a schema and the client
///   requests no sub-protocol.
/// - 403 for a page of an origin that is not allowed.
pub fn upgrade(app: &App, head: &Parts, schema: Option<&str>) -> Result<Response<Body>, ApiError> {
    let parts = (
        head.extensions.get::<Handoff>(),
        head.extensions.get::<OnUpgrade>(),
    );
    let (Some(handoff), Some(on_upgrade), true) = (parts.0, parts.1, is_handshake(&head.headers))
    else {
        return Err(ApiError::upgrade_required());
    };
    let accept = accept_key(&head.headers)?;
    check_origin(app, &head.headers)?;
    let (dialect, protocol) = dialect(&head.headers);
    if schema.is_some() && dialect == Dialect::Tidegate {
        return Err(ApiError::input(
            "this address serves the sub-protocol graphql-transport-ws",
        ));
    }
    let request_id = head.headers.get(REQUEST_ID).and_then(|id| id.to_str().ok());
    handoff.put(AcceptedSocket {
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

fn accept_key(headers: &HeaderMap) -> Result<HeaderValue, ApiError> {
    if headers
        .get(SEC_WEBSOCKET_VERSION)
        .map(HeaderValue::as_bytes)
        != Some(b"13")
    {
        return Err(ApiError::upgrade_required());
    }
    let key = headers.get(SEC_WEBSOCKET_KEY);
    let key = key
        .filter(|key| key.len() == 24)
        .ok_or_else(|| ApiError::input("`Sec-WebSocket-Key` must be 16 random bytes in base64"))?;
    HeaderValue::try_from(derive_accept_key(key.as_bytes())).map_err(ApiError::internal)
}

/// Refuses origins that are not allowed. Browsers let every page open a WebSocket to every address,
/// so the service must check the origin.
fn check_origin(app: &App, headers: &HeaderMap) -> Result<(), ApiError> {
    match (app.origins(), headers.get(ORIGIN)) {
        (Origins::Listed(list), Some(origin)) if !list.contains(origin) => Err(
            ApiError::insufficient_privileges("pages of this origin may not call"),
        ),
        _ => Ok(()),
    }
}

/// The protocol of the socket, and the value of `Sec-WebSocket-Protocol` in the response, if any. A
/// handshake with only unknown protocols is accepted too. The socket is then closed with a code,
/// which the client can read.
fn dialect(headers: &HeaderMap) -> (Dialect, Option<HeaderValue>) {
    if has_word(headers, &SEC_WEBSOCKET_PROTOCOL, GRAPHQL_TRANSPORT_WS) {
        let protocol = HeaderValue::from_static(GRAPHQL_TRANSPORT_WS);
        return (Dialect::GraphQlTransportWs, Some(protocol));
    }
    let dialect = if headers.contains_key(SEC_WEBSOCKET_PROTOCOL) {
        Dialect::Unknown
    } else {
        Dialect::Tidegate
    };
    (dialect, None)
}

fn credentials(head: &Parts, schema: Option<&str>) -> Result<Credentials, ApiError> {
    let pairs = percent::form(head.uri.query().unwrap_or_default())
        .ok_or_else(|| ApiError::input("the query of the address cannot be decoded"))?;
    let member = |key: &str| {
        let found = pairs
            .iter()
            .find(|(name, value)| name == key && !value.is_empty());
        found.map(|(_, value)| value.clone())
    };
    let token = match authenticate::bearer(&head.headers) {
        Ok(None) => member("token").map(Ok),
        Ok(Some(token)) => Some(Ok(token.to_owned())),
        Err(failure) => Some(Err(failure)),
    };
    let database = member("database");
    let database = authenticate::named_database_or(&head.headers, database.as_deref())?;
    Ok(Credentials {
        token,
        database: database.map(str::to_owned),
        schema: schema.map(str::to_owned),
    })
}

/// Whether the comma-separated list in a header contains a word, ignoring case.
fn has_word(headers: &HeaderMap, name: &HeaderName, word: &str) -> bool {
    let lines = headers.get_all(name).iter();
    lines
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(','))
        .any(|one| one.trim().eq_ignore_ascii_case(word))
}
