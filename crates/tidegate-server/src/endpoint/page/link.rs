//! Linking an account elsewhere on `/account`, and taking it away.

use http::header::REFRESH;
use http::{HeaderValue, Response};
use tidegate_oauth::{Browser, Error, Letter, ProviderName, Secret};

use super::account::overview;
use super::reset::send;
use super::social::{absent, callback, told};
use super::visitor::{Refused, Visitor, form};
use crate::body::Body;
use crate::error::Failure;
use crate::page;

/// Sends the browser to the provider that the form names, from where it comes back to
/// `/signin/{provider}/callback`.
pub(super) async fn link(
    visitor: &Visitor<'_>,
    browser: &Browser,
) -> Result<Response<Body>, Failure> {
    let (app, id) = (visitor.app, visitor.field("provider"));
    let providers = app.providers().ok_or_else(absent)?;
    let named = |name: &&ProviderName| Some(&*name.id) == id;
    let provider = providers.names().iter().find(named).ok_or_else(absent)?;
    let password = visitor.field("password").map(Secret::new);
    let back = callback(visitor, &provider.id);
    let begun = app.issuer().begin_link(
        providers,
        (&provider.id, &back),
        (browser, visitor.cookie()),
        (password.as_ref(), &visitor.visit),
    );
    match begun.await {
        Ok(address) => Ok(depart(visitor, provider, &address)),
        Err(Error::StaleSignIn) if browser.user.password_hash.is_some() => {
            Ok(ask(visitor, browser, (provider, None)))
        }
        Err(error @ Error::StaleSignIn) => {
            let refused = Refused::of("account", error)?;
            overview(visitor, (Some(refused), None)).await
        }
        Err(Error::Outbound(cause)) => Err(told(Error::Outbound(cause))),
        Err(error) => {
            let wrong = matches!(error, Error::WrongCredentials);
            let mut refused = Refused::of("password", error)?;
            if wrong {
                "The password is wrong.".clone_into(&mut refused.complaint.text);
            }
            Ok(ask(visitor, browser, (provider, Some(&refused))))
        }
    }
}

/// The way to the provider. No redirect: `form-action` would have to name where the provider's
/// document says that people sign in, and wherever that leads.
fn depart(visitor: &Visitor<'_>, provider: &ProviderName, address: &str) -> Response<Body> {
    let title = format!("Link {}", provider.label);
    let (text, label) = (
        "You sign in there, and come back here.",
        format!("Go on to {}", provider.label),
    );
    let card = page::notice(&title, text, Some((address, &label)));
    let mut response = visitor.show(&title, &card, (None, None));
    if let Ok(value) = HeaderValue::from_str(&format!("0; url={address}")) {
        response.headers_mut().insert(REFRESH, value);
    }
    response
}

fn ask(
    visitor: &Visitor<'_>,
    browser: &Browser,
    (provider, refused): (&ProviderName, Option<&Refused>),
) -> Response<Body> {
    let (action, token) = (visitor.path("/account"), visitor.token());
    let form = form(&action, &token, refused);
    let card = page::confirm_link(&form, &browser.user.key.name, provider);
    visitor.show("Is it you?", &card, (refused, None))
}

/// Takes the link away that the form names.
pub(super) async fn unlink(
    visitor: &Visitor<'_>,
    browser: &Browser,
) -> Result<Response<Body>, Failure> {
    let field = |name| visitor.field(name).unwrap_or_default();
    let which = (field("issuer"), field("subject"));
    let issuer = visitor.app.issuer();
    match issuer.unlink(browser, which, &visitor.visit).await {
        Ok(letter) => {
            tell(visitor, letter);
            overview(visitor, (None, Some("The account is unlinked."))).await
        }
        // It has gone already.
        Err(Error::NotFound(_)) => overview(visitor, (None, Some("Ended."))).await,
        Err(error) => {
            let refused = Refused::of("account", error)?;
            overview(visitor, (Some(refused), None)).await
        }
    }
}

/// Takes a browser back whose account there is linked now.
pub(super) fn linked(visitor: &Visitor<'_>, letter: Option<Letter>) -> Response<Body> {
    tell(visitor, letter);
    visitor.go(&visitor.path("/account?done=linked"))
}

/// What to say when the account there is another user's.
pub(super) fn taken(visitor: &Visitor<'_>) -> Result<Response<Body>, Failure> {
    let title = "This account is linked already";
    let text = "Another user of this database signs in with it. It has to be unlinked there first.";
    let back = visitor.path("/account");
    let card = page::notice(title, text, Some((&back, "Back to your account")));
    let refused = Refused::of("", Error::Taken("account elsewhere"))?;
    Ok(visitor.show(title, &card, (Some(&refused), None)))
}

/// Sends a letter behind the answer, where letters are sent.
fn tell(visitor: &Visitor<'_>, letter: Option<Letter>) {
    if let Some(letter) = letter {
        tokio::spawn(send(visitor.app.clone(), vec![letter]));
    }
}
