//! `/signup/confirm`: the link in the message that confirms a sign-up.

use http::{Response, StatusCode};
use tidegate_identity::{Error as IdentityError, NewUser};
use tidegate_oauth::{Client, Error};

use super::context::{PageContext, form};
use super::form_error::{FormError, failure};
use super::reset::invalid_link_page;
use crate::template;
use tidegate_http::body::Body;
use tidegate_http::call::Call;
use tidegate_http::error::ApiError;
use tidegate_http::request_body::IncomingBody;

/// Handles `GET` and `POST /signup/confirm`.
pub async fn confirm<B: IncomingBody>(call: Call<'_, B>) -> Result<Response<Body>, ApiError> {
    let mut context = PageContext::receive(call).await?;
    let sealed = context.parameter("token").unwrap_or_default().to_owned();
    let issuer = context.app.issuer();
    let link = match issuer.sign_up_link(&sealed).await {
        Ok(link) => link,
        Err(Error::Identity(IdentityError::InvalidLink)) => return Ok(invalid_link_page(&context)),
        Err(Error::SignUpClosed) => return Err(ApiError::sign_up_closed()),
        Err(error) => return Err(failure(error)),
    };
    let mut refused = None;
    if context.step() == Some("confirm") {
        let accounts = context
            .app
            .accounts()
            .ok_or_else(ApiError::sign_up_closed)?;
        let made = issuer.confirm_sign_up(accounts, &sealed, &context.request);
        match made.await {
            Ok((cookie, next)) => {
                context.switch_cookie(cookie).await?;
                return Ok(context.redirect(&next));
            }
            Err(Error::Identity(IdentityError::InvalidLink)) => {
                return Ok(invalid_link_page(&context));
            }
            Err(error) => {
                let mut error = FormError::of("", error)?;
                if error.status == StatusCode::CONFLICT {
                    // Most likely, a parallel request with the same link has created the user.
                    "This name is taken. If you have confirmed already, sign in; otherwise sign \
                     up again with another name."
                        .clone_into(&mut error.message.text);
                }
                refused = Some(error);
            }
        }
    }
    let (here, token) = (context.request_path(), context.token());
    let card = template::confirm_sign_up(&form(&here, &token, refused.as_ref()), &link.name);
    let more = (refused.as_ref(), link.returns_to.as_deref());
    Ok(context.show("Confirm your account", &card, more))
}

/// Sends the message that confirms a sign-up, and waits until the mail server has accepted it, so
/// that a wrong address is reported. `urls` consists of `next` and `returns_to`, as in
/// [`Issuer::sign_up_email`]. Returns `Ok(Err(_))` for an error that the form shows.
///
/// [`Issuer::sign_up_email`]: tidegate_oauth::Issuer::sign_up_email
pub(super) async fn send_confirmation(
    context: &PageContext<'_>,
    client: &Client,
    user: NewUser,
    urls: (&str, &str),
) -> Result<Result<Response<Body>, Error>, ApiError> {
    let Some(mail) = context.app.mailer() else {
        return Err(ApiError::sign_up_closed());
    };
    let issuer = context.app.issuer();
    let message = issuer.sign_up_email(client, user, urls, &context.request);
    let message = match message.await {
        Ok(message) => message,
        Err(error) => return Ok(Err(error)),
    };
    if let Err(error) = mail.send(&message).await {
        let cause = std::error::Error::source(&error).map(ToString::to_string);
        tracing::warn!(%error, cause, "sign-up email could not be sent");
        return Err(ApiError::unavailable(
            "MAIL_UNAVAILABLE",
            "The email with your link could not be sent. Check the address and try again.",
            std::time::Duration::from_secs(30),
        ));
    }
    let text = "We have sent you a link. Your account is created when you open it.";
    let card = template::notice("Check your email", text, None);
    Ok(Ok(context.show("Check your email", &card, (None, None))))
}
