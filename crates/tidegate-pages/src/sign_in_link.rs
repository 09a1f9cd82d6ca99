//! `/console/sign-in`: a link that signs a browser on this machine in once.

use http::Response;
use tidegate_identity::Error;

use super::context::PageContext;
use super::form_error::failure;
use tidegate_http::body::Body;
use tidegate_http::call::Call;
use tidegate_http::error::ApiError;
use tidegate_http::forwarded;
use tidegate_http::percent;
use tidegate_http::request_body::BodyError;

const REFUSED: &str = "This link works once, for a short time, and only in a browser on the \
    machine where the service runs. Sign in with your password instead, or restart the program \
    that printed the link to get a new one.";

/// Handles `GET /console/sign-in`, which signs the browser in and redirects it to the console.
///
/// # Errors
///
/// 400 for a request from another machine and for a request without a link, and for an expired or
/// used link in a browser that is not signed in.
pub async fn sign_in_link<B>(call: Call<'_, B>) -> Result<Response<Body>, ApiError>
where
    B: http_body::Body<Data = bytes::Bytes> + Send + Unpin,
    B::Error: Into<BodyError>,
{
    // A proxy on this machine also connects from a loopback address, for clients of other machines.
    let is_local = forwarded::is_local(call.peer, &call.head.headers);
    let mut context = PageContext::receive(call).await?;
    let refused = || ApiError::input(REFUSED);
    // Programs that preview links send `HEAD`. Such a request must not use up the link.
    if context.is_head() {
        return Ok(context.redirect(&context.path("/")));
    }
    if !is_local {
        return Err(refused());
    }
    let token = context.parameter("token").ok_or_else(refused)?.to_owned();
    let identity = context.app.issuer().identity();
    match identity.open_sign_in_link(&token, &context.request).await {
        Ok((cookie, database)) => {
            context.switch_cookie(cookie).await?;
            let database = percent::encode(&database);
            Ok(context.redirect(&context.path(&format!("/?signin={database}"))))
        }
        Err(Error::InvalidLink) => match &context.browser {
            // The link was used before, but this browser is signed in.
            Some(browser) => {
                let database = percent::encode(&browser.user.key.database);
                Ok(context.redirect(&context.path(&format!("/?signin={database}"))))
            }
            None => Err(refused()),
        },
        Err(error) => Err(failure(error)),
    }
}
