//! Sign-in for the pages that require it: by password, by a link or by a passkey, and by a second
//! factor if one is required.

use http::Response;
use tidegate_identity::{Browser, Enrolment, Error as IdentityError, Secret, UserKey};

use super::context::{PageContext, form};
use super::email_sign_in;
use super::form_error::{FormError, failure, wrong_password};
use super::passkeys;
use super::purpose::Purpose;
use crate::template::{self, SignIn};
use tidegate_http::body::Body;
use tidegate_http::error::ApiError;
use tidegate_http::percent;

/// Handles the steps of a sign-in. Returns the next page of the sign-in; `None` if the browser is
/// signed in as `purpose` requires.
pub(super) async fn require_sign_in(
    context: &mut PageContext<'_>,
    purpose: &Purpose<'_>,
) -> Result<Option<Response<Body>>, ApiError> {
    match context.step() {
        Some("sign_in") => return sign_in(context, purpose).await.map(Some),
        Some("passkey") => {
            return match passkeys::sign_in(context, purpose).await? {
                Ok(page) => Ok(Some(page)),
                Err(refused) => Ok(Some(sign_in_page(context, purpose, Some(&refused)))),
            };
        }
        Some("switch") => {
            context.sign_out().await?;
            return Ok(Some(context.redirect(purpose.page)));
        }
        _ => {}
    }
    let fits = |key: &UserKey| {
        let wanted = purpose.database;
        wanted.is_none_or(|database| database == key.database)
    };
    let Some(browser) = context.browser.clone() else {
        return Ok(Some(sign_in_page(context, purpose, None)));
    };
    if !fits(&browser.user.key) {
        let refused = other_database(&browser, purpose);
        return Ok(Some(sign_in_page(context, purpose, Some(&refused))));
    }
    if purpose.again {
        return Ok(Some(sign_in_page(context, purpose, None)));
    }
    let wanted = purpose.client.is_some_and(|client| client.two_factor);
    if !browser.lacks_second_factor && (browser.session.second_factor || !wanted) {
        return Ok(None);
    }
    if browser.lacks_second_factor {
        second_factor(context, purpose).await.map(Some)
    } else {
        enrol(context, purpose).await.map(Some)
    }
}

async fn sign_in(
    context: &mut PageContext<'_>,
    purpose: &Purpose<'_>,
) -> Result<Response<Body>, ApiError> {
    let Some(username) = context.field("username") else {
        let refused = FormError::missing("username");
        return Ok(sign_in_page(context, purpose, Some(&refused)));
    };
    let home = purpose.database.unwrap_or(username);
    let database = context.field("database").unwrap_or(home);
    if purpose.database.is_some_and(|wanted| wanted != database) {
        let refused = FormError::wrong_database(allowed(purpose));
        return Ok(sign_in_page(context, purpose, Some(&refused)));
    }
    if context.field("by") == Some("email")
        && let Some(pending) = email_sign_in::offered(context, purpose)
    {
        let user = (database, username);
        return match email_sign_in::request(context, user, pending).await? {
            Ok(page) => Ok(page),
            Err(refused) => Ok(sign_in_page(context, purpose, Some(&refused))),
        };
    }
    let Some(password) = context.field("password") else {
        let refused = FormError::missing("password");
        return Ok(sign_in_page(context, purpose, Some(&refused)));
    };
    let (key, password) = (UserKey::new(database, username), Secret::new(password));
    let client = purpose.client.map(|client| &*client.id);
    let issuer = context.app.issuer();
    match issuer
        .identity()
        .sign_in(key, &password, client, &context.request)
        .await
    {
        Ok(cookie) => {
            // The previous session of the browser is not ended, because another person may have
            // opened it.
            context.switch_cookie(cookie).await?;
            Ok(context.redirect(purpose.next))
        }
        Err(error) => {
            let refused = FormError::of("password", error)?;
            Ok(sign_in_page(context, purpose, Some(&refused)))
        }
    }
}

/// The message for a signed-in user whose database is not the one that the page requires.
fn other_database(browser: &Browser, purpose: &Purpose<'_>) -> FormError {
    let key = &browser.user.key;
    FormError::notice(format!(
        "You are signed in as {} of the database {}. {}",
        key.name,
        key.database,
        allowed(purpose)
    ))
}

/// A text that names the database whose users may sign in.
fn allowed(purpose: &Purpose<'_>) -> String {
    let database = purpose.database.unwrap_or_default();
    match purpose.client {
        Some(client) if client.database.is_some() => {
            let name = &client.name;
            format!("{name} takes users of the database {database} only.")
        }
        _ => format!("This sign-in is for the database {database}."),
    }
}

