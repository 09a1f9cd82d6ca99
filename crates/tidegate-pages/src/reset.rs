//! `/reset`: requests a password reset by email, and sets the new password.

use http::Response;
use tidegate_identity::{Email, Error as IdentityError, Secret};
use tidegate_oauth::Error;

use super::context::{PageContext, form};
use super::form_error::{FormError, failure};
use crate::template;
use tidegate_http::app::App;
use tidegate_http::body::Body;
use tidegate_http::call::Call;
use tidegate_http::error::ApiError;
use tidegate_http::request_body::IncomingBody;

/// Handles `GET` and `POST /reset`.
pub async fn reset<B: IncomingBody>(call: Call<'_, B>) -> Result<Response<Body>, ApiError> {
    let context = PageContext::receive(call).await?;
    match context.parameter("token").map(str::to_owned) {
        Some(token) => choose(&context, &token).await,
        None if context.app.mailer().is_some() => ask(&context).await,
        None => {
            let help = context.app.help();
            let text = help.map_or_else(
                || "Ask the owner of the database for a new one.".to_owned(),
                |help| format!("Ask for a new one: {help}"),
            );
            let card = template::notice("Forgot your password?", &text, None);
            Ok(context.show("Forgot your password?", &card, (None, None)))
        }
    }
}

/// Handles the form that asks for a reset message. The user is looked up and the message is sent
/// after the response, so the response is the same for every name and takes the same time.
async fn ask(context: &PageContext<'_>) -> Result<Response<Body>, ApiError> {
    let mut refused = None;
    if context.step() == Some("ask") {
        match (context.field("username"), context.field("database")) {
            (Some(username), Some(database)) => {
                let issuer = context.app.issuer();
                match issuer
                    .identity()
                    .count_email_request(&context.request)
                    .await
                {
                    Ok(()) => {
                        let who = (database.to_owned(), username.to_owned());
                        tokio::spawn(send_reset_emails(context.app.clone(), who));
                        let text = "If there is such an account with an e-mail address, a link \
                                    is on its way to it. It is good for an hour.";
                        let card = template::notice("Check your email", text, None);
                        return Ok(context.show("Check your email", &card, (None, None)));
                    }
                    Err(error) => refused = Some(FormError::of("username", error)?),
                }
            }
            (None, _) => refused = Some(FormError::missing("username")),
            (_, None) => refused = Some(FormError::missing("database")),
        }
    }
    let (here, token) = (context.path("/reset"), context.token());
    let database = context
        .field("database")
        .or_else(|| context.parameter("database"));
    let form = form(&here, &token, refused.as_ref());
    let card = template::ask_for_email(&form, context.field("username"), database);
    Ok(context.show("Forgot your password?", &card, (refused.as_ref(), None)))
}

/// Sends a reset message to the user of this name, or to the users with this email address, if
/// there are any.
async fn send_reset_emails(app: App, (database, username): (String, String)) {
    match app
        .issuer()
        .identity()
        .reset_emails(&database, &username)
        .await
    {
        Ok(messages) => send(app, messages).await,
        Err(error) => {
            let cause = std::error::Error::source(&error).map(ToString::to_string);
            tracing::warn!(%error, cause, "password reset emails could not be created");
        }
    }
}

/// Sends email messages one after the other; failures are logged. Callers run this function in the
/// background.
pub(super) async fn send(app: App, messages: Vec<Email>) {
    let Some(mail) = app.mailer() else { return };
    for message in &messages {
        if let Err(error) = mail.send(message).await {
            let cause = std::error::Error::source(&error).map(ToString::to_string);
            tracing::warn!(%error, cause, "email could not be sent");
        }
    }
}

async fn choose(context: &PageContext<'_>, link: &str) -> Result<Response<Body>, ApiError> {
    let issuer = context.app.issuer();
    let (user, credentials) = match issuer.identity().reset_user(link).await {
        Ok(found) => found,
        Err(IdentityError::InvalidLink) => return Ok(invalid_link_page(context)),
        Err(error) => return Err(failure(error)),
    };
    let mut refused = None;
    if context.step() == Some("choose") {
        let only_password = context.field("only_password") == Some("true");
        match context.field("password").map(Secret::new) {
            None => refused = Some(FormError::missing("password")),
            Some(password) => match issuer
                .reset_password(link, (&password, only_password), &context.request)
                .await
            {
                Ok(()) => {
                    let text = if only_password {
                        "You can sign in with your new password now, and in no other way."
                    } else {
                        "You can sign in with your new password now."
                    };
                    let card = template::notice("Password changed", text, None);
                    return Ok(context.show("Password changed", &card, (None, None)));
                }
                Err(Error::Identity(IdentityError::InvalidLink)) => {
                    return Ok(invalid_link_page(context));
                }
                Err(error) => refused = Some(FormError::of("password", error)?),
            },
        }
    }
    let (here, token) = (context.request_path(), context.token());
    let form = form(&here, &token, refused.as_ref());
    let card = template::choose_password(&form, &user.name, &credentials, issuer.now());
    Ok(context.show("Choose a new password", &card, (refused.as_ref(), None)))
}

/// The page of an expired or used link.
pub(super) fn invalid_link_page(context: &PageContext<'_>) -> Response<Body> {
    let text = "This link is too old or was used already. Ask for another one.";
    let card = template::notice("This link does not work", text, None);
    context.show(
        "This link does not work",
        &card,
        (Some(&FormError::expired_link()), None),
    )
}
