//! `/api/v4/oauth/userinfo`: claims about the user of an access token (OpenID Connect Core 1.0,
//! section 5.3).

use std::borrow::Cow;

use http::request::Parts;
use http::{Method, Response};
use tidegate_oauth::Parameters;

use tidegate_http::app::App;
use tidegate_http::authenticate;
use tidegate_http::body::Body;
use tidegate_http::call::{Call, json};
use tidegate_http::error::{ApiError, NO_STORE};
use tidegate_http::memory::Holder;
use tidegate_http::negotiate::ContentType;
use tidegate_http::request_body::{self, IncomingBody};

/// Handles `GET` and `POST /api/v4/oauth/userinfo`. The token is in `Authorization`. In a `POST`,
/// the token may be in the field `access_token` of a form instead (RFC 6750, section 2.2).
///
/// # Errors
///
/// 401 without a valid token, 403 for a token without the scope `openid`, 400 for two tokens or an
/// invalid form. Also the errors of [`request_body::read`].
pub(crate) async fn user_info<B: IncomingBody>(
    call: Call<'_, B>,
) -> Result<Response<Body>, ApiError> {
    let Call {
        app,
        head,
        body,
        body_limit,
        subject,
        ..
    } = call;
    let in_header = authenticate::bearer(&head.headers)?;
    let in_form = match head.method {
        Method::POST => form_token(app, head, body, body_limit).await?,
        _ => None,
    };
    let token = match (in_header, in_form) {
        (Some(_), Some(_)) => {
            let text = "`access_token`: expected one token, found another one in `Authorization`";
            return Err(ApiError::input(text));
        }
        (Some(token), None) => Cow::Borrowed(token),
        (None, Some(token)) => Cow::Owned(token),
        (None, None) => return Err(ApiError::missing_token("a token is required")),
    };
    let user =
        authenticate::by_token(app, &token, || authenticate::named_database(&head.headers)).await?;
    subject.login = Some(user.login.clone());
    if !user.claims.scopes.has("openid") {
        return Err(ApiError::openid_scope_missing());
    }
    let claims = app.issuer().user_info(&user.claims).await;
    Ok(json(claims.map_err(ApiError::from_bearer)?, NO_STORE))
}

/// The token in a form; `None` if the body is not a form or has no token.
async fn form_token<B: IncomingBody>(
    app: &App,
    head: &Parts,
    body: B,
    body_limit: u64,
) -> Result<Option<String>, ApiError> {
    if ContentType::of(&head.headers) != Some(ContentType::Form) {
        return Ok(None);
    }
    let mut limits = *app.limits();
    limits.request_body = body_limit;
    let reservation = app.memory().reservation(Holder::Anonymous(None));
    let body = request_body::read(body, &head.headers, &limits, reservation).await?;
    let malformed = |error: tidegate_oauth::Error| ApiError::input(error.description());
    let form = Parameters::from_form(&body.bytes).map_err(malformed)?;
    let token = form.text("access_token").map_err(malformed)?;
    Ok(token.map(str::to_owned))
}
