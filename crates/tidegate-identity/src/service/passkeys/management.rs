//! The passkeys that a user has: their names and their removal.

use super::IdentityService;
use crate::service::Browser;
use crate::{
    AuditEvent, AuditKind, Email, Error, Passkey, RemovalOutcome, RequestContext, Result, Secret,
    User, UserKey,
};

const NAME_CHARACTERS: usize = 64;

impl IdentityService {
    /// The passkeys of a user, the oldest first.
    pub async fn passkeys_of(&self, key: &UserKey) -> Result<Vec<Passkey>> {
        Ok(self.ports.store.passkeys_of_user(key).await?)
    }

    /// Renames a passkey of the user who is signed in in `browser`.
    ///
    /// Errors: [`Error::NotFound`]; [`Error::InvalidField`] unless the trimmed name has 1 to 64
    /// characters and no control characters.
    pub async fn rename_passkey(
        &self,
        browser: &Browser,
        (id, name): (&str, &str),
        context: &RequestContext,
    ) -> Result<()> {
        let (user, name) = (&browser.user, name.trim());
        let is_short = (1..=NAME_CHARACTERS).contains(&name.chars().count());
        if !is_short || name.contains(char::is_control) {
            return Err(Error::InvalidField {
                field: "name",
                expected: "a name of 1 to 64 characters without control characters",
            });
        }
        if !self.ports.store.rename_passkey(&user.key, id, name).await? {
            return Err(Error::NotFound("passkey"));
        }
        self.audit_passkey((AuditKind::PasskeyRenamed, name), user, context)
            .await;
        Ok(())
    }

    /// Removes a passkey of the user who is signed in in `browser`. Requires a recent sign-in or
    /// the password, so that a person at an unattended browser cannot lock the user out. Returns
    /// the message that informs the user; `None` if the user has no email address.
    ///
    /// Errors: [`Error::ReauthenticationRequired`] and the errors of a sign-in with the password;
    /// [`Error::NotFound`]; [`Error::LastCredential`] when the user has no password, no linked
    /// account and no other passkey.
    pub async fn remove_passkey(
        &self,
        browser: &Browser,
        id: &str,
        password: Option<&Secret>,
        context: &RequestContext,
    ) -> Result<Option<Email>> {
        self.require_recent_sign_in(browser, password, context)
            .await?;
        let (store, user) = (&self.ports.store, &browser.user);
        let own = self.passkeys_of(&user.key).await?;
        let passkey = own.iter().find(|passkey| passkey.id == id);
        let passkey = passkey.ok_or(Error::NotFound("passkey"))?;
        match store.delete_passkey(&user.key, id).await? {
            RemovalOutcome::Missing => return Err(Error::NotFound("passkey")),
            RemovalOutcome::LastCredential => return Err(Error::LastCredential),
            RemovalOutcome::Done => {}
        }
        self.audit_passkey((AuditKind::PasskeyRemoved, &passkey.name), user, context)
            .await;
        let news = "cannot be used to sign in as you any more";
        Ok(self.passkey_email(user, (&passkey.name, news)))
    }

    pub(super) async fn audit_passkey(
        &self,
        (kind, name): (AuditKind, &str),
        user: &User,
        context: &RequestContext,
    ) {
        let event: AuditEvent = self.event(kind, &user.key, context).with_detail(name);
        self.ports.audit(event).await;
    }

    pub(super) fn passkey_email(&self, user: &User, (name, news): (&str, &str)) -> Option<Email> {
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
