//! Linking accounts of identity providers to an existing user, and unlinking them.

use super::provider_login::LoginPurpose;
use super::{Browser, IdentityService, LoginAttempt};
use crate::{
    AuditKind, Email, Error, ExternalIdentity, IdentityProviders, LinkedIdentity, RemovalOutcome,
    RequestContext, Result, Secret, User, UserKey,
};

impl IdentityService {
    /// Whether the user signed in recently in `browser`.
    pub fn is_recently_signed_in(&self, browser: &Browser) -> bool {
        let fresh = self.settings.lifetimes.recent_sign_in;
        self.ports.clock.now() < browser.session.created_at.plus(fresh)
    }

    /// Requires a recent sign-in or the password, because an unattended open browser must not
    /// suffice to add or remove a credential.
    ///
    /// Errors: [`Error::ReauthenticationRequired`] if the sign-in is not recent and no password is
    /// given, [`Error::WrongCredentials`] for a wrong password, [`Error::TooManyAttempts`],
    /// [`Error::Busy`].
    pub(super) async fn require_recent_sign_in(
        &self,
        browser: &Browser,
        password: Option<&Secret>,
        context: &RequestContext,
    ) -> Result<()> {
        if self.is_recently_signed_in(browser) {
            return Ok(());
        }
        let attempt = LoginAttempt {
            key: browser.user.key.clone(),
            client_id: None,
            address: context.address,
        };
        let password = password.ok_or(Error::ReauthenticationRequired)?;
        self.login_with_password(&attempt, password)
            .await
            .map(|_| ())
    }

    /// Begins a login at the identity provider with the id `provider`. After the login, the
    /// signed-in user can link the account. Returns the URL at the provider to which the browser
    /// must be redirected. The provider sends the browser back to `redirect_uri`. `cookie` is the
    /// browser's cookie.
    ///
    /// Errors: [`Error::ReauthenticationRequired`] when the sign-in is not recent and no `password`
    /// is given, [`Error::WrongCredentials`] when the password is wrong, [`Error::NotFound`] for an
    /// unknown provider, [`Error::Outbound`] when the provider cannot be reached.
    pub async fn begin_account_linking(
        &self,
        providers: &dyn IdentityProviders,
        (provider, redirect_uri): (&str, &str),
        (browser, cookie): (&Browser, &Secret),
        (password, context): (Option<&Secret>, &RequestContext),
    ) -> Result<String> {
        self.require_recent_sign_in(browser, password, context)
            .await?;
        let target = (provider, redirect_uri);
        self.begin_provider_login(providers, target, LoginPurpose::Link, cookie)
            .await
    }

    /// Links an account of an identity provider to the user who is signed in. `identity` consists
    /// of the provider's id and the account. Returns the message that informs the user; `None` if
    /// the user has no email address or has already linked the account.
    ///
    /// Errors: [`Error::Taken`] if another user has linked the account.
    pub async fn link_account(
        &self,
        browser: &Browser,
        identity: (&str, &ExternalIdentity),
        context: &RequestContext,
    ) -> Result<Option<Email>> {
        let user = &browser.user;
        if self.store_link(user, identity, context).await? {
            let news = "can be used to sign in as you from now on";
            return Ok(self.linking_email(user, (&identity.1.issuer, news)));
        }
        let (key, (issuer, subject)) = (&user.key, (&identity.1.issuer, &identity.1.subject));
        let holder = self
            .ports
            .store
            .user_of_identity(&key.database, issuer, subject);
        match holder.await? {
            Some(holder) if holder.key == *key => Ok(None),
            _ => Err(Error::Taken("linked account")),
        }
    }

    /// Stores a linked account and writes an audit event; `false` if the account is linked already.
    pub(super) async fn store_link(
        &self,
        user: &User,
        (provider, identity): (&str, &ExternalIdentity),
        context: &RequestContext,
    ) -> Result<bool> {
        let linked = LinkedIdentity::new(provider, identity, self.ports.clock.now());
        let added = self.ports.store.insert_identity(&user.key, &linked).await?;
        if added {
            let event = (AuditKind::IdentityLinked, identity.issuer.as_str());
            self.audit_identity(event, &user.key, context).await;
        }
        Ok(added)
    }

    /// Unlinks an account of a provider from the user who is signed in. Requires a recent sign-in
    /// or the password. Returns the message that informs the user; `None` if the user has no email
    /// address.
    ///
    /// Errors: [`Error::ReauthenticationRequired`] and the errors of a sign-in with the password;
    /// [`Error::NotFound`] when the account is not linked to the user; [`Error::LastCredential`]
    /// when the user has no password, no passkey and no other linked account.
    pub async fn unlink_account(
        &self,
        browser: &Browser,
        (issuer, subject): (&str, &str),
        password: Option<&Secret>,
        context: &RequestContext,
    ) -> Result<Option<Email>> {
        self.require_recent_sign_in(browser, password, context)
            .await?;
        let (store, key) = (&self.ports.store, &browser.user.key);
        match store.delete_identity(key, issuer, subject).await? {
            RemovalOutcome::Missing => Err(Error::NotFound("linked account")),
            RemovalOutcome::LastCredential => Err(Error::LastCredential),
            RemovalOutcome::Done => {
                let event = (AuditKind::IdentityUnlinked, issuer);
                self.audit_identity(event, key, context).await;
                let news = "cannot be used to sign in as you any more";
                Ok(self.linking_email(&browser.user, (issuer, news)))
            }
        }
    }

    async fn audit_identity(
        &self,
        (kind, issuer): (AuditKind, &str),
        key: &UserKey,
        context: &RequestContext,
    ) {
        let event = self.event(kind, key, context).with_detail(issuer);
        self.ports.audit(event).await;
    }

    fn linking_email(&self, user: &User, (issuer, news): (&str, &str)) -> Option<Email> {
        let (address, key) = (self.settings.address(), &user.key);
        let issuer: String = issuer.chars().filter(|c| !c.is_control()).collect();
        Some(Email {
            to: user.email.clone()?,
            subject: format!("How {} signs in has changed", key.name),
            text: format!(
                "Hello {},\n\nan account at {issuer} {news}: your user {} in the database {}.\n\n\
                 If you did not do this, change your password and check your linked \
                 accounts:\n\n{address}/account\n",
                key.name, key.name, key.database
            ),
        })
    }
}
