//! `/signup/confirm`: the link of the letter that a sign-up sends, where letters are sent.

use http::Response;
use tidegate_oauth::{Client, Error, NewUser};

use super::reset::dead;
use super::visitor::{Refused, Visitor, failure, form};
use crate::body::Body;
use crate::endpoint::Call;
use crate::error::Failure;
use crate::page;
use crate::stack::BodyError;

pub(crate) async fn confirm<B>(call: Call<'_, B>) -> Result<Response<Body>, Failure>
where
    B: http_body::Body<Data = bytes::Bytes> + Send + Unpin,
    B::Error: Into<BodyError>,
{
    let mut visitor = Visitor::receive(call).await?;
    let link = visitor.parameter("token").unwrap_or_default().to_owned();
    let issuer = visitor.app.issuer();
    let name = match issuer.sign_up_name(&link).await {
        Ok(name) => name,
        Err(Error::DeadLink) => return Ok(dead(&visitor)),
        Err(Error::SignUpClosed) => return Err(Failure::sign_up_closed()),
        Err(error) => return Err(failure(error)),
    };
    let mut refused = None;
    if visitor.step() == Some("confirm") {
        let accounts = visitor.app.accounts().ok_or_else(Failure::sign_up_closed)?;
        let made = issuer.confirm_sign_up(accounts, &link, &visitor.visit);
        match made.await {
            Ok((cookie, next)) => {
                visitor.take(cookie).await?;
                return Ok(visitor.go(&next));
            }
            Err(Error::DeadLink) => return Ok(dead(&visitor)),
            // Somebody was faster, most likely the same person with the same link.
            Err(error) => refused = Some(Refused::of("", error)?),
        }
    }
    let (here, token) = (visitor.here(), visitor.token());
    let card = page::confirm_sign_up(&form(&here, &token, refused.as_ref()), &name);
    Ok(visitor.show("Confirm your account", &card, (refused.as_ref(), None)))
}

/// Sends the letter of a sign-up; the person waits for that, to hear of an address that is wrong.
pub(super) async fn invite(
    visitor: &Visitor<'_>,
    client: &Client,
    (user, next): (NewUser, &str),
) -> Result<Result<Response<Body>, Error>, Failure> {
    let Some(mail) = visitor.app.mail() else {
        return Err(Failure::sign_up_closed());
    };
    let issuer = visitor.app.issuer();
    let letter = issuer.sign_up_letter(client, user, next, &visitor.visit);
    let letter = match letter.await {
        Ok(letter) => letter,
        Err(error) => return Ok(Err(error)),
    };
    if let Err(error) = mail.send(&letter).await {
        let cause = std::error::Error::source(&error).map(ToString::to_string);
        tracing::warn!(%error, cause, "the letter of a sign-up could not be sent");
        return Err(Failure::unavailable(
            "MAIL_UNAVAILABLE",
            "The letter with your link could not be sent. Check the address and try again.",
            std::time::Duration::from_secs(30),
        ));
    }
    let text = "We have sent you a link. Your account is made when you follow it.";
    let card = page::notice("Look into your e-mail", text, None);
    Ok(Ok(visitor.show(
        "Look into your e-mail",
        &card,
        (None, None),
    )))
}
