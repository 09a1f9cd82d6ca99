//! What stands before a page: signing in, and the second factor where one is asked for.

use http::Response;
use tidegate_oauth::{Browser, Client, Secret, UserKey};

use super::visitor::{Refused, Visitor, failure, form};
use crate::body::Body;
use crate::error::Failure;
use crate::page::{self, SignIn};
use crate::percent;

/// For what a person signs in.
pub(super) struct Purpose<'a> {
    /// The application; none for a page of our own.
    pub(super) client: Option<&'a Client>,
    /// The address that shows the page again when the person is in.
    pub(super) back: &'a str,
    /// Where the browser goes in the end, if that is elsewhere.
    pub(super) returns_to: Option<&'a str>,
    /// Where an account can be made.
    pub(super) sign_up: Option<&'a str>,
}

/// Lets a visitor pass who is signed in for this purpose; any other gets the page that is next.
pub(super) async fn admit(
    visitor: &mut Visitor<'_>,
    purpose: &Purpose<'_>,
) -> Result<Option<Response<Body>>, Failure> {
    match visitor.step() {
        Some("sign_in") => return sign_in(visitor, purpose).await.map(Some),
        Some("switch") => {
            visitor.leave().await?;
            return Ok(Some(visitor.go(purpose.back)));
        }
        _ => {}
    }
    let fits = |key: &UserKey| {
        purpose
            .client
            .is_none_or(|client| client.database == key.database)
    };
    let Some(browser) = visitor.browser.clone() else {
        return Ok(Some(sign_in_page(visitor, purpose, None)));
    };
    if !fits(&browser.user.key) {
        let refused = purpose.client.map(|client| stranger(&browser, client));
        return Ok(Some(sign_in_page(visitor, purpose, refused.as_ref())));
    }
    let wanted = purpose.client.is_some_and(|client| client.two_factor);
    if !browser.lacks_second_factor && (browser.session.second_factor || !wanted) {
        return Ok(None);
    }
    if browser.lacks_second_factor {
        second_factor(visitor, purpose).await.map(Some)
    } else {
        enrol(visitor, purpose).await.map(Some)
    }
}

async fn sign_in(
    visitor: &mut Visitor<'_>,
    purpose: &Purpose<'_>,
) -> Result<Response<Body>, Failure> {
    let Some(username) = visitor.field("username") else {
        let refused = Refused::missing("username");
        return Ok(sign_in_page(visitor, purpose, Some(&refused)));
    };
    let Some(password) = visitor.field("password") else {
        let refused = Refused::missing("password");
        return Ok(sign_in_page(visitor, purpose, Some(&refused)));
    };
    let home = purpose.client.map_or(username, |client| &client.database);
    let database = visitor.field("database").unwrap_or(home);
    if let Some(client) = purpose.client.filter(|client| client.database != database) {
        let refused = Refused::foreign(client);
        return Ok(sign_in_page(visitor, purpose, Some(&refused)));
    }
    let (key, password) = (UserKey::new(database, username), Secret::new(password));
    let client = purpose.client.map(|client| &*client.id);
    let issuer = visitor.app.issuer();
    match issuer.sign_in(key, &password, client, &visitor.visit).await {
        Ok(cookie) => {
            // The session that the browser had is left to its own end: it may be another person's.
            visitor.take(cookie).await?;
            Ok(visitor.go(purpose.back))
        }
        Err(error) => {
            let refused = Refused::of("password", error)?;
            Ok(sign_in_page(visitor, purpose, Some(&refused)))
        }
    }
}

/// What somebody reads who is signed in as a user of another database than the client's.
fn stranger(browser: &Browser, client: &Client) -> Refused {
    let key = &browser.user.key;
    let text = format!(
        "You are signed in as {} of the database {}. {} takes users of the database {} only.",
        key.name, key.database, client.name, client.database
    );
    Refused::told(text)
}

fn sign_in_page(
    visitor: &Visitor<'_>,
    purpose: &Purpose<'_>,
    refused: Option<&Refused>,
) -> Response<Body> {
    let token = visitor.token();
    let home = purpose.client.map(|client| &*client.database);
    let database = visitor.field("database").or(home);
    let reset = visitor.path(&match database {
        Some(database) => format!("/reset?database={}", percent::encode(database)),
        None => "/reset".to_owned(),
    });
    // Whose user it will be is known only where a client asks.
    let choices = match purpose.client {
        Some(_) if purpose.returns_to.is_some() => super::social::choices(visitor),
        _ => Vec::new(),
    };
    let card = page::sign_in(&SignIn {
        form: form(purpose.back, &token, refused),
        client: purpose.client.map(|client| &*client.name),
        database,
        username: visitor.field("username"),
        sign_up: purpose.sign_up,
        choices: &choices,
        reset: &reset,
    });
    visitor.show("Sign in", &card, (refused, purpose.returns_to))
}

async fn second_factor(
    visitor: &mut Visitor<'_>,
    purpose: &Purpose<'_>,
) -> Result<Response<Body>, Failure> {
    let issuer = visitor.app.issuer();
    let mut refused = None;
    if visitor.step() == Some("second_factor")
        && let Some(browser) = &visitor.browser
    {
        let code = visitor.field("code").unwrap_or_default();
        match issuer
            .show_second_factor(browser, code, &visitor.visit)
            .await
        {
            Ok(cookie) => {
                visitor.take(cookie).await?;
                return Ok(visitor.go(purpose.back));
            }
            Err(error) => refused = Some(Refused::of("code", error)?),
        }
    }
    let token = visitor.token();
    let card = page::second_factor(&form(purpose.back, &token, refused.as_ref()));
    Ok(visitor.show(
        "Two-step sign-in",
        &card,
        (refused.as_ref(), purpose.returns_to),
    ))
}

/// Shows the page on which a second factor is set up, and sets it up.
pub(super) async fn enrol(
    visitor: &mut Visitor<'_>,
    purpose: &Purpose<'_>,
) -> Result<Response<Body>, Failure> {
    let issuer = visitor.app.issuer();
    let Some(browser) = visitor.browser.clone() else {
        return Ok(visitor.go(purpose.back));
    };
    let (mut refused, mut begun) = (None, None);
    if visitor.step() == Some("enrol") {
        let sealed = visitor.field("sealed").unwrap_or_default().to_owned();
        let code = visitor.field("code").unwrap_or_default().to_owned();
        match issuer
            .enrol(&browser, (&sealed, &code), &visitor.visit)
            .await
        {
            Ok((codes, cookie)) => {
                visitor.take(cookie).await?;
                let card = page::recovery_codes(&codes, purpose.back);
                return Ok(visitor.show("Recovery codes", &card, (None, purpose.returns_to)));
            }
            Err(error) => refused = Some(Refused::of("code", error)?),
        }
        begun = Some(sealed);
    }
    let enrolment = issuer
        .begin_enrolment(&browser.user.key, begun.as_deref())
        .map_err(failure)?;
    let token = visitor.token();
    let card = page::enrol(&form(purpose.back, &token, refused.as_ref()), &enrolment);
    let more = (refused.as_ref(), purpose.returns_to);
    Ok(visitor.show("Two-step sign-in", &card, more))
}
