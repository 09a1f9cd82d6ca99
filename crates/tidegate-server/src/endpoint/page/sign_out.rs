//! `/signout`: ends the browser's session.

use http::Response;

use super::visitor::{Visitor, failure, form};
use crate::body::Body;
use crate::endpoint::Call;
use crate::error::Failure;
use crate::page;
use crate::stack::BodyError;

pub(crate) async fn sign_out<B>(call: Call<'_, B>) -> Result<Response<Body>, Failure>
where
    B: http_body::Body<Data = bytes::Bytes> + Send + Unpin,
    B::Error: Into<BodyError>,
{
    let mut visitor = Visitor::receive(call).await?;
    let next = next(&visitor).await?;
    match &visitor.browser {
        // A link on another site must not sign anybody out: the person says so here.
        Some(browser) if visitor.step() != Some("sign_out") => {
            let (here, token) = (visitor.here(), visitor.token());
            let card = page::sign_out(&form(&here, &token, None), &browser.user.key.name);
            Ok(visitor.show("Sign out", &card, (None, next.as_deref())))
        }
        Some(_) => {
            visitor.leave().await?;
            Ok(gone(&visitor, next.as_deref()))
        }
        None => Ok(gone(&visitor, next.as_deref())),
    }
}

/// Where the browser goes: to the address that the request names, if a client has registered it.
async fn next(visitor: &Visitor<'_>) -> Result<Option<String>, Failure> {
    let Some(uri) = visitor.parameter("redirect_uri") else {
        return Ok(None);
    };
    let known = visitor.app.issuer().is_registered(uri).await;
    Ok(known.map_err(failure)?.then(|| uri.to_owned()))
}

fn gone(visitor: &Visitor<'_>, next: Option<&str>) -> Response<Body> {
    if let Some(next) = next {
        return visitor.go(next);
    }
    let card = page::notice("Signed out", "You are signed out of this browser.", None);
    visitor.show("Signed out", &card, (None, None))
}
