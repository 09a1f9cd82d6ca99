//! The OAuth endpoints. They decode requests and encode responses; the issuer handles the requests.

use std::net::IpAddr;
use std::time::Duration;

use http::header::{AUTHORIZATION, PRAGMA};
use http::{HeaderValue, Response, StatusCode};
use tidegate_identity::Error as IdentityError;
use tidegate_oauth::{
    BasicCredentials, DeviceRequest, Error, GuestRequest, Issuer, Parameters,
    TokenManagementRequest, TokenRequest,
};

use tidegate_http::body::Body;
use tidegate_http::call::{Call, json};
use tidegate_http::error::{ApiError, NO_STORE};
use tidegate_http::memory::Holder;
use tidegate_http::negotiate::ContentType;
use tidegate_http::request_body::IncomingBody;
use tidegate_http::{forwarded, request_body};

/// The timeout for a response, including the wait for a hashing thread.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);

struct OauthRequest {
    parameters: Parameters,
    basic: Option<BasicCredentials>,
    /// Whether the client used HTTP Basic. If so, a 401 must name this scheme in
    /// `WWW-Authenticate`.
    by_basic: bool,
    address: IpAddr,
}

/// Handles `POST /api/v4/oauth` (RFC 6749, section 3.2).
pub(crate) async fn token<B: IncomingBody>(call: Call<'_, B>) -> Result<Response<Body>, ApiError> {
    let tokens = respond(call, TokenRequest::parse, Issuer::token).await?;
    Ok(uncached(tokens.to_json()))
}

/// Handles `POST /api/v4/oauth/guest`, which issues a token of the default user.
pub(crate) async fn guest<B: IncomingBody>(call: Call<'_, B>) -> Result<Response<Body>, ApiError> {
    let tokens = respond(call, GuestRequest::parse, Issuer::guest).await?;
    let mut response = uncached(tokens.to_json());
    *response.status_mut() = StatusCode::CREATED;
    Ok(response)
}

/// Handles `POST /api/v4/oauth/device`, which issues codes to a device (RFC 8628, section 3.1).
pub(crate) async fn device<B: IncomingBody>(call: Call<'_, B>) -> Result<Response<Body>, ApiError> {
    let codes = respond(call, DeviceRequest::parse, |issuer, request, address| {
        issuer.authorize_device(request, address, "/device")
    });
    Ok(uncached(codes.await?.to_json()))
}

/// Handles `POST /api/v4/oauth/revoke` (RFC 7009).
pub(crate) async fn revoke<B: IncomingBody>(call: Call<'_, B>) -> Result<Response<Body>, ApiError> {
    respond(call, TokenManagementRequest::parse, Issuer::revoke).await?;
    Ok(uncached("{}".to_owned()))
}

/// Handles `POST /api/v4/oauth/introspect` (RFC 7662).
pub(crate) async fn introspect<B: IncomingBody>(
    call: Call<'_, B>,
) -> Result<Response<Body>, ApiError> {
    let reported = respond(call, TokenManagementRequest::parse, Issuer::introspect).await?;
    Ok(uncached(reported.to_json()))
}

/// Decodes a request, and returns the issuer's response to it. The timeout is long, because
/// passwords wait in a queue to be hashed.
async fn respond<'a, B, Q, T, F>(
    call: Call<'a, B>,
    parse: fn(&Parameters, Option<&BasicCredentials>) -> Result<Q, Error>,
    ask: impl FnOnce(&'a Issuer, Q, Option<IpAddr>) -> F,
) -> Result<T, ApiError>
where
    B: IncomingBody,
    F: Future<Output = Result<T, Error>>,
{
    let issuer = call.app.issuer();
    let asked = read(call).await?;
    let refused = |error| ApiError::from_oauth(error, asked.by_basic);
    let request = parse(&asked.parameters, asked.basic.as_ref()).map_err(refused)?;
    let busy = IdentityError::Busy {
        retry_after: Duration::from_secs(1),
    };
    let response = ask(issuer, request, Some(asked.address));
    let response = tokio::time::timeout(RESPONSE_TIMEOUT, response).await;
    response.unwrap_or(Err(busy.into())).map_err(refused)
}

async fn read<B: IncomingBody>(call: Call<'_, B>) -> Result<OauthRequest, ApiError> {
    let Call {
        app,
        peer,
        head,
        body,
        body_limit,
        ..
    } = call;
    let trusted = app.trusted_proxies();
    if !app.insecure_http() && !forwarded::is_private(peer, &head.headers, trusted) {
        return Err(ApiError::input("credentials are taken over HTTPS only"));
    }
    // Parameters in the URL are refused, because proxies log URLs.
    if head.uri.query().is_some_and(|query| !query.is_empty()) {
        return Err(ApiError::input(
            "parameters belong in the body, not in the address",
        ));
    }
    let kind = ContentType::of(&head.headers);
    let mut limits = *app.limits();
    limits.request_body = body_limit;
    let reservation = app.memory().reservation(Holder::Anonymous(None));
    let body = request_body::read(body, &head.headers, &limits, reservation).await?;
    let malformed = |error| ApiError::from_oauth(error, false);
    let parameters = match kind {
        Some(ContentType::Json) => Parameters::from_json(&body.bytes),
        Some(ContentType::Form) => Parameters::from_form(&body.bytes),
        Some(ContentType::JsonRpc) | None => Err(IdentityError::Malformed {
            part: "Content-Type",
            expected: "JSON or a form",
        }
        .into()),
    };
    let authorization = head.headers.get(AUTHORIZATION);
    let authorization = authorization.and_then(|value| value.to_str().ok());
    let basic = authorization.map(BasicCredentials::from_header);
    Ok(OauthRequest {
        parameters: parameters.map_err(malformed)?,
        basic: basic.transpose().map_err(malformed)?.flatten(),
        by_basic: authorization.is_some_and(is_basic),
        address: forwarded::client_address(peer, &head.headers, trusted),
    })
}

/// Whether the value of `Authorization` has the scheme Basic.
fn is_basic(authorization: &str) -> bool {
    let scheme = authorization.split(' ').next();
    scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case("basic"))
}

/// A response with status 200 and a body that must not be cached (RFC 6749, section 5.1).
fn uncached(body: String) -> Response<Body> {
    let mut response = json(body, NO_STORE);
    response
        .headers_mut()
        .insert(PRAGMA, HeaderValue::from_static("no-cache"));
    response
}
