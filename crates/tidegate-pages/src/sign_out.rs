//! `/signout`: ends the browser's session.

use http::Response;

use super::context::{PageContext, form};
use super::form_error::failure;
use crate::template;
use tidegate_http::body::Body;
use tidegate_http::call::Call;
use tidegate_http::error::ApiError;
use tidegate_http::request_body::BodyError;

/// Handles `GET` and `POST /signout`.
pub async fn sign_out<B>(call: Call<'_, B>) -> Result<Response<Body>, ApiError>
where
    B: http_body::Body<Data = bytes::Bytes> + Send + Unpin,
    B::Error: Into<BodyError>,
{
    let mut context = PageContext::receive(call).await?;
    let next = next(&context).await?;
    match &context.browser {
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

/// The URL to which the browser goes after sign-out: the one that the request names, if a client
/// has registered it.
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
