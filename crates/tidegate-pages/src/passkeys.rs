//! Passkeys: the button on the sign-in page, and adding, renaming and removing them on `/account`.

use http::Response;
use tidegate_identity::{Browser, Error as IdentityError, PasskeyRequest, Secret};

use super::account_linking::notify_user;
use super::context::{PageContext, form};
use super::form_error::FormError;
use super::overview::overview;
use super::purpose::Purpose;
use super::reauthentication::{GuardedStep, ask_for_password, takes_password};
use crate::template;
use tidegate_http::body::Body;
use tidegate_http::error::ApiError;

/// Handles the form of the sign-in page that contains the response of a passkey's authenticator.
/// Returns `Ok(Err(_))` if the sign-in failed with an error that the form shows.
pub(super) async fn sign_in(
    context: &mut PageContext<'_>,
    purpose: &Purpose<'_>,
) -> Result<Result<Response<Body>, FormError>, ApiError> {
    let identity = context.app.issuer().identity();
    let field = |name| context.field(name).unwrap_or_default();
    let client = purpose.client.map(|client| &*client.id);
    let signed_in = identity.sign_in_with_passkey(
        (field("sealed"), field("credential"), context.cookie()),
        (client, purpose.database),
        &context.request,
    );
    match signed_in.await {
        Ok(cookie) => {
            context.switch_cookie(cookie).await?;
            Ok(Ok(context.redirect(purpose.next)))
        }
        Err(error) => Ok(Err(refused("passkey", error)?)),
    }
}

/// The form error of a passkey, shown beside `field`. If the challenge was used before or is too
/// old, the message is the same as for a wrong passkey: it asks the person to try again.
fn refused(field: &'static str, error: IdentityError) -> Result<FormError, ApiError> {
    if matches!(error, IdentityError::InvalidLink) {
        return FormError::of(field, IdentityError::WrongPasskey);
    }
    let known = matches!(error, IdentityError::Taken(_));
    let mut refused = FormError::of(field, error)?;
    if known {
        "This passkey is there already, or you have the most that are allowed."
            .clone_into(&mut refused.message.text);
    }
    Ok(refused)
}

/// Shows the page on which the browser creates a passkey. A person who signed in some time ago
/// enters the password first.
pub(super) async fn begin(
    context: &PageContext<'_>,
    browser: &Browser,
) -> Result<Response<Body>, ApiError> {
    let identity = context.app.issuer().identity();
    let password = context.field("password").map(Secret::new);
    let begun = identity.begin_passkey(
        (browser, context.cookie()),
        password.as_ref(),
        &context.request,
    );
    match begun.await {
        Ok(request) => {
            let (action, token) = (context.path("/account"), context.token());
            let form = form(&action, &token, None);
            let script = context.path(SCRIPT);
            let card = template::add_passkey(&form, &request, &script);
            let page = context.show("Add a passkey", &card, (None, None));
            Ok(template::with_script(page))
        }
        Err(error) if takes_password(browser, &error) => {
            let wanted = GuardedStep {
                step: "begin_passkey",
                purpose: "add a passkey",
                fields: &[],
            };
            ask_for_password(context, browser, &wanted, error)
        }
        Err(error) => {
            let refused = refused("account", error)?;
            overview(context, (Some(refused), None)).await
        }
    }
}

/// Stores the passkey that the browser has created.
pub(super) async fn add(
    context: &PageContext<'_>,
    browser: &Browser,
) -> Result<Response<Body>, ApiError> {
    let identity = context.app.issuer().identity();
    let field = |name| context.field(name).unwrap_or_default();
    let name = template::agent(&context.request.agent);
    let added = identity.add_passkey(
        (browser, context.cookie()),
        (field("sealed"), field("credential"), &name),
        &context.request,
    );
    match added.await {
        Ok(message) => {
            notify_user(context, message);
            let done = "The passkey is added. You can sign in with it.";
            overview(context, (None, Some(done))).await
        }
        Err(error) => {
            let refused = refused("account", error)?;
            overview(context, (Some(refused), None)).await
        }
    }
}

/// Renames the passkey that the form identifies.
pub(super) async fn rename(
    context: &PageContext<'_>,
    browser: &Browser,
) -> Result<Response<Body>, ApiError> {
    let identity = context.app.issuer().identity();
    let field = |name| context.field(name).unwrap_or_default();
    let renamed =
        identity.rename_passkey(browser, (field("passkey"), field("name")), &context.request);
    match renamed.await {
        Ok(()) => overview(context, (None, Some("The passkey has its new name."))).await,
        // The passkey was removed in another browser.
        Err(IdentityError::NotFound(_)) => overview(context, (None, Some(GONE))).await,
        Err(error) => {
            let refused = refused("account", error)?;
            overview(context, (Some(refused), None)).await
        }
    }
}

/// Removes the passkey that the form names. If the last sign-in is not recent
/// (`Lifetimes::recent_sign_in`), first asks for the password.
pub(super) async fn remove(
    context: &PageContext<'_>,
    browser: &Browser,
) -> Result<Response<Body>, ApiError> {
    let identity = context.app.issuer().identity();
    let id = context.field("passkey").unwrap_or_default();
    let password = context.field("password").map(Secret::new);
    let removed = identity.remove_passkey(browser, id, password.as_ref(), &context.request);
    match removed.await {
        Ok(message) => {
            notify_user(context, message);
            overview(context, (None, Some("The passkey is removed."))).await
        }
        // The passkey was removed already, which is what the user wants.
        Err(IdentityError::NotFound(_)) => overview(context, (None, Some(GONE))).await,
        Err(error) if takes_password(browser, &error) => {
            let wanted = GuardedStep {
                step: "remove_passkey",
                purpose: "remove a passkey",
                fields: &[("passkey", id)],
            };
            ask_for_password(context, browser, &wanted, error)
        }
        Err(error) => {
            let refused = refused("account", error)?;
            overview(context, (Some(refused), None)).await
        }
    }
}

/// The challenge of the sign-in page with its options, and the path of the script that passes them
/// to the authenticator; `None` if browsers allow no passkeys at the service's URL.
pub(super) fn question(context: &PageContext<'_>) -> Option<(PasskeyRequest, String)> {
    let identity = context.app.issuer().identity();
    // If there is no randomness for a challenge, the page offers no sign-in by a passkey.
    let request = identity.begin_passkey_sign_in(context.cookie()).ok()?;
    request.map(|request| (request, context.path(SCRIPT)))
}

/// The message for a passkey that no longer exists.
const GONE: &str = "The passkey is removed.";
/// The path of the script that calls the browser's functions for passkeys.
const SCRIPT: &str = "/assets/passkeys.js";