fn sign_in_page(
    context: &PageContext<'_>,
    purpose: &Purpose<'_>,
    refused: Option<&FormError>,
) -> Response<Body> {
    let passkey = passkeys::question(context);
    let has_passkey = passkey.is_some();
    let token = context.token();
    let database = context.field("database").or(purpose.database);
    let reset = context.path(&match database {
        Some(database) => format!("/reset?database={}", percent::encode(database)),
        None => "/reset".to_owned(),
    });
    // An account of an identity provider is looked up in the client's database, so there are no
    // buttons for a client without a database.
    let choices = match purpose.client {
        Some(client) if client.database.is_some() && purpose.returns_to.is_some() => {
            super::providers::choices(context, purpose.next)
        }
        _ => Vec::new(),
    };
    let card = template::sign_in(&SignIn {
        form: form(purpose.page, &token, refused),
        client: purpose.client.map(|client| &*client.name),
        database,
        username: context.field("username").or(purpose.username),
        sign_up: purpose.sign_up,
        email_link: email_sign_in::offered(context, purpose).is_some(),
        passkey,
        choices: &choices,
        reset: &reset,
    });
    let page = context.show("Sign in", &card, (refused, purpose.returns_to));
    if has_passkey {
        template::with_script(page)
    } else {
        page
    }
}

async fn second_factor(
    context: &mut PageContext<'_>,
    purpose: &Purpose<'_>,
) -> Result<Response<Body>, ApiError> {
    let issuer = context.app.issuer();
    let mut refused = None;
    if context.step() == Some("second_factor")
        && let Some(browser) = &context.browser
    {
        let code = context.field("code").unwrap_or_default();
        match issuer
            .identity()
            .verify_second_factor(browser, code, &context.request)
            .await
        {
            Ok(cookie) => {
                context.switch_cookie(cookie).await?;
                return Ok(context.redirect(purpose.page));
            }
            Err(error) => refused = Some(FormError::of("code", error)?),
        }
    }
    let token = context.token();
    let card = template::second_factor(&form(purpose.page, &token, refused.as_ref()));
    Ok(context.show(
        "Two-step sign-in",
        &card,
        (refused.as_ref(), purpose.returns_to),
    ))
}

/// Shows the enrolment page of a second factor, and handles its form.
pub(super) async fn enrol(
    context: &mut PageContext<'_>,
    purpose: &Purpose<'_>,
) -> Result<Response<Body>, ApiError> {
    let issuer = context.app.issuer();
    let Some(browser) = context.browser.clone() else {
        return Ok(context.redirect(purpose.page));
    };
    let (mut refused, mut begun) = (None, None);
    if context.step() == Some("enrol") {
        let sealed = context.field("sealed").unwrap_or_default().to_owned();
        let code = context.field("code").unwrap_or_default().to_owned();
        match issuer
            .identity()
            .enrol(&browser, (&sealed, &code), &context.request)
            .await
        {
            Ok((codes, cookie)) => {
                context.switch_cookie(cookie).await?;
                let card = template::recovery_codes(&codes, purpose.page);
                return Ok(context.show("Recovery codes", &card, (None, purpose.returns_to)));
            }
            Err(error) => refused = Some(FormError::of("code", error)?),
        }
        begun = Some(sealed);
    }
    let token = context.token();
    let enrolment = match begun {
        Some(sealed) => issuer
            .identity()
            .resume_enrolment(&browser.user.key, &sealed)
            .map_err(failure)?,
        None => match begin_enrolment(context, &browser).await {
            Ok(enrolment) => enrolment,
            // The account has no password, so only a new sign-in proves the identity of the person.
            Err(IdentityError::ReauthenticationRequired)
                if browser.user.password_hash.is_none() =>
            {
                return Ok(sign_in_page(context, purpose, None));
            }
            Err(error) => {
                let refused = wrong_password(error)?;
                let form = form(purpose.page, &token, refused.as_ref());
                let step = ("begin_enrolment", "set up two-step sign-in");
                let card = template::confirm_password(&form, &browser.user.key.name, step, &[]);
                return Ok(context.show(
                    "Is it you?",
                    &card,
                    (refused.as_ref(), purpose.returns_to),
                ));
            }
        },
    };
    let card = template::enrol(&form(purpose.page, &token, refused.as_ref()), &enrolment);
    let more = (refused.as_ref(), purpose.returns_to);
    Ok(context.show("Two-step sign-in", &card, more))
}

async fn begin_enrolment(
    context: &PageContext<'_>,
    browser: &Browser,
) -> Result<Enrolment, IdentityError> {
    let password = context.field("password").map(Secret::new);
    let identity = context.app.issuer().identity();
    identity
        .begin_enrolment(browser, password.as_ref(), &context.request)
        .await
}
