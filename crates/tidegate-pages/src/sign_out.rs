//! `/signout`: ends the browser session. Clients may send a browser to this page (OpenID Connect
//! RP-Initiated Logout 1.0).

use http::Response;

use super::context::{PageContext, form};
use super::form_error::{failure, request_error};
use super::received::Received;
use crate::template;
use tidegate_http::body::Body;
use tidegate_http::call::Call;
use tidegate_http::error::ApiError;
use tidegate_http::request_body::IncomingBody;

/// The parameters that are copied to the redirect if a client makes the browser send the request as
/// a `POST` (RP-Initiated Logout 1.0, section 2).
const PARAMETERS: [&str; 4] = [
    "id_token_hint",
    "client_id",
    "post_logout_redirect_uri",
    "state",
];

/// Handles `GET` and `POST /signout`.
pub async fn sign_out<B: IncomingBody>(call: Call<'_, B>) -> Result<Response<Body>, ApiError> {
    let received = Received::read(call).await?;
    if let Some(response) = received.redirected_to_get("/signout", &PARAMETERS)? {
        return Ok(response);
    }
    let mut context = PageContext::of(received).await?;
    let issuer = context.app.issuer();
    let request = issuer.logout_request(&context.query).await;
    let request = request.map_err(request_error)?;
    let next = match request.redirect() {
        Some(uri) => Some(uri.to_owned()),
        None => next(&context).await?,
    };
    match &context.browser {
        // The client has an ID token of the user, so it may sign the user out.
        Some(browser) if !context.is_head() && request.names_user(&browser.user) => {
            context.sign_out().await?;
            Ok(signed_out_page(&context, next.as_deref()))
        }
        // The page asks for confirmation, because a link on another site must not sign the user
        // out.
        Some(browser) if context.step() != Some("sign_out") => {
            let (here, token) = (context.request_path(), context.token());
            let card = template::sign_out(&form(&here, &token, None), &browser.user.key.name);
            Ok(context.show("Sign out", &card, (None, next.as_deref())))
        }
        Some(_) => {
            context.sign_out().await?;
            Ok(signed_out_page(&context, next.as_deref()))
        }
        None => Ok(signed_out_page(&context, next.as_deref())),
    }
}

/// The URL to which the browser goes after sign-out: the parameter `redirect_uri`, if a client has
/// registered this URL; otherwise `None`.
async fn next(context: &PageContext<'_>) -> Result<Option<String>, ApiError> {
    let Some(uri) = context.parameter("redirect_uri") else {
        return Ok(None);
    };
    let known = context.app.issuer().is_registered(uri).await;
    Ok(known.map_err(failure)?.then(|| uri.to_owned()))
}

fn signed_out_page(context: &PageContext<'_>, next: Option<&str>) -> Response<Body> {
    if let Some(next) = next {
        return context.redirect(next);
    }
    let card = template::notice("Signed out", "You are signed out of this browser.", None);
    context.show("Signed out", &card, (None, None))
}
