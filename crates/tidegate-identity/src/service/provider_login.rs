//! Logins at identity providers (OpenID Connect Core 1.0, section 3.1). The state of a login is not
//! stored: it is encrypted in `state` and bound to the browser's cookie.

use serde::{Deserialize, Serialize};

use super::IdentityService;
use crate::{Error, ExternalIdentity, IdentityProviders, LoginState, Result, Secret, SecretHash};

const LOGIN_STATE: &str = "login to an identity provider";

#[derive(Serialize, Deserialize)]
struct SealedLoginState {
    provider: String,
    nonce: String,
    verifier: String,
    purpose: LoginPurpose,
    cookie: String,
    until: i64,
}

/// The purpose of a login at an identity provider.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LoginPurpose {
    /// The person signs in for an OAuth client.
    SignIn {
        /// The id of the OAuth client.
        client: String,
        /// The path at which the browser continues.
        next: String,
    },
    /// The signed-in user links the account.
    Link,
}

impl IdentityService {
    /// Begins a login. Returns the provider's URL to which the browser goes. The provider sends the
    /// browser back to `redirect_uri`.
    ///
    /// Errors: [`Error::NotFound`] for an unknown provider, [`Error::Outbound`] when the provider
    /// cannot be reached.
    pub async fn begin_provider_login(
        &self,
        providers: &dyn IdentityProviders,
        (provider, redirect_uri): (&str, &str),
        purpose: LoginPurpose,
        cookie: &Secret,
    ) -> Result<String> {
        // Generated secrets can be used as nonces and code verifiers, because all characters of
        // base64url are allowed in these.
        let random = &self.ports.random;
        let (nonce, verifier) = (random.secret()?.expose().to_owned(), random.secret()?);
        let now = self.ports.clock.now();
        let sealed = SealedLoginState {
            provider: provider.to_owned(),
            nonce: nonce.clone(),
            verifier: verifier.expose().to_owned(),
            purpose,
            cookie: SecretHash::of(cookie).to_base64url(),
            until: now.plus(self.settings.lifetimes.provider_login).millis(),
        };
        let login = LoginState {
            redirect_uri: redirect_uri.to_owned(),
            state: self.seal_token(LOGIN_STATE, &sealed)?,
            nonce,
            verifier,
            now,
        };
        let begun = providers.begin(provider, &login);
        begun.await?.ok_or(Error::NotFound("identity provider"))
    }

    /// Completes a login: checks that it was begun in this browser with this provider and has not
    /// expired, and asks the provider for the identity.
    ///
    /// Errors: [`Error::InvalidLink`] if one of these checks fails, [`Error::LoginDenied`] if the
    /// callback has no code, [`Error::Outbound`].
    pub async fn complete_provider_login(
        &self,
        providers: &dyn IdentityProviders,
        (provider, redirect_uri): (&str, &str),
        (state, code): (&str, Option<&str>),
        cookie: &Secret,
    ) -> Result<(LoginPurpose, ExternalIdentity)> {
        let sealed: SealedLoginState = self.open_token(LOGIN_STATE, state)?;
        self.require_unexpired(sealed.until)?;
        let cookie = SecretHash::of(cookie).to_base64url();
        if sealed.cookie != cookie || sealed.provider != provider {
            return Err(Error::InvalidLink);
        }
        let code = code.ok_or(Error::LoginDenied)?;
        let login = LoginState {
            redirect_uri: redirect_uri.to_owned(),
            state: state.to_owned(),
            nonce: sealed.nonce,
            verifier: Secret::new(sealed.verifier),
            now: self.ports.clock.now(),
        };
        let identity = providers.complete(provider, code, &login).await?;
        Ok((sealed.purpose, identity))
    }
}
