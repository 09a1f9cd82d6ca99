//! `/auth`: the authorization endpoint (RFC 6749, section 4.1).

use http::Response;
use tidegate_oauth::AuthorizationError;

use super::context::{PageContext, form};
use super::form_error::{failure, request_error};
use super::sign_in::{Purpose, require_sign_in};
use crate::template;
use tidegate_http::body::Body;
use tidegate_http::call::Call;
use tidegate_http::error::ApiError;
use tidegate_http::request_body::BodyError;

/// Handles `GET` and `POST /auth`.
pub async fn authorize<B>(call: Call<'_, B>) -> Result<Response<Body>, ApiError>
where
    B: http_body::Body<Data = bytes::Bytes> + Send + Unpin,
    B::Error: Into<BodyError>,
{
    let mut context = PageContext::receive(call).await?;
    let issuer = context.app.issuer();
    let request = match issuer.authorization_request(&context.query).await {
        Ok(request) => request,
        Err(AuthorizationError::Redirect(location)) => return Ok(context.redirect(&location)),
        Err(AuthorizationError::Display(error)) => return Err(request_error(error)),
    };
    let (client, here) = (&request.client, context.request_path());
    let open = client.allow_signup && context.app.allows_sign_up();
    let sign_up = open.then(|| context.path(&format!("/signup/?{}", context.raw_query())));
    let returns_to = Some(&*request.redirect_uri);
    let purpose = Purpose {
        client: Some(client),
        database: request.database.as_deref(),
        back: &here,
        returns_to,
        sign_up: sign_up.as_deref(),
    };
    if let Some(answer) = require_sign_in(&mut context, &purpose).await? {
        return Ok(answer);
    }
    let Some(browser) = context.browser.clone() else {
        return Ok(context.redirect(&here));
    };
    let (user, address) = (&browser.user, context.request.address);
    let decision = match context.step() {
        Some("decide") => context.field("decision"),
        _ => None,
    };
    match decision {
        Some("deny") => {
            let location = issuer.deny_code(&request, user, address).await;
            Ok(context.redirect(&location))
        }
        Some("allow") => {
            Ok(context.redirect(&issuer.grant_code(&request, &browser, address).await))
        }
        _ if context.is_head()
            || issuer
                .needs_consent(&request, &browser)
                .await
                .map_err(failure)? =>
        {
            let token = context.token();
            let name = user.key.name.as_str();
            let card =
                template::consent(&form(&here, &token, None), client, (name, request.scopes));
            Ok(context.show("Allow access", &card, (None, returns_to)))
        }
        _ => Ok(context.redirect(&issuer.grant_code(&request, &browser, address).await)),
    }
}
