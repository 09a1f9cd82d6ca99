//! `/account`: a user's own sessions, accounts elsewhere, password and second factor.

use http::Response;
use tidegate_oauth::{Browser, Error, IdentityProviders, Secret, SessionId};

use super::admission::{Purpose, admit, enrol};
use super::link::{link, unlink};
use super::visitor::{Refused, Visitor, failure, form};
use crate::body::Body;
use crate::endpoint::Call;
use crate::error::Failure;
use crate::page;
use crate::stack::BodyError;

pub(crate) async fn account<B>(call: Call<'_, B>) -> Result<Response<Body>, Failure>
where
    B: http_body::Body<Data = bytes::Bytes> + Send + Unpin,
    B::Error: Into<BodyError>,
{
    let mut visitor = Visitor::receive(call).await?;
    let back = visitor.path("/account");
    let purpose = Purpose {
        client: None,
        back: &back,
        returns_to: None,
        sign_up: None,
    };
    if let Some(answer) = admit(&mut visitor, &purpose).await? {
        return Ok(answer);
    }
    let Some(browser) = visitor.browser.clone() else {
        return Ok(visitor.go(&back));
    };
    match visitor.step() {
        Some("begin_enrolment" | "enrol") => enrol(&mut visitor, &purpose).await,
        Some("sign_out") => {
            visitor.leave().await?;
            let card = page::notice("Signed out", "You are signed out of this browser.", None);
            Ok(visitor.show("Signed out", &card, (None, None)))
        }
        Some("change_password") => change_password(&mut visitor, &browser).await,
        Some("link") => link(&visitor, &browser).await,
        Some("unlink") => unlink(&visitor, &browser).await,
        Some("remove_second_factor") => remove_second_factor(&visitor, &browser).await,
        Some(step) => {
            let done = end(&visitor, &browser, step).await;
            let done = match done {
                // It has ended already.
                Err(Error::NotFound(_)) => Ok("Ended."),
                done => done,
            };
            overview(&visitor, (None, Some(done.map_err(failure)?))).await
        }
        None => {
            let linked = visitor.parameter("done") == Some("linked");
            let done = linked.then_some("The account is linked. You can sign in with it.");
            overview(&visitor, (None, done)).await
        }
    }
}

/// Ends what the form names.
async fn end(visitor: &Visitor<'_>, browser: &Browser, step: &str) -> Result<&'static str, Error> {
    let issuer = visitor.app.issuer();
    match step {
        "end_session" => {
            let id = visitor.field("session").and_then(SessionId::parse);
            let id = id.ok_or(Error::NotFound("session"))?;
            issuer.end_own_session(browser, id, &visitor.visit).await?;
            Ok("The application has no access any more.")
        }
        "end_browser" => {
            let name = visitor.field("browser").unwrap_or_default();
            issuer.end_own_browser(browser, name).await?;
            Ok("The browser is signed out.")
        }
        _ => Err(Error::NotFound("step")),
    }
}

async fn remove_second_factor(
    visitor: &Visitor<'_>,
    browser: &Browser,
) -> Result<Response<Body>, Failure> {
    let Some(proof) = visitor.field("proof") else {
        return overview(visitor, (Some(Refused::missing("proof")), None)).await;
    };
    let (issuer, proof) = (visitor.app.issuer(), Secret::new(proof));
    let removed = issuer.remove_second_factor(browser, &proof, &visitor.visit);
    match removed.await {
        Ok(()) => overview(visitor, (None, Some("Two-step sign-in is off."))).await,
        Err(error) => {
            let wrong = matches!(error, Error::WrongCredentials | Error::WrongSecondFactor);
            let mut refused = Refused::of("proof", error)?;
            if wrong {
                "That is not your password, and no code that works now."
                    .clone_into(&mut refused.complaint.text);
            }
            overview(visitor, (Some(refused), None)).await
        }
    }
}

async fn change_password(
    visitor: &mut Visitor<'_>,
    browser: &Browser,
) -> Result<Response<Body>, Failure> {
    let (current, new) = (visitor.field("password"), visitor.field("new_password"));
    let has_one = browser.user.password_hash.is_some();
    let (current, new) = match (current, new) {
        (None, _) if has_one => {
            return overview(visitor, (Some(Refused::missing("password")), None)).await;
        }
        (_, None) => {
            return overview(visitor, (Some(Refused::missing("new_password")), None)).await;
        }
        (current, Some(new)) => (current.map(Secret::new), Secret::new(new)),
    };
    let issuer = visitor.app.issuer();
    let changed = issuer.change_own_password(browser, (current.as_ref(), &new), &visitor.visit);
    match changed.await {
        Ok(cookie) => {
            visitor.take(cookie).await?;
            let done = "Your password is changed, and every other session has ended.";
            overview(visitor, (None, Some(done))).await
        }
        Err(error) => {
            let field = match error {
                Error::InvalidMember { .. } | Error::StaleSignIn => "new_password",
                _ => "password",
            };
            let error = match error {
                Error::WrongCredentials => {
                    let mut refused = Refused::of(field, Error::WrongCredentials)?;
                    "The current password is wrong.".clone_into(&mut refused.complaint.text);
                    return overview(visitor, (Some(refused), None)).await;
                }
                error => error,
            };
            let refused = Refused::of(field, error)?;
            overview(visitor, (Some(refused), None)).await
        }
    }
}

pub(super) async fn overview(
    visitor: &Visitor<'_>,
    (refused, done): (Option<Refused>, Option<&str>),
) -> Result<Response<Body>, Failure> {
    let (issuer, action) = (visitor.app.issuer(), visitor.path("/account"));
    let Some(browser) = &visitor.browser else {
        return Ok(visitor.go(&action));
    };
    let account = issuer.account(browser).await.map_err(failure)?;
    let token = visitor.token();
    let form = form(&action, &token, refused.as_ref());
    let names = visitor.app.providers().map(IdentityProviders::names);
    let providers = names.unwrap_or_default();
    let card = page::account(&form, browser, &account, (issuer.now(), done), providers);
    Ok(visitor.show("Your account", &card, (refused.as_ref(), None)))
}
