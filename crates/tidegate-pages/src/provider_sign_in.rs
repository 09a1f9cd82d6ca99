//! `/signin/{provider}` and its `/callback`: sign-in with an identity provider. Account linking
//! uses the callback too.

use http::Response;
use tidegate_identity::Error as IdentityError;
use tidegate_oauth::{Error, LoginOutcome, ProviderCallback};

use super::account_linking::{already_linked, linked};
use super::context::PageContext;
use super::form_error::request_error;
use super::providers::{callback, provider_error, unknown_provider};
use super::reset::invalid_link_page;
use tidegate_http::body::Body;
use tidegate_http::call::Call;
use tidegate_http::error::ApiError;
use tidegate_http::request_body::IncomingBody;

/// Redirects the browser to the identity provider. The request has the query of an authorization
/// request. After the login, the browser continues at `/auth` with this query.
pub async fn begin<B: IncomingBody>(
    call: Call<'_, B>,
    provider: &str,
) -> Result<Response<Body>, ApiError> {
    let context = PageContext::receive(call).await?;
    let (app, issuer) = (context.app, context.app.issuer());
    let providers = app.providers().ok_or_else(unknown_provider)?;
    let client = issuer.client_and_redirect_uri(&context.query).await;
    let (client, _) = client.map_err(request_error)?;
    let next = context.path(&format!("/auth?{}", context.raw_query()));
    let callback_url = callback(&context, provider);
    let begun = issuer.begin_federated_login(
        providers,
        (provider, &callback_url),
        (&client, &next),
        context.cookie(),
    );
    match begun.await {
        Ok(address) => Ok(context.redirect(&address)),
        Err(Error::Identity(IdentityError::NotFound(_))) => Err(unknown_provider()),
        Err(error) => Err(provider_error(error)),
    }
}

/// Handles the callback from the provider.
pub async fn complete<B: IncomingBody>(
    call: Call<'_, B>,
    provider: &str,
) -> Result<Response<Body>, ApiError> {
    let mut context = PageContext::receive(call).await?;
    let (app, issuer) = (context.app, context.app.issuer());
    let providers = app.providers().ok_or_else(unknown_provider)?;
    let accounts = app.accounts().ok_or_else(ApiError::sign_up_closed)?;
    let callback_url = callback(&context, provider);
    let brought = ProviderCallback {
        response: &context.query,
        cookie: context.cookie(),
        browser: context.browser.as_ref(),
    };
    let completed = issuer.complete_federated_login(
        (providers, accounts),
        (provider, &callback_url),
        &brought,
        &context.request,
    );
    match completed.await {
        Ok(LoginOutcome::Linked(message)) => Ok(linked(&context, message)),
        Ok(LoginOutcome::SignedIn { cookie, next }) => {
            context.switch_cookie(cookie).await?;
            Ok(context.redirect(&next))
        }
        Err(Error::Identity(IdentityError::Taken("linked account"))) => already_linked(&context),
        Err(Error::Identity(IdentityError::InvalidLink)) => Ok(invalid_link_page(&context)),
        Err(Error::SignUpClosed) => Err(ApiError::sign_up_closed()),
        Err(Error::Identity(IdentityError::InvalidField { expected, .. })) => {
            Err(ApiError::input(format!("To sign in you need {expected}.")))
        }
        Err(Error::Identity(IdentityError::WrongCredentials)) => Err(ApiError::input(
            "The owner of the database has disabled your account.",
        )),
        Err(Error::Identity(IdentityError::LoginDenied)) => Err(ApiError::input(
            "You did not sign in there. Go back to the application and try again.",
        )),
        Err(error) => Err(provider_error(error)),
    }
}
