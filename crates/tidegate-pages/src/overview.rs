//! The response of the account page, which is shown after every step.

use http::Response;
use tidegate_http::body::Body;
use tidegate_http::error::ApiError;
use tidegate_identity::IdentityProviders;

use super::context::{PageContext, form};
use super::form_error::{FormError, failure};
use crate::template;

/// Shows the account page, with the error of a form, or with a message about what was done.
pub(super) async fn overview(
    context: &PageContext<'_>,
    (refused, done): (Option<FormError>, Option<&str>),
) -> Result<Response<Body>, ApiError> {
    let (issuer, action) = (context.app.issuer(), context.path("/account"));
    let Some(browser) = &context.browser else {
        return Ok(context.redirect(&action));
    };
    let account = issuer.account(browser).await.map_err(failure)?;
    let token = context.token();
    let form = form(&action, &token, refused.as_ref());
    let names = context.app.providers().map(IdentityProviders::names);
    let providers = names.unwrap_or_default();
    let card = template::account(&form, browser, &account, (issuer.now(), done), providers);
    Ok(context.show("Your account", &card, (refused.as_ref(), None)))
}
