//! `/signin/{provider}` and its `/callback`: signing in with an account elsewhere. Those who link one
//! come back here too.

use http::Response;
use tidegate_oauth::{Arrival, Error, IdentityProviders, Return};

use super::authorize::shown;
use super::link::{linked, taken};
use super::reset::dead;
use super::visitor::{Visitor, failure};
use crate::body::Body;
use crate::endpoint::Call;
use crate::error::Failure;
use crate::page;
use crate::percent;
use crate::stack::BodyError;

/// Sends a browser to the provider. The query is that of `/auth`, where the browser goes on.
pub(crate) async fn begin<B>(call: Call<'_, B>, provider: &str) -> Result<Response<Body>, Failure>
where
    B: http_body::Body<Data = bytes::Bytes> + Send + Unpin,
    B::Error: Into<BodyError>,
{
    let visitor = Visitor::receive(call).await?;
    let (app, issuer) = (visitor.app, visitor.app.issuer());
    let providers = app.providers().ok_or_else(absent)?;
    let client = issuer.returning_client(&visitor.query).await;
    let (client, _) = client.map_err(shown)?;
    let next = visitor.path(&format!("/auth?{}", visitor.raw_query()));
    let back = callback(&visitor, provider);
    let begun = issuer.begin_social(
        providers,
        (provider, &back),
        (&client, &next),
        visitor.cookie(),
    );
    match begun.await {
        Ok(address) => Ok(visitor.go(&address)),
        Err(Error::NotFound(_)) => Err(absent()),
        Err(error) => Err(told(error)),
    }
}

/// Takes a browser back.
pub(crate) async fn complete<B>(
    call: Call<'_, B>,
    provider: &str,
) -> Result<Response<Body>, Failure>
where
    B: http_body::Body<Data = bytes::Bytes> + Send + Unpin,
    B::Error: Into<BodyError>,
{
    let mut visitor = Visitor::receive(call).await?;
    let (app, issuer) = (visitor.app, visitor.app.issuer());
    let providers = app.providers().ok_or_else(absent)?;
    let accounts = app.accounts().ok_or_else(Failure::sign_up_closed)?;
    let back = callback(&visitor, provider);
    let brought = Return {
        answer: &visitor.query,
        cookie: visitor.cookie(),
        browser: visitor.browser.as_ref(),
    };
    let completed = issuer.complete_social(
        (providers, accounts),
        (provider, &back),
        &brought,
        &visitor.visit,
    );
    match completed.await {
        Ok(Arrival::Linked(letter)) => Ok(linked(&visitor, letter)),
        Ok(Arrival::SignedIn { cookie, next }) => {
            visitor.take(cookie).await?;
            Ok(visitor.go(&next))
        }
        Err(Error::Taken("account elsewhere")) => taken(&visitor),
        Err(Error::DeadLink) => Ok(dead(&visitor)),
        Err(Error::SignUpClosed) => Err(Failure::sign_up_closed()),
        Err(Error::InvalidMember { expected, .. }) => {
            Err(Failure::input(format!("To sign in you need {expected}.")))
        }
        Err(Error::AccessDenied) => Err(Failure::input(
            "You did not sign in there. Go back to the application and try again.",
        )),
        Err(error) => Err(told(error)),
    }
}

/// The buttons of the sign-in page.
pub(super) fn choices(visitor: &Visitor<'_>) -> Vec<page::Choice> {
    let names = visitor.app.providers().map(IdentityProviders::names);
    let choice = |name: &tidegate_oauth::ProviderName| page::Choice {
        address: visitor.path(&format!(
            "/signin/{}?{}",
            percent::encode(&name.id),
            visitor.raw_query()
        )),
        label: name.label.clone(),
    };
    names.unwrap_or_default().iter().map(choice).collect()
}

pub(super) fn callback(visitor: &Visitor<'_>, provider: &str) -> String {
    let issuer = visitor.app.issuer().address();
    format!("{issuer}/signin/{}/callback", percent::encode(provider))
}

pub(super) fn absent() -> Failure {
    Failure::not_found("there is no such way to sign in")
}

pub(super) fn told(error: Error) -> Failure {
    match error {
        Error::Outbound(cause) => Failure::unavailable(
            "PROVIDER_UNAVAILABLE",
            "The other service does not answer as it should. Try again, or sign in with a password.",
            std::time::Duration::from_secs(30),
        )
        .caused_by(Some(Box::new(cause))),
        error => failure(error),
    }
}
