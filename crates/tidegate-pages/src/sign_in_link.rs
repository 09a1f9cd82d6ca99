//! `/console/sign-in`: a link that works once and signs in a browser on this machine.

use http::Response;
use tidegate_identity::Error;

use super::context::PageContext;
use super::form_error::{FormError, failure};
use crate::template;
use tidegate_http::body::Body;
use tidegate_http::call::Call;
use tidegate_http::error::ApiError;
use tidegate_http::forwarded;
use tidegate_http::percent;
use tidegate_http::request_body::IncomingBody;

const TITLE: &str = "This link does not work";
const REFUSED: &str = "It works once, within 15 minutes, in a browser on the machine where the \
    service runs. Sign in with your password, or start the program again for a new link.";

/// Handles `GET /console/sign-in`, which signs the browser in and redirects it to the console.
///
/// The response is a page with status 400 in two cases:
///
/// - The request comes from another machine.
/// - The link is missing, expired or used, and the browser is not signed in.
///
/// A `HEAD` request is always redirected, and does not use the link.
///
/// # Errors
///
/// The errors of reading the request, and of the storage.
pub async fn sign_in_link<B: IncomingBody>(call: Call<'_, B>) -> Result<Response<Body>, ApiError> {
    // The address of the connection is not enough, because a proxy on this machine also connects
    // from a loopback address, for clients of other machines.
    let is_local = forwarded::is_local(call.peer, &call.head.headers);
    let mut context = PageContext::receive(call).await?;
    // Programs that preview links send `HEAD`, which must not use up the link.
    if context.is_head() {
        return Ok(context.redirect(&context.path("/")));
    }
    if !is_local {
        return Ok(refusal(&context));
    }
    let token = context.parameter("token").unwrap_or_default().to_owned();
    let identity = context.app.issuer().identity();
    match identity.open_sign_in_link(&token, &context.request).await {
        Ok((cookie, database)) => {
            context.switch_cookie(cookie).await?;
            let database = percent::encode(&database);
            Ok(context.redirect(&context.path(&format!("/?signin={database}"))))
        }
        Err(Error::InvalidLink) => match &context.browser {
            // The link is invalid, but this browser is already signed in.
            Some(browser) => {
                let database = percent::encode(&browser.user.key.database);
                Ok(context.redirect(&context.path(&format!("/?signin={database}"))))
            }
            None => Ok(refusal(&context)),
        },
        Err(error) => Err(failure(error)),
    }
}

fn refusal(context: &PageContext<'_>) -> Response<Body> {
    let console = context.path("/");
    let card = template::notice(TITLE, REFUSED, Some((&console, "Sign in")));
    context.show(TITLE, &card, (Some(&FormError::expired_link()), None))
}
