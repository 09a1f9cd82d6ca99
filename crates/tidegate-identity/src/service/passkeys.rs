//! Passkeys (`WebAuthn`, level 3): registration, sign-in and removal. A passkey request contains a
//! challenge, to which an authenticator responds. The service does not store challenges: the HTML
//! form contains the challenge, encrypted and bound to the browser's cookie. The authenticator must
//! verify the user, by a PIN or by biometrics, so a passkey counts as a second factor too.

mod management;
mod registration;
mod sign_in;
mod site;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use webauthn_rs_core::WebauthnCore;
use webauthn_rs_core::error::WebauthnError;

use super::IdentityService;
use crate::{AttemptLimit, Error, Result, Secret, SecretHash, User, rate_limit};
pub(super) use site::relying_party;

/// A challenge with its options, which the browser passes to an authenticator.
#[derive(Clone, Debug)]
pub struct PasskeyRequest {
    /// The options for the browser, as JSON of the `WebAuthn` specification.
    pub options: String,
    /// The challenge and the state for checking the authenticator's response, encrypted. The form
    /// sends them back.
    pub sealed: String,
}

/// The content of [`PasskeyRequest::sealed`].
#[derive(Serialize, Deserialize)]
struct Ceremony<T> {
    state: T,
    /// The hash of the browser's cookie.
    browser: String,
    until: i64,
}

/// The user handle: the id by which authenticators identify a user. It does not contain the name,
/// and a new user of the same name has another id.
fn handle(user: &User) -> SecretHash {
    let (key, since) = (&user.key, user.created_at.millis());
    let text = format!("passkey user\0{}\0{}\0{since}", key.database, key.name);
    SecretHash::of(&Secret::new(text))
}

/// Hides the reason for which a passkey is refused. The reason would show an attacker which part
/// still has to be forged.
fn refused(_: WebauthnError) -> Error {
    Error::WrongPasskey
}

impl IdentityService {
    /// Whether people can sign in with passkeys at the URL of this service.
    pub fn has_passkeys(&self) -> bool {
        self.passkeys.is_some()
    }

    fn passkey_site(&self) -> Result<&WebauthnCore> {
        self.passkeys.as_ref().ok_or(Error::NotFound("passkey"))
    }

    fn seal_request<T: Serialize>(
        &self,
        (purpose, cookie): (&str, &Secret),
        (options, state): (&impl Serialize, T),
    ) -> Result<PasskeyRequest> {
        let lifetime = self.settings.lifetimes.passkey;
        let ceremony = Ceremony {
            state,
            browser: SecretHash::of(cookie).to_base64url(),
            until: self.ports.clock.now().plus(lifetime).millis(),
        };
        Ok(PasskeyRequest {
            options: serde_json::to_string(options).map_err(|_| Error::DamagedSecret)?,
            sealed: self.seal_token(purpose, &ceremony)?,
        })
    }

    /// Decrypts the state of a passkey request, and counts the response to it.
    ///
    /// Errors: [`Error::InvalidLink`] if the request is forged or too old, was sent to another
    /// browser, or already had a response.
    async fn open_request<T: DeserializeOwned>(
        &self,
        (purpose, cookie): (&str, &Secret),
        sealed: &str,
    ) -> Result<T> {
        let ceremony: Ceremony<T> = self.open_token(purpose, sealed)?;
        self.require_unexpired(ceremony.until)?;
        if ceremony.browser != SecretHash::of(cookie).to_base64url() {
            return Err(Error::InvalidLink);
        }
        let once = AttemptLimit::once(self.settings.lifetimes.passkey);
        match self.attempts().count(rate_limit::link(sealed), &once).await {
            Err(Error::TooManyAttempts { .. }) => Err(Error::InvalidLink),
            counted => counted.map(|()| ceremony.state),
        }
    }
}
