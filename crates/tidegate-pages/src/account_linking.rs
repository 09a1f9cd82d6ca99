//! Linking and unlinking accounts of identity providers on `/account`.

use http::header::REFRESH;
use http::{HeaderValue, Response};
use tidegate_identity::{Browser, Email, Error as IdentityError, ProviderName, Secret};

use super::context::PageContext;
use super::form_error::FormError;
use super::overview::overview;
use super::providers::{callback, provider_error, unknown_provider};
use super::reauthentication::{GuardedStep, ask_for_password, takes_password};
use super::reset::send;
use crate::template;
use tidegate_http::body::Body;
use tidegate_http::error::ApiError;

/// Shows a page with a link to the identity provider that the form names. After the login, the
/// provider sends the browser to `/signin/{provider}/callback`.
pub(super) async fn link(
    context: &PageContext<'_>,
    browser: &Browser,
) -> Result<Response<Body>, ApiError> {
    let (app, id) = (context.app, context.field("provider"));
    let providers = app.providers().ok_or_else(unknown_provider)?;
    let named = |name: &&ProviderName| Some(&*name.id) == id;
    let provider = providers
        .names()
        .iter()
        .find(named)
        .ok_or_else(unknown_provider)?;
    let password = context.field("password").map(Secret::new);
    let callback_url = callback(context, &provider.id);
    let begun = app.issuer().identity().begin_account_linking(
        providers,
        (&provider.id, &callback_url),
        (browser, context.cookie()),
        (password.as_ref(), &context.request),
    );
    match begun.await {
        Ok(address) => Ok(provider_link_page(context, provider, &address)),
        Err(error) if takes_password(browser, &error) => {
            let wanted = GuardedStep {
                step: "link",
                purpose: &format!("link an account at {}", provider.label),
                fields: &[("provider", &provider.id)],
            };
            ask_for_password(context, browser, &wanted, error)
        }
        Err(error @ IdentityError::Outbound(_)) => Err(provider_error(error)),
        Err(error) => {
            let refused = FormError::of("account", error)?;
            overview(context, (Some(refused), None)).await
        }
    }
}

/// A page with a link to the identity provider. A redirect would need a `form-action` policy that
/// allows the provider's URL and every URL that it redirects to.
fn provider_link_page(
    context: &PageContext<'_>,
    provider: &ProviderName,
    address: &str,
) -> Response<Body> {
    let title = format!("Link {}", provider.label);
    let (text, label) = (
        "You sign in there, and come back here.",
        format!("Go on to {}", provider.label),
    );
    let card = template::notice(&title, text, Some((address, &label)));
    let mut response = context.show(&title, &card, (None, None));
    if let Ok(value) = HeaderValue::from_str(&format!("0; url={address}")) {
        response.headers_mut().insert(REFRESH, value);
    }
    response
}

/// Removes the linked account that the form names. A person who signed in some time ago enters the
/// password first.
pub(super) async fn unlink(
    context: &PageContext<'_>,
    browser: &Browser,
) -> Result<Response<Body>, ApiError> {
    let field = |name| context.field(name).unwrap_or_default();
    let which = (field("issuer"), field("subject"));
    let password = context.field("password").map(Secret::new);
    let identity = context.app.issuer().identity();
    let unlinked = identity.unlink_account(browser, which, password.as_ref(), &context.request);
    match unlinked.await {
        Ok(message) => {
            notify_user(context, message);
            overview(context, (None, Some("The account is unlinked."))).await
        }
        // The account was unlinked already, which is what the user wants.
        Err(IdentityError::NotFound(_)) => overview(context, (None, Some("Ended."))).await,
        Err(error) if takes_password(browser, &error) => {
            let wanted = GuardedStep {
                step: "unlink",
                purpose: "unlink an account",
                fields: &[("issuer", which.0), ("subject", which.1)],
            };
            ask_for_password(context, browser, &wanted, error)
        }
        Err(error) => {
            let refused = FormError::of("account", error)?;
            overview(context, (Some(refused), None)).await
        }
    }
}

/// The response after an account was linked. Sends `message` in the background.
pub(super) fn linked(context: &PageContext<'_>, message: Option<Email>) -> Response<Body> {
    notify_user(context, message);
    context.redirect(&context.path("/account?done=linked"))
}

/// The page for an account that is linked to another user.
pub(super) fn already_linked(context: &PageContext<'_>) -> Result<Response<Body>, ApiError> {
    let title = "This account is linked already";
    let text = "Another user of this database signs in with it. It has to be unlinked there first.";
    let account = context.path("/account");
    let card = template::notice(title, text, Some((&account, "Back to your account")));
    let refused = FormError::of("", IdentityError::Taken("linked account"))?;
    Ok(context.show(title, &card, (Some(&refused), None)))
}

/// Sends an email message in the background, if email is configured.
pub(super) fn notify_user(context: &PageContext<'_>, message: Option<Email>) {
    if let Some(message) = message {
        tokio::spawn(send(context.app.clone(), vec![message]));
    }
}
