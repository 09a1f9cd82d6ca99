//! `/device`: a person types the code of a device and decides (RFC 8628, section 3.3).

use http::Response;

use super::admission::{Purpose, admit};
use super::visitor::{Refused, Visitor, form};
use crate::body::Body;
use crate::endpoint::Call;
use crate::error::Failure;
use crate::page;
use crate::stack::BodyError;

pub(crate) async fn device<B>(call: Call<'_, B>) -> Result<Response<Body>, Failure>
where
    B: http_body::Body<Data = bytes::Bytes> + Send + Unpin,
    B::Error: Into<BodyError>,
{
    let mut visitor = Visitor::receive(call).await?;
    if visitor.step() == Some("code") {
        return enter(&visitor).await;
    }
    // A code that came with the address alone is confirmed by the person first.
    if visitor.parameter("step") != Some("confirm") {
        return Ok(ask(&visitor, visitor.parameter("user_code"), None));
    }
    let (issuer, address) = (visitor.app.issuer(), visitor.visit.address);
    let typed = visitor
        .parameter("user_code")
        .unwrap_or_default()
        .to_owned();
    let waiting = issuer.waiting_device(&typed, address, visitor.browser.as_ref());
    let device = match waiting.await {
        Ok(device) => device,
        Err(error) => {
            let refused = Refused::of("user_code", error)?;
            return Ok(ask(&visitor, Some(&typed), Some(&refused)));
        }
    };
    let back = confirmation(&visitor, &device.user_code);
    let purpose = Purpose {
        client: Some(&device.client),
        back: &back,
        returns_to: None,
        sign_up: None,
    };
    if let Some(answer) = admit(&mut visitor, &purpose).await? {
        return Ok(answer);
    }
    let Some(browser) = visitor.browser.clone() else {
        return Ok(visitor.go(&back));
    };
    let Some(allow) = decision(&visitor) else {
        let token = visitor.token();
        let (form, name) = (form(&back, &token, None), browser.user.key.name.as_str());
        let card = page::device_consent(&form, &device.client, name, &device.user_code);
        return Ok(visitor.show("Connect a device", &card, (None, None)));
    };
    let decided = issuer.decide_device(&device, &browser, allow, address);
    if let Err(error) = decided.await {
        let refused = Refused::of("user_code", error)?;
        return Ok(ask(&visitor, Some(&typed), Some(&refused)));
    }
    let title = if allow {
        "Device connected"
    } else {
        "Request denied"
    };
    Ok(visitor.show(title, &page::decided(allow), (None, None)))
}

/// What the person decided, if anything.
fn decision(visitor: &Visitor<'_>) -> Option<bool> {
    if visitor.step() != Some("decide") {
        return None;
    }
    match visitor.field("decision") {
        Some("allow") => Some(true),
        Some("deny") => Some(false),
        _ => None,
    }
}

/// Takes the code that was typed.
async fn enter(visitor: &Visitor<'_>) -> Result<Response<Body>, Failure> {
    let Some(typed) = visitor.field("user_code") else {
        let refused = Refused::missing("user_code");
        return Ok(ask(visitor, None, Some(&refused)));
    };
    let found =
        visitor
            .app
            .issuer()
            .waiting_device(typed, visitor.visit.address, visitor.browser.as_ref());
    match found.await {
        Ok(device) => Ok(visitor.go(&confirmation(visitor, &device.user_code))),
        Err(error) => {
            let refused = Refused::of("user_code", error)?;
            Ok(ask(visitor, Some(typed), Some(&refused)))
        }
    }
}

fn confirmation(visitor: &Visitor<'_>, user_code: &str) -> String {
    visitor.path(&format!("/device?user_code={user_code}&step=confirm"))
}

fn ask(visitor: &Visitor<'_>, typed: Option<&str>, refused: Option<&Refused>) -> Response<Body> {
    let (action, token) = (visitor.path("/device"), visitor.token());
    let card = page::user_code(&form(&action, &token, refused), typed);
    visitor.show("Connect a device", &card, (refused, None))
}
