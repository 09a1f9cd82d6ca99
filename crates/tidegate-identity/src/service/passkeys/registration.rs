//! Adding and removing the passkeys of a user who is signed in.

use passki::{
    Passki, RegistrationCredential, RegistrationOptions, RegistrationState, ResidentKeyRequirement,
    StoredPasskey, UserVerificationRequirement,
};

use super::{IdentityService, MAX_ID, PasskeyRequest, handle};
use crate::service::Browser;
use crate::{
    AuditEvent, AuditKind, Email, Error, Passkey, RequestContext, Result, Secret, UnlinkOutcome,
    User, UserKey,
};

const REGISTRATION: &str = "registration of a passkey";
/// How many passkeys a user may have.
const MOST: usize = 20;
const NAME_CHARACTERS: usize = 64;

impl IdentityService {
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
        match store.delete_passkey(&user.key, id).await? {
            UnlinkOutcome::Missing => return Err(Error::NotFound("passkey")),
            UnlinkOutcome::LastCredential => return Err(Error::LastCredential),
            UnlinkOutcome::Done => {}
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
