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
    /// Whether the client used Basic, so that a refusal must name the scheme.
    by_basic: bool,
    address: IpAddr,
}

impl Asked {
    /// What `parse` makes of the parameters and the credentials.
    fn request<T>(
        &self,
        parse: impl FnOnce(&Parameters, Option<&BasicCredentials>) -> Result<T, Error>,
    ) -> Result<T, Failure> {
        parse(&self.parameters, self.basic.as_ref()).map_err(|error| self.failure(error))
    }

    /// What the issuer answers in time; the time is long, because passwords wait for their turn.
    async fn in_time<T>(
        &self,
        answer: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Failure> {
        let busy = Error::Busy {
            retry_after: Duration::from_secs(1),
        };
        tokio::time::timeout(PATIENCE, answer)
            .await
            .unwrap_or(Err(busy))
            .map_err(|error| self.failure(error))
    }

    fn failure(&self, error: Error) -> Failure {
        Failure::from_oauth(error, self.by_basic)
    }
}

/// `POST /api/v4/oauth` (RFC 6749, section 3.2).
pub(crate) async fn token<B>(call: Call<'_, B>) -> Result<Response<Body>, Failure>
where
    B: http_body::Body<Data = Bytes> + Send + Unpin,
    B::Error: Into<BodyError>,
{
    let issuer = call.app.issuer();
    let asked = read(call).await?;
    let request = asked.request(TokenRequest::parse)?;
    let answer = issuer.token(request, Some(asked.address));
    let tokens = asked.in_time(answer).await?;
    Ok(secret(tokens.to_json()))
}

/// `POST /api/v4/oauth/guest`: a token of the default user.
pub(crate) async fn guest<B>(call: Call<'_, B>) -> Result<Response<Body>, Failure>
where
    B: http_body::Body<Data = Bytes> + Send + Unpin,
    B::Error: Into<BodyError>,
{
    let issuer = call.app.issuer();
    let asked = read(call).await?;
    let request = asked.request(GuestRequest::parse)?;
    let answer = issuer.guest(request, Some(asked.address));
    let tokens = asked.in_time(answer).await?;
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
    let issuer = call.app.issuer();
    let asked = read(call).await?;
    let request = asked.request(DeviceRequest::parse)?;
    let answer = issuer.authorize_device(request, Some(asked.address), "/device");
    let codes = asked.in_time(answer).await?;
    Ok(secret(codes.to_json()))
}

/// `POST /api/v4/oauth/revoke` (RFC 7009).
pub(crate) async fn revoke<B>(call: Call<'_, B>) -> Result<Response<Body>, Failure>
where
    B: http_body::Body<Data = Bytes> + Send + Unpin,
    B::Error: Into<BodyError>,
{
    let issuer = call.app.issuer();
    let asked = read(call).await?;
    let request = asked.request(AboutToken::parse)?;
    let answer = issuer.revoke(request, Some(asked.address));
    asked.in_time(answer).await?;
    Ok(secret("{}".to_owned()))
}

/// `POST /api/v4/oauth/introspect` (RFC 7662).
pub(crate) async fn introspect<B>(call: Call<'_, B>) -> Result<Response<Body>, Failure>
where
    B: http_body::Body<Data = Bytes> + Send + Unpin,
    B::Error: Into<BodyError>,
{
    let issuer = call.app.issuer();
    let asked = read(call).await?;
    let request = asked.request(AboutToken::parse)?;
    let answer = issuer.introspect(request, Some(asked.address));
    let told = asked.in_time(answer).await?;
    Ok(secret(told.to_json()))
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
    let authorization = authorization.and_then(|value| value.to_str().ok());
    let basic = authorization.map(BasicCredentials::from_header);
    Ok(Asked {
        parameters: parameters.map_err(malformed)?,
        basic: basic.transpose().map_err(malformed)?.flatten(),
        by_basic: authorization.is_some_and(is_basic),
        address: forwarded::client_address(peer, &head.headers, trusted),
    })
}

/// Whether the value of `Authorization` is of the scheme Basic.
fn is_basic(authorization: &str) -> bool {
    let scheme = authorization.split(' ').next();
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
