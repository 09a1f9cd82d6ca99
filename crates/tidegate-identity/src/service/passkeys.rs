//! Passkeys (`WebAuthn`, level 3): registration, sign-in and removal. The challenges are not stored:
//! they are encrypted in the forms and bound to the browser's cookie. A passkey always verifies the
//! user, by a PIN or by biometrics, so it counts as a second factor too.

use passki::{
    AuthenticationCredential, AuthenticationOptions, AuthenticationState, Passki,
    RegistrationCredential, RegistrationOptions, RegistrationState, ResidentKeyRequirement,
    StoredPasskey, UserVerificationRequirement,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{Browser, IdentityService};
use crate::{
    AttemptLimit, AuditEvent, AuditKind, Email, Error, Passkey, RequestContext, Result, Secret,
    SecretHash, User, UserKey, rate_limit,
};

const SIGN_IN: &str = "sign-in with a passkey";
const REGISTRATION: &str = "registration of a passkey";
/// How many passkeys a user may have.
const MOST: usize = 20;
/// The longest id of a credential in base64url. The specification allows 1023 bytes.
const MAX_ID: usize = 1364;
const NAME_CHARACTERS: usize = 64;

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
    let (scheme, rest) = address.split_once("://")?;
    let authority = rest.split('/').next()?;
    let host = authority.split(':').next()?;
    let is_local = host == "localhost" || host.ends_with(".localhost");
    let is_name = host.contains(|c: char| c.is_ascii_alphabetic()) && !authority.starts_with('[');
    let offered = is_name && (scheme == "https" || is_local);
    let origin = format!("{scheme}://{authority}");
    offered.then(|| Passki::new(host, &[origin], "Tidegate"))
}

