//! The OAuth endpoints: what they read and how they answer; the issuer decides everything else.

use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, PRAGMA};
use http::{HeaderValue, Response, StatusCode};
use tidegate_oauth::{
    AboutToken, BasicCredentials, DeviceRequest, Error, GuestRequest, Parameters, TokenRequest,
};

use super::{Call, json};
use crate::body::Body;
use crate::error::{Failure, NO_STORE};
use crate::forwarded;
use crate::negotiate::ContentType;
use crate::request_body;
use crate::stack::BodyError;

/// Token requests are small; a larger one is not worth reading.
const LARGEST: u64 = 64 * 1024;

/// Nobody waits longer for an answer, whatever hangs behind it.
const PATIENCE: Duration = Duration::from_secs(30);

/// What an OAuth request holds.
struct Asked {
    parameters: Parameters,
    basic: Option<BasicCredentials>,
    address: IpAddr,
}

/// `POST /api/v4/oauth` (RFC 6749, section 3.2).
pub(crate) async fn token<B>(call: Call<'_, B>) -> Result<Response<Body>, Failure>
where
    B: http_body::Body<Data = Bytes> + Send + Unpin,
    B::Error: Into<BodyError>,
{
    let (issuer, by_basic) = (call.app.issuer(), by_basic(&call));
    let asked = read(call).await?;
    let answer = async {
        let request = TokenRequest::parse(&asked.parameters, asked.basic.as_ref())?;
        issuer.token(request, Some(asked.address)).await
    };
    let tokens = within(answer)
        .await
        .map_err(|error| Failure::from_oauth(error, by_basic))?;
    Ok(secret(tokens.to_json()))
}

/// `POST /api/v4/oauth/guest`: a token of the default user.
pub(crate) async fn guest<B>(call: Call<'_, B>) -> Result<Response<Body>, Failure>
where
    B: http_body::Body<Data = Bytes> + Send + Unpin,
    B::Error: Into<BodyError>,
{
    let (issuer, by_basic) = (call.app.issuer(), by_basic(&call));
    let asked = read(call).await?;
    let answer = async {
        let request = GuestRequest::parse(&asked.parameters, asked.basic.as_ref())?;
        issuer.guest(request, Some(asked.address)).await
    };
    let tokens = within(answer)
        .await
        .map_err(|error| Failure::from_oauth(error, by_basic))?;
    let mut response = secret(tokens.to_json());
    *response.status_mut() = StatusCode::CREATED;
    Ok(response)
}

/// `POST /api/v4/oauth/device`: codes for a device (RFC 8628, section 3.1).
pub(crate) async fn device<B>(call: Call<'_, B>) -> Result<Response<Body>, Failure>
where
    B: http_body::Body<Data = Bytes> + Send + Unpin,
    B::Error: Into<BodyError>,
{
    let (issuer, by_basic) = (call.app.issuer(), by_basic(&call));
    let asked = read(call).await?;
    let answer = async {
        let request = DeviceRequest::parse(&asked.parameters, asked.basic.as_ref())?;
        issuer
            .authorize_device(request, Some(asked.address), "/device")
            .await
    };
    let codes = within(answer)
        .await
        .map_err(|error| Failure::from_oauth(error, by_basic))?;
    Ok(secret(codes.to_json()))
}

/// `POST /api/v4/oauth/revoke` (RFC 7009).
pub(crate) async fn revoke<B>(call: Call<'_, B>) -> Result<Response<Body>, Failure>
where
    B: http_body::Body<Data = Bytes> + Send + Unpin,
    B::Error: Into<BodyError>,
{
    let (issuer, by_basic) = (call.app.issuer(), by_basic(&call));
    let asked = read(call).await?;
    let answer = async {
        let request = AboutToken::parse(&asked.parameters, asked.basic.as_ref())?;
        issuer.revoke(request, Some(asked.address)).await
    };
    within(answer)
        .await
        .map_err(|error| Failure::from_oauth(error, by_basic))?;
    Ok(secret("{}".to_owned()))
}

/// `POST /api/v4/oauth/introspect` (RFC 7662).
pub(crate) async fn introspect<B>(call: Call<'_, B>) -> Result<Response<Body>, Failure>
where
    B: http_body::Body<Data = Bytes> + Send + Unpin,
    B::Error: Into<BodyError>,
{
    let (issuer, by_basic) = (call.app.issuer(), by_basic(&call));
    let asked = read(call).await?;
    let answer = async {
        let request = AboutToken::parse(&asked.parameters, asked.basic.as_ref())?;
        issuer.introspect(request, Some(asked.address)).await
    };
    let told = within(answer)
        .await
        .map_err(|error| Failure::from_oauth(error, by_basic))?;
    Ok(secret(told.to_json()))
}

/// What the issuer does in time; the time is long, because passwords wait for their turn.
async fn within<T>(answer: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    let busy = |_| {
        Err(Error::Busy {
            retry_after: Duration::from_secs(1),
        })
    };
    tokio::time::timeout(PATIENCE, answer)
        .await
        .unwrap_or_else(busy)
}

async fn read<B>(call: Call<'_, B>) -> Result<Asked, Failure>
where
    B: http_body::Body<Data = Bytes> + Send + Unpin,
    B::Error: Into<BodyError>,
{
    let Call {
        app,
        peer,
        head,
        body,
        ..
    } = call;
    let trusted = app.trusted_proxies();
    if !app.insecure_http() && !forwarded::is_private(peer, &head.headers, trusted) {
        return Err(Failure::input("credentials are taken over HTTPS only"));
    }
    // What stands in an address ends up in logs.
    if head.uri.query().is_some_and(|query| !query.is_empty()) {
        return Err(Failure::input(
            "parameters belong in the body, not in the address",
        ));
    }
    let kind = ContentType::of(&head.headers);
    let mut limits = *app.limits();
    limits.request_body = limits.request_body.min(LARGEST);
    let body = request_body::read(body, &head.headers, &limits, app.memory().share()).await?;
    let malformed = |error| Failure::from_oauth(error, false);
    let parameters = match kind {
        Some(ContentType::Json) => Parameters::from_json(&body.bytes),
        Some(ContentType::Form) => Parameters::from_form(&body.bytes),
        Some(ContentType::JsonRpc) | None => Err(Error::Malformed {
            part: "Content-Type",
            expected: "JSON or a form",
        }),
    };
    let authorization = head.headers.get(AUTHORIZATION);
    let basic = authorization
        .and_then(|value| value.to_str().ok())
        .map(BasicCredentials::from_header);
    Ok(Asked {
        parameters: parameters.map_err(malformed)?,
        basic: basic.transpose().map_err(malformed)?.flatten(),
        address: forwarded::client_address(peer, &head.headers, trusted),
    })
}

fn by_basic<B>(call: &Call<'_, B>) -> bool {
    let value = call
        .head
        .headers
        .get(AUTHORIZATION)
        .and_then(|value| value.to_str().ok());
    let scheme = value.and_then(|value| value.split(' ').next());
    scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case("basic"))
}

/// 200 with a body that nobody may keep (RFC 6749, section 5.1).
fn secret(body: String) -> Response<Body> {
    let mut response = json(body, NO_STORE);
    response
        .headers_mut()
        .insert(PRAGMA, HeaderValue::from_static("no-cache"));
    response
}
