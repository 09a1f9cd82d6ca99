//! Passkeys (`WebAuthn`, level 3): registration, sign-in and removal. The challenges are not stored:
//! they are encrypted in the forms and bound to the browser's cookie. A passkey always verifies the
//! user, by a PIN or by biometrics, so it counts as a second factor too.

mod registration;
mod sign_in;

use passki::Passki;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::IdentityService;
use crate::{AttemptLimit, Error, Result, Secret, SecretHash, User, rate_limit};

/// The longest id of a credential in base64url. The specification allows 1023 bytes.
const MAX_ID: usize = 1364;

/// A question that the browser passes to an authenticator.
#[derive(Clone, Debug)]
pub struct PasskeyRequest {
    /// The options for the browser, as JSON of the `WebAuthn` specification.
    pub options: String,
    /// The challenge, encrypted, which the form sends back.
    pub sealed: String,
}

#[derive(Serialize, Deserialize)]
struct Ceremony<T> {
    state: T,
    /// The hash of the browser's cookie.
    browser: String,
    until: i64,
}

/// The relying party at the service's URL; `None` where browsers allow no passkeys: at an IP
/// address, and without HTTPS.
pub(super) fn relying_party(address: &str) -> Option<Passki> {
    let address = address.to_ascii_lowercase();
    let (scheme, rest) = address.split_once("://")?;
    let authority = rest.split('/').next()?;
    // As in the origin that a browser reports.
    let default_port = if scheme == "https" { ":443" } else { ":80" };
    let authority = authority.strip_suffix(default_port).unwrap_or(authority);
    let host = authority.split(':').next()?;
    let is_local = host == "localhost" || host.ends_with(".localhost");
    let is_name = host.contains(|c: char| c.is_ascii_alphabetic()) && !authority.starts_with('[');
    let offered = is_name && (scheme == "https" || is_local);
    let origin = format!("{scheme}://{authority}");
    offered.then(|| Passki::new(host, &[origin], "Tidegate"))
}

/// The id of a user for its authenticators. It does not contain the name, and a new user of the same
/// name has another one.
fn handle(user: &User) -> SecretHash {
    let (key, since) = (&user.key, user.created_at.millis());
    let text = format!("passkey user\0{}\0{}\0{since}", key.database, key.name);
    SecretHash::of(&Secret::new(text))
}

impl IdentityService {
    /// Whether people can sign in with passkeys at the URL of this service.
    pub fn has_passkeys(&self) -> bool {
        self.passkeys.is_some()
    }

    fn passkey_site(&self) -> Result<&Passki> {
        self.passkeys.as_ref().ok_or(Error::NotFound("passkey"))
    }

    fn ask<T: Serialize>(
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
            sealed: self.seal_link(purpose, &ceremony)?,
        })
    }

    /// The state of a question that this browser was asked, and which is used up by this call.
    async fn asked<T: DeserializeOwned>(
        &self,
        (purpose, cookie): (&str, &Secret),
        sealed: &str,
    ) -> Result<T> {
        let ceremony: Ceremony<T> = self.open_link(purpose, sealed)?;
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

#[cfg(test)]
mod tests {
    use super::relying_party;

    #[test]
    fn passkeys_need_a_name_and_https() {
        for (address, id) in [
            (
                "https://id.example",
                Some(("id.example", "https://id.example")),
            ),
            (
                "https://id.example:8443/base",
                Some(("id.example", "https://id.example:8443")),
            ),
            (
                "https://ID.Example:443",
                Some(("id.example", "https://id.example")),
            ),
            (
                "http://localhost:8080",
                Some(("localhost", "http://localhost:8080")),
            ),
            (
                "http://localhost:80",
                Some(("localhost", "http://localhost")),
            ),
            ("http://id.example", None),
            ("http://127.0.0.1:8080", None),
            ("https://192.0.2.1", None),
            ("https://[2001:db8::a]", None),
        ] {
            let site = relying_party(address);
            let found = site
                .as_ref()
                .map(|site| (&*site.rp_id, &*site.rp_origins[0]));
            assert_eq!(found, id, "{address}");
        }
    }
}
