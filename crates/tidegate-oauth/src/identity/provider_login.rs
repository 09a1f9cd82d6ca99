//! Logins at identity providers (OpenID Connect Core 1.0, section 3.1). The state of a login is not
//! stored: it is encrypted in `state` and bound to the browser's cookie.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

use super::Identity;
use crate::{
    Error, ExternalIdentity, IdentityProviders, LoginState, Result, Secret, SecretHash, random,
};

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

/// What a login at a provider is for.
#[derive(Serialize, Deserialize)]
pub(crate) enum LoginPurpose {
    /// To sign in for a client; the browser continues at the path `next`.
    SignIn { client: String, next: String },
    /// To link the account to the user who is signed in.
    Link,
}

impl Identity {
    /// The URL to which the browser goes for this purpose.
    pub(crate) async fn begin_provider_login(
        &self,
        providers: &dyn IdentityProviders,
        (provider, redirect_uri): (&str, &str),
        purpose: LoginPurpose,
        cookie: &Secret,
    ) -> Result<String> {
        let tokens = [self.random_token()?, self.random_token()?];
        let [nonce, verifier] = tokens;
        let now = self.ports.clock.now();
        let sealed = SealedLoginState {
            provider: provider.to_owned(),
            nonce: nonce.clone(),
            verifier: verifier.clone(),
            purpose,
            cookie: SecretHash::of(cookie).to_base64url(),
            until: now.plus(self.settings.lifetimes.federated_login).millis(),
        };
        let login = LoginState {
            redirect_uri: redirect_uri.to_owned(),
            state: self.seal_link(LOGIN_STATE, &sealed)?,
            nonce,
            verifier: Secret::new(verifier),
            now,
        };
        let begun = providers.begin(provider, &login);
        begun.await?.ok_or(Error::NotFound("identity provider"))
    }

    /// Completes a login: checks that it is of this browser and provider and has not expired, and
    /// asks the provider for the identity.
    ///
    /// [`Error::InvalidLink`], [`Error::AccessDenied`] without a code, [`Error::Outbound`].
    pub(crate) async fn complete_provider_login(
        &self,
        providers: &dyn IdentityProviders,
        (provider, redirect_uri): (&str, &str),
        (state, code): (&str, Option<&str>),
        cookie: &Secret,
    ) -> Result<(LoginPurpose, ExternalIdentity)> {
        let sealed: SealedLoginState = self.open_link(LOGIN_STATE, state)?;
        self.require_unexpired(sealed.until)?;
        let cookie = SecretHash::of(cookie).to_base64url();
        if sealed.cookie != cookie || sealed.provider != provider {
            return Err(Error::InvalidLink);
        }
        let code = code.ok_or(Error::AccessDenied)?;
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

    /// 256 random bits as 43 characters, valid as a code verifier and as a nonce.
    fn random_token(&self) -> Result<String> {
        let bytes: [u8; 32] = random::bytes(&*self.ports.random)?;
        Ok(URL_SAFE_NO_PAD.encode(bytes))
    }
}
