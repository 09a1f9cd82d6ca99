//! `/device`: a person enters the code of a device, and allows or denies the device (RFC 8628,
//! section 3.3).

use http::Response;

use super::context::{PageContext, form};
use super::form_error::FormError;
use super::purpose::Purpose;
use super::sign_in::require_sign_in;
use crate::template;
use tidegate_http::body::Body;
use tidegate_http::call::Call;
use tidegate_http::error::ApiError;
use tidegate_http::request_body::IncomingBody;

/// Handles `GET` and `POST /device`.
pub async fn device<B: IncomingBody>(call: Call<'_, B>) -> Result<Response<Body>, ApiError> {
    let mut context = PageContext::receive(call).await?;
    if context.step() == Some("code") {
        return enter(&context).await;
    }
    // Anyone can make a link with a code in its query, so the person must confirm the code first.
    if context.parameter("step") != Some("confirm") {
        return Ok(ask(&context, context.parameter("user_code"), None));
    }
    let (issuer, address) = (context.app.issuer(), context.request.address);
    let typed = context
        .parameter("user_code")
        .unwrap_or_default()
        .to_owned();
    let waiting = issuer.pending_device(&typed, address, context.browser.as_ref());
    let device = match waiting.await {
        Ok(device) => device,
        Err(error) => {
            let refused = FormError::of("user_code", error)?;
            return Ok(ask(&context, Some(&typed), Some(&refused)));
        }
    };
    let page = confirmation(&context, &device.user_code);
    let purpose = Purpose {
        client: Some(&device.client),
        database: device.client.database.as_deref(),
        ..Purpose::own_page(&page)
    };
    if let Some(response) = require_sign_in(&mut context, &purpose).await? {
        return Ok(response);
    }
    let Some(browser) = context.browser.clone() else {
        return Ok(context.redirect(&page));
    };
    let Some(allow) = decision(&context) else {
        let token = context.token();
        let (form, name) = (form(&page, &token, None), browser.user.key.name.as_str());
        let card = template::device_consent(&form, &device, name);
        return Ok(context.show("Connect a device", &card, (None, None)));
    };
    let decided = issuer.decide_device(&device, &browser, allow, address);
    if let Err(error) = decided.await {
        let refused = FormError::of("user_code", error)?;
        return Ok(ask(&context, Some(&typed), Some(&refused)));
    }
    let title = if allow {
        "Device connected"
    } else {
        "Request denied"
    };
    Ok(context.show(title, &template::decided(allow), (None, None)))
}

/// The person's decision: `true` to allow the device, `false` to deny it. `None` if the request has
/// no decision.
fn decision(context: &PageContext<'_>) -> Option<bool> {
    if context.step() != Some("decide") {
        return None;
    }
    match context.field("decision") {
        Some("allow") => Some(true),
        Some("deny") => Some(false),
        _ => None,
    }
}

/// Handles the form with the user code: redirects to the page that asks for the decision, or shows
/// the form again with an error.
async fn enter(context: &PageContext<'_>) -> Result<Response<Body>, ApiError> {
    let Some(typed) = context.field("user_code") else {
        let refused = FormError::missing("user_code");
        return Ok(ask(context, None, Some(&refused)));
    };
    let found = context.app.issuer().pending_device(
        typed,
        context.request.address,
        context.browser.as_ref(),
    );
    match found.await {
        Ok(device) => Ok(context.redirect(&confirmation(context, &device.user_code))),
        Err(error) => {
            let refused = FormError::of("user_code", error)?;
            Ok(ask(context, Some(typed), Some(&refused)))
        }
    }
}

fn confirmation(context: &PageContext<'_>, user_code: &str) -> String {
    context.path(&format!("/device?user_code={user_code}&step=confirm"))
}

fn ask(
    context: &PageContext<'_>,
    typed: Option<&str>,
    refused: Option<&FormError>,
) -> Response<Body> {
    let (action, token) = (context.path("/device"), context.token());
    let card = template::user_code(&form(&action, &token, refused), typed);
    context.show("Connect a device", &card, (refused, None))
}