/// The id of a user for its authenticators. It reveals nothing, and a new user of the same name has
/// another one.
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

    /// The question by which any person signs in; `None` where browsers allow no
    /// passkeys.
    pub fn begin_passkey_sign_in(&self, cookie: &Secret) -> Result<Option<PasskeyRequest>> {
        let Some(site) = &self.passkeys else {
            return Ok(None);
        };
        let mut options = AuthenticationOptions::default();
        options.user_verification = UserVerificationRequirement::Required;
        let begun = site.start_passkey_authentication(&[], options);
        let (options, state) = begun.map_err(|_| Error::NoRandomness)?;
        self.ask((SIGN_IN, cookie), (&options, state)).map(Some)
    }

    /// Signs in the user of a passkey, in the browser with `cookie`. Returns the browser's new
    /// cookie. The passkey counts as a second factor too.
    ///
    /// Errors: [`Error::WrongPasskey`]; [`Error::InvalidLink`] when the question is too old;
    /// [`Error::TooManyAttempts`].
    pub async fn sign_in_with_passkey(
        &self,
        (sealed, credential): (&str, &str),
        (client_id, cookie): (Option<&str>, &Secret),
        context: &RequestContext,
    ) -> Result<Secret> {
        let attempts = self.attempts_from(context.address).await?;
        let state = self.asked((SIGN_IN, cookie), sealed).await?;
        let answer: AuthenticationCredential =
            serde_json::from_str(credential).map_err(|_| Error::WrongPasskey)?;
        let found = self.user_of_passkey(&answer.raw_id).await?;
        let (user, passkey) = found.ok_or(Error::WrongPasskey)?;
        if let Err(error) = self
            .verify_passkey((&answer, &state), (&user, &passkey))
            .await
        {
            let event = self.event(AuditKind::SignInFailed, &user.key, context);
            let event = event.with_client(client_id).with_detail("passkey");
            self.ports.audit(event).await;
            return Err(error);
        }
        attempts.refund().await?;
        let event = self.event(AuditKind::SignedIn, &user.key, context);
        let event = event.with_client(client_id).with_detail("passkey");
        self.ports.audit(event).await;
        self.open_browser_session(&user, context, true).await
    }

    async fn user_of_passkey(&self, id: &str) -> Result<Option<(User, Passkey)>> {
        if id.len() > MAX_ID {
            return Ok(None);
        }
        let store = &self.ports.store;
        let Some((key, passkey)) = store.passkey(id).await? else {
            return Ok(None);
        };
        let user = store.user(&key).await?.filter(|user| !user.default_user);
        Ok(user.map(|user| (user, passkey)))
    }

    /// Verifies the answer of an authenticator and stores its counter of signatures.
    async fn verify_passkey(
        &self,
        (answer, state): (&AuthenticationCredential, &AuthenticationState),
        (user, passkey): (&User, &Passkey),
    ) -> Result<()> {
        let mut stored: StoredPasskey =
            serde_json::from_str(&passkey.record).map_err(|_| Error::DamagedSecret)?;
        let site = self.passkey_site()?;
        let verified = site.finish_passkey_authentication(answer, state, &stored);
        let verified = verified.map_err(|_| Error::WrongPasskey)?;
        let own = verified.user_handle.as_deref() == Some(&handle(user).as_bytes()[..]);
        if !own {
            return Err(Error::WrongPasskey);
        }
        stored.counter = verified.counter;
        let now = self.ports.clock.now();
        let record = serde_json::to_string(&stored).map_err(|_| Error::DamagedSecret)?;
        let replaced = self.ports.store.use_passkey(passkey, &record, now);
        // It fails if the passkey was removed or used by another request meanwhile.
        replaced.await?.then_some(()).ok_or(Error::WrongPasskey)
    }

    /// The question by which the user who is signed in in `browser` creates a passkey. It takes a
    /// recent sign-in or the password, because an unattended browser must not suffice.
    ///
    /// Errors: [`Error::NotFound`] where browsers allow no passkeys; those of a password.
    pub async fn begin_passkey(
        &self,
        (browser, cookie): (&Browser, &Secret),
        password: Option<&Secret>,
        context: &RequestContext,
    ) -> Result<PasskeyRequest> {
        let site = self.passkey_site()?;
        self.require_recent_sign_in(browser, password, context)
            .await?;
        let user = &browser.user;
        let known = self.passkeys_of(&user.key).await?;
        if known.len() >= MOST {
            return Err(Error::Taken("passkey"));
        }
        let known: Vec<StoredPasskey> = known
            .iter()
            .filter_map(|passkey| serde_json::from_str(&passkey.record).ok())
            .collect();
        let mut options = RegistrationOptions::default();
        options.user_verification = UserVerificationRequirement::Required;
        options.resident_key = ResidentKeyRequirement::Required;
        options.exclude_credentials = Some(&known);
        let (id, name) = (handle(user), user.key.to_string());
        let begun = site.start_passkey_registration(id.as_bytes(), &user.key.name, &name, options);
        let (options, state) = begun.map_err(|_| Error::NoRandomness)?;
        self.ask((REGISTRATION, cookie), (&options, state))
    }

    /// Stores a new passkey, named `name`, of the user who is signed in in `browser`. Returns the
    /// message that informs the user.
    ///
    /// Errors: [`Error::WrongPasskey`]; [`Error::InvalidLink`] when the question is too old;
    /// [`Error::Taken`] when the passkey is known already.
    pub async fn add_passkey(
        &self,
        (browser, cookie): (&Browser, &Secret),
        (sealed, credential, name): (&str, &str, &str),
        context: &RequestContext,
    ) -> Result<Option<Email>> {
        let state: RegistrationState = self.asked((REGISTRATION, cookie), sealed).await?;
        let answer: RegistrationCredential =
            serde_json::from_str(credential).map_err(|_| Error::WrongPasskey)?;
        let user = &browser.user;
        if state.user.id != handle(user).to_base64url() || answer.raw_id.len() > MAX_ID {
            return Err(Error::WrongPasskey);
        }
        let made = self.passkey_site()?;
        let made = made.finish_passkey_registration(&answer, &state);
        let made = made.map_err(|_| Error::WrongPasskey)?;
        let passkey = Passkey {
            id: Passki::base64_encode(&made.credential_id),
            name: name.chars().take(NAME_CHARACTERS).collect(),
            record: serde_json::to_string(&made).map_err(|_| Error::DamagedSecret)?,
            created_at: self.ports.clock.now(),
            used_at: None,
        };
        if !self.ports.store.insert_passkey(&user.key, &passkey).await? {
            return Err(Error::Taken("passkey"));
        }
        self.audit_passkey((AuditKind::PasskeyAdded, &passkey.name), user, context)
            .await;
        let news = "can be used to sign in as you from now on";
        Ok(self.passkey_email(user, (&passkey.name, news)))
    }

    /// Removes a passkey of the user who is signed in in `browser`. Returns the message that
    /// informs the user.
    ///
    /// Errors: [`Error::NotFound`]; [`Error::LastCredential`] when the user has no password, no
    /// linked account and no other passkey.
    pub async fn remove_passkey(
        &self,
        browser: &Browser,
        id: &str,
        context: &RequestContext,
    ) -> Result<Option<Email>> {
        let (store, user) = (&self.ports.store, &browser.user);
        let own = self.passkeys_of(&user.key).await?;
        let passkey = own.iter().find(|passkey| passkey.id == id);
        let passkey = passkey.ok_or(Error::NotFound("passkey"))?;
        let alone = own.len() == 1 && user.password_hash.is_none();
        if alone && store.identities_of_user(&user.key).await?.is_empty() {
            return Err(Error::LastCredential);
        }
        if !store.delete_passkey(&user.key, id).await? {
            return Err(Error::NotFound("passkey"));
        }
        self.audit_passkey((AuditKind::PasskeyRemoved, &passkey.name), user, context)
            .await;
        let news = "cannot be used to sign in as you any more";
        Ok(self.passkey_email(user, (&passkey.name, news)))
    }

    /// The passkeys of a user, the oldest first.
    pub async fn passkeys_of(&self, key: &UserKey) -> Result<Vec<Passkey>> {
        Ok(self.ports.store.passkeys_of_user(key).await?)
    }

    async fn audit_passkey(
        &self,
        (kind, name): (AuditKind, &str),
        user: &User,
        context: &RequestContext,
    ) {
        let event: AuditEvent = self.event(kind, &user.key, context).with_detail(name);
        self.ports.audit(event).await;
    }

    fn passkey_email(&self, user: &User, (name, news): (&str, &str)) -> Option<Email> {
        let (address, key) = (self.settings.address(), &user.key);
        Some(Email {
            to: user.email.clone()?,
            subject: format!("How {} signs in has changed", key.name),
            text: format!(
                "Hello {},\n\nthe passkey of {name} {news}: your user {} in the database {}.\n\n\
                 If you did not do this, change your password and check your \
                 passkeys:\n\n{address}/account\n",
                key.name, key.name, key.database
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::relying_party;

    #[test]
    fn passkeys_need_a_name_and_https() {
        for (address, id) in [
            ("https://id.example", Some("id.example")),
            ("https://id.example:8443/base", Some("id.example")),
            ("http://localhost:8080", Some("localhost")),
            ("http://id.example", None),
            ("http://127.0.0.1:8080", None),
            ("https://192.0.2.1", None),
            ("https://[2001:db8::a]", None),
        ] {
            let site = relying_party(address);
            assert_eq!(site.as_ref().map(|site| &*site.rp_id), id, "{address}");
            if let Some(site) = site {
                let origin = address.trim_end_matches("/base");
                assert_eq!(site.rp_origins, [origin]);
            }
        }
    }
}
