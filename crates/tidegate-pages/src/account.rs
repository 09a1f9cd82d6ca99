//! `/account`: the user's sessions, linked accounts, password, passkeys and second factor.

use http::Response;
use tidegate_identity::{Browser, Error as IdentityError, Secret, SessionId};
use tidegate_oauth::Error;

use super::account_linking::{link, unlink};
use super::context::PageContext;
use super::form_error::{FormError, failure};
use super::overview::overview;
use super::passkeys;
use super::purpose::Purpose;
use super::sign_in::{enrol, require_sign_in};
use crate::template;
use tidegate_http::body::Body;
use tidegate_http::call::Call;
use tidegate_http::error::ApiError;
use tidegate_http::request_body::IncomingBody;

/// Handles `GET` and `POST /account`.
pub async fn account<B: IncomingBody>(call: Call<'_, B>) -> Result<Response<Body>, ApiError> {
    let mut context = PageContext::receive(call).await?;
    let page = context.path("/account");
    let purpose = Purpose::own_page(&page);
    if let Some(response) = require_sign_in(&mut context, &purpose).await? {
        return Ok(response);
    }
    let Some(browser) = context.browser.clone() else {
        return Ok(context.redirect(&page));
    };
    match context.step() {
        Some("begin_enrolment" | "enrol") => enrol(&mut context, &purpose).await,
        Some("sign_out") => {
            context.sign_out().await?;
            let card = template::notice("Signed out", "You are signed out of this browser.", None);
            Ok(context.show("Signed out", &card, (None, None)))
        }
        Some("change_password") => change_password(&mut context, &browser).await,
        Some("link") => link(&context, &browser).await,
        Some("unlink") => unlink(&context, &browser).await,
        Some("begin_passkey") => passkeys::begin(&context, &browser).await,
        Some("add_passkey") => passkeys::add(&context, &browser).await,
        Some("rename_passkey") => passkeys::rename(&context, &browser).await,
        Some("remove_passkey") => passkeys::remove(&context, &browser).await,
        Some("remove_second_factor") => remove_second_factor(&context, &browser).await,
        Some(step) => {
            let done = end(&context, &browser, step).await;
            let done = match done {
                // The session has ended already, which is what the user wants.
                Err(Error::Identity(IdentityError::NotFound(_))) => Ok("Ended."),
                done => done,
            };
            overview(&context, (None, Some(done.map_err(failure)?))).await
        }
        None => {
            let linked = context.parameter("done") == Some("linked");
            let done = linked.then_some("The account is linked. You can sign in with it.");
            overview(&context, (None, done)).await
        }
    }
}

/// Handles a form that ends a session or a browser session, or withdraws a consent. Returns the
/// message for the user.
async fn end(
    context: &PageContext<'_>,
    browser: &Browser,
    step: &str,
) -> Result<&'static str, Error> {
    let issuer = context.app.issuer();
    match step {
        "end_session" => {
            let id = context.field("session").and_then(SessionId::parse);
            let id = id.ok_or(IdentityError::NotFound("session"))?;
            issuer
                .end_own_session(browser, id, &context.request)
                .await?;
            Ok("The application has no access any more.")
        }
        "withdraw_consent" => {
            let client = context.field("client").unwrap_or_default();
            issuer
                .withdraw_consent(browser, client, &context.request)
                .await?;
            Ok("The application has no access any more, and will ask again.")
        }
        "end_browser" => {
            let name = context.field("browser").unwrap_or_default();
            issuer.identity().end_own_browser(browser, name).await?;
            Ok("The browser is signed out.")
        }
        _ => Err(IdentityError::NotFound("step").into()),
    }
}

async fn remove_second_factor(
    context: &PageContext<'_>,
    browser: &Browser,
) -> Result<Response<Body>, ApiError> {
    let Some(proof) = context.field("proof") else {
        return overview(context, (Some(FormError::missing("proof")), None)).await;
    };
    let (issuer, proof) = (context.app.issuer(), Secret::new(proof));
    let removed = issuer
        .identity()
        .remove_second_factor(browser, &proof, &context.request);
    match removed.await {
        Ok(()) => overview(context, (None, Some("Two-step sign-in is off."))).await,
        Err(error) => {
            let wrong = matches!(
                error,
                IdentityError::WrongCredentials | IdentityError::WrongSecondFactor
            );
            let mut refused = FormError::of("proof", error)?;
            if wrong {
                "That is not your password, and no code that works now."
                    .clone_into(&mut refused.message.text);
            }
            overview(context, (Some(refused), None)).await
        }
    }
}

async fn change_password(
    context: &mut PageContext<'_>,
    browser: &Browser,
) -> Result<Response<Body>, ApiError> {
    let (current, new) = (context.field("password"), context.field("new_password"));
    let has_one = browser.user.password_hash.is_some();
    let (current, new) = match (current, new) {
        (None, _) if has_one => {
            return overview(context, (Some(FormError::missing("password")), None)).await;
        }
        (_, None) => {
            return overview(context, (Some(FormError::missing("new_password")), None)).await;
        }
        (current, Some(new)) => (current.map(Secret::new), Secret::new(new)),
    };
    let issuer = context.app.issuer();
    let changed = issuer.change_own_password(browser, (current.as_ref(), &new), &context.request);
    match changed.await {
        Ok(cookie) => {
            context.switch_cookie(cookie).await?;
            let done = "Your password is changed, and every other session has ended.";
            overview(context, (None, Some(done))).await
        }
        Err(Error::Identity(error)) => {
            let field = match error {
                IdentityError::InvalidField { .. } | IdentityError::ReauthenticationRequired => {
                    "new_password"
                }
                _ => "password",
            };
            let wrong = matches!(error, IdentityError::WrongCredentials);
            let mut refused = FormError::of(field, error)?;
            if wrong {
                "The current password is wrong.".clone_into(&mut refused.message.text);
            }
            overview(context, (Some(refused), None)).await
        }
        Err(error) => Err(failure(error)),
    }
}
