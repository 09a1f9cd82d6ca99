//! `/reset`: who forgot a password asks for a letter, and follows its link to a new one.

use http::Response;
use tidegate_oauth::{Error, Letter, Secret};

use super::visitor::{Refused, Visitor, failure, form};
use crate::app::App;
use crate::body::Body;
use crate::endpoint::Call;
use crate::error::Failure;
use crate::page;
use crate::stack::BodyError;

pub(crate) async fn reset<B>(call: Call<'_, B>) -> Result<Response<Body>, Failure>
where
    B: http_body::Body<Data = bytes::Bytes> + Send + Unpin,
    B::Error: Into<BodyError>,
{
    let visitor = Visitor::receive(call).await?;
    match visitor.parameter("token").map(str::to_owned) {
        Some(token) => choose(&visitor, &token).await,
        None if visitor.app.mail().is_some() => ask(&visitor).await,
        None => {
            let help = visitor.app.help();
            let text = help.map_or_else(
                || "Ask the owner of the database for a new one.".to_owned(),
                |help| format!("Ask for a new one: {help}"),
            );
            let card = page::notice("Forgot your password?", &text, None);
            Ok(visitor.show("Forgot your password?", &card, (None, None)))
        }
    }
}

/// Looks for the user and sends the letters behind the answer, which is the same for every name
/// and comes as fast.
async fn ask(visitor: &Visitor<'_>) -> Result<Response<Body>, Failure> {
    let mut refused = None;
    if visitor.step() == Some("ask") {
        match (visitor.field("username"), visitor.field("database")) {
            (Some(username), Some(database)) => {
                let issuer = visitor.app.issuer();
                match issuer.count_letter(&visitor.visit).await {
                    Ok(()) => {
                        let who = (database.to_owned(), username.to_owned());
                        tokio::spawn(remind(visitor.app.clone(), who));
                        let text = "If there is such an account with an e-mail address, a link \
                                    is on its way to it. It is good for an hour.";
                        let card = page::notice("Look into your e-mail", text, None);
                        return Ok(visitor.show("Look into your e-mail", &card, (None, None)));
                    }
                    Err(error) => refused = Some(Refused::of("username", error)?),
                }
            }
            (None, _) => refused = Some(Refused::missing("username")),
            (_, None) => refused = Some(Refused::missing("database")),
        }
    }
    let (here, token) = (visitor.path("/reset"), visitor.token());
    let database = visitor
        .field("database")
        .or_else(|| visitor.parameter("database"));
    let form = form(&here, &token, refused.as_ref());
    let card = page::ask_for_letter(&form, visitor.field("username"), database);
    Ok(visitor.show("Forgot your password?", &card, (refused.as_ref(), None)))
}

/// Sends a user, if there is one, the letters with which a new password is chosen.
async fn remind(app: App, (database, username): (String, String)) {
    match app.issuer().reset_letters(&database, &username).await {
        Ok(letters) => send(app, letters).await,
        Err(error) => tracing::warn!(%error, "letters could not be written"),
    }
}

/// Sends letters, behind whatever was answered.
pub(super) async fn send(app: App, letters: Vec<Letter>) {
    let Some(mail) = app.mail() else { return };
    for letter in &letters {
        if let Err(error) = mail.send(letter).await {
            let cause = std::error::Error::source(&error).map(ToString::to_string);
            tracing::warn!(%error, cause, "a letter could not be sent");
        }
    }
}

async fn choose(visitor: &Visitor<'_>, link: &str) -> Result<Response<Body>, Failure> {
    let issuer = visitor.app.issuer();
    let user = match issuer.reset_user(link).await {
        Ok(user) => user,
        Err(Error::DeadLink) => return Ok(dead(visitor)),
        Err(error) => return Err(failure(error)),
    };
    let mut refused = None;
    if visitor.step() == Some("choose") {
        match visitor.field("password").map(Secret::new) {
            None => refused = Some(Refused::missing("password")),
            Some(password) => match issuer.reset_password(link, &password, &visitor.visit).await {
                Ok(()) => {
                    let text = "You can sign in with your new password now.";
                    let card = page::notice("Password changed", text, None);
                    return Ok(visitor.show("Password changed", &card, (None, None)));
                }
                Err(Error::DeadLink) => return Ok(dead(visitor)),
                Err(error) => refused = Some(Refused::of("password", error)?),
            },
        }
    }
    let (here, token) = (visitor.here(), visitor.token());
    let card = page::choose_password(&form(&here, &token, refused.as_ref()), &user.name);
    Ok(visitor.show("Choose a new password", &card, (refused.as_ref(), None)))
}

/// What a link leads to that does not work any more.
pub(super) fn dead(visitor: &Visitor<'_>) -> Response<Body> {
    let text = "This link is too old or was used already. Ask for another one.";
    let card = page::notice("This link does not work", text, None);
    visitor.show(
        "This link does not work",
        &card,
        (Some(&Refused::gone()), None),
    )
}
