//! `/auth`: a client sends a browser, a person signs in, the browser brings a code back (RFC 6749,
//! section 4.1).

use http::Response;
use tidegate_oauth::{Fault, Refusal};

use super::admission::{Purpose, admit};
use super::visitor::{Visitor, failure, form};
use crate::body::Body;
use crate::endpoint::Call;
use crate::error::Failure;
use crate::page;
use crate::stack::BodyError;

pub(crate) async fn authorize<B>(call: Call<'_, B>) -> Result<Response<Body>, Failure>
where
    B: http_body::Body<Data = bytes::Bytes> + Send + Unpin,
    B::Error: Into<BodyError>,
{
    let mut visitor = Visitor::receive(call).await?;
    let issuer = visitor.app.issuer();
    let request = match issuer.authorization_request(&visitor.query).await {
        Ok(request) => request,
        Err(Refusal::Sent(location)) => return Ok(visitor.go(&location)),
        Err(Refusal::Shown(error)) => return Err(shown(error)),
    };
    let (client, here) = (&request.client, visitor.here());
    let open = client.allow_signup && visitor.app.takes_sign_ups();
    let sign_up = open.then(|| visitor.path(&format!("/signup/?{}", visitor.raw_query())));
    let returns_to = Some(&*request.redirect_uri);
    let purpose = Purpose {
        client: Some(client),
        back: &here,
        returns_to,
        sign_up: sign_up.as_deref(),
    };
    if let Some(answer) = admit(&mut visitor, &purpose).await? {
        return Ok(answer);
    }
    let Some(browser) = visitor.browser.clone() else {
        return Ok(visitor.go(&here));
    };
    let (user, address) = (&browser.user, visitor.visit.address);
    let decision = match visitor.step() {
        Some("decide") => visitor.field("decision"),
        _ => None,
    };
    match decision {
        Some("deny") => {
            let location = issuer.deny_code(&request, user, address).await;
            Ok(visitor.go(&location))
        }
        Some("allow") => Ok(visitor.go(&issuer.grant_code(&request, &browser, address).await)),
        _ if client.confirm || visitor.only_looks() => {
            let token = visitor.token();
            let name = user.key.name.as_str();
            let card = page::consent(&form(&here, &token, None), client, name);
            Ok(visitor.show("Allow access", &card, (None, returns_to)))
        }
        _ => Ok(visitor.go(&issuer.grant_code(&request, &browser, address).await)),
    }
}

/// What is wrong with a request whose sender cannot be told.
pub(super) fn shown(error: tidegate_oauth::Error) -> Failure {
    match error.fault() {
        Fault::Unavailable | Fault::Internal => failure(error),
        // RFC 6749, section 4.1.2.1: the person is told, and the browser goes nowhere.
        _ => Failure::input(format!(
            "The application sent you here with a request that is not in order: {}.",
            error.description()
        )),
    }
}
