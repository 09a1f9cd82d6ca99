//! Sign-in with a link that is sent by email: sends the link when a person asks for it on the
//! sign-in page, and serves the page `/auth/email`, to which the link leads.

use http::Response;
use tidegate_identity::{Error as IdentityError, PendingSignIn};

use super::context::{PageContext, form};
use super::form_error::{FormError, failure};
use super::purpose::Purpose;
use super::reset::{invalid_link_page, send};
use crate::template;
use tidegate_http::app::App;
use tidegate_http::body::Body;
use tidegate_http::call::Call;
use tidegate_http::error::ApiError;
use tidegate_http::request_body::IncomingBody;

/// The sign-in for which a link may be requested on this page; `None` if the service sends no
/// email, or if the URLs are too long for a link.
pub(super) fn offered(context: &PageContext<'_>, purpose: &Purpose<'_>) -> Option<PendingSignIn> {
    context.app.mailer()?;
    let client = purpose.client.map(|client| &*client.id);
    let urls = (purpose.next, purpose.returns_to);
    PendingSignIn::new(client, urls, context.cookie())
}

/// Handles the request to send a sign-in link. The user is looked up and the message is sent after
/// the response, so the response is the same for every name and takes the same time. Returns
/// `Ok(Err(_))` for an error that the form shows.
pub(super) async fn request(
    context: &PageContext<'_>,
    (database, name): (&str, &str),
    pending: PendingSignIn,
) -> Result<Result<Response<Body>, FormError>, ApiError> {
    // Without a database, the user name must be that of an owner, whose database has the same name.
    // An email address is not the name of an owner, so the person must enter the database.
    if database == name && name.contains('@') {
        return Ok(Err(FormError::missing("database")));
    }
    let identity = context.app.issuer().identity();
    if let Err(error) = identity.count_email_request(&context.request).await {
        return Ok(Err(FormError::of("username", error)?));
    }
    let user = (database.to_owned(), name.to_owned());
    tokio::spawn(send_links(context.app.clone(), user, pending));
    let text = "If there is such an account with an e-mail address, a link is on its way to it. \
                It is good for 15 minutes, once, and in this browser.";
    let card = template::notice("Check your email", text, None);
    Ok(Ok(context.show("Check your email", &card, (None, None))))
}

async fn send_links(app: App, (database, name): (String, String), pending: PendingSignIn) {
    let identity = app.issuer().identity();
    match identity.sign_in_emails((&database, &name), &pending).await {
        Ok(messages) => send(app, messages).await,
        Err(error) => {
            let cause = std::error::Error::source(&error).map(ToString::to_string);
            tracing::warn!(%error, cause, "sign-in emails could not be created");
        }
    }
}

/// Handles `GET` and `POST /auth/email`. Programs that scan emails follow links, so opening the
/// link does not use it. Only the button of the page does.
pub async fn email_sign_in<B: IncomingBody>(call: Call<'_, B>) -> Result<Response<Body>, ApiError> {
    let mut context = PageContext::receive(call).await?;
    let token = context.parameter("token").unwrap_or_default().to_owned();
    let identity = context.app.issuer().identity();
    let link = match identity.email_sign_in(&token).await {
        Ok(link) => link,
        Err(IdentityError::InvalidLink) => return Ok(invalid_link_page(&context)),
        Err(error) => return Err(failure(error)),
    };
    if !link.is_for(context.cookie()) {
        return Ok(other_browser_page(&context));
    }
    if context.step() == Some("email") {
        let used = identity.use_email_sign_in(&token, context.cookie(), &context.request);
        return match used.await {
            Ok((cookie, next)) => {
                context.switch_cookie(cookie).await?;
                Ok(context.redirect(&next))
            }
            Err(IdentityError::InvalidLink) => Ok(invalid_link_page(&context)),
            Err(error) => Err(failure(error)),
        };
    }
    let (here, token) = (context.request_path(), context.token());
    let card = template::email_sign_in(&form(&here, &token, None), &link.user.key.name);
    let returns_to = link.pending.returns_to.as_deref();
    Ok(context.show("Sign in", &card, (None, returns_to)))
}

/// The page of a valid link in a browser that did not request it.
fn other_browser_page(context: &PageContext<'_>) -> Response<Body> {
    let title = "Open the link in the other browser";
    let text = "It works only in the browser in which you asked for it. Copy the link from the \
                message into that browser, or sign in here and ask for another one.";
    let card = template::notice(title, text, None);
    context.show(title, &card, (Some(&FormError::expired_link()), None))
}
