//! Linking an account elsewhere to a user who is here already, and taking the link away.

use super::social::Purpose;
use super::{Browser, Claimed, Issuer};
use crate::{
    AuditKind, Error, ExternalIdentity, IdentityProviders, Letter, LinkedIdentity, Result, Secret,
    Unlinked, User, UserKey, Visit,
};

impl Issuer {
    /// Whether whoever is signed in in `browser` did so a short while ago.
    pub fn is_fresh(&self, browser: &Browser) -> bool {
        let fresh = self.settings.lifetimes.fresh_sign_in;
        self.ports.clock.now() < browser.session.created_at.plus(fresh)
    }

    /// Passes who signed in a short while ago, or shows the password once more: what gives
    /// another way in takes more than a browser that was left open.
    ///
    /// [`Error::StaleSignIn`] without a password, [`Error::WrongCredentials`] with a wrong one,
    /// [`Error::TooManyAttempts`], [`Error::Busy`].
    pub(super) async fn confirm(
        &self,
        browser: &Browser,
        password: Option<&Secret>,
        visit: &Visit,
    ) -> Result<()> {
        if self.is_fresh(browser) {
            return Ok(());
        }
        let claimed = Claimed {
            key: browser.user.key.clone(),
            client_id: None,
            address: visit.address,
        };
        let password = password.ok_or(Error::StaleSignIn)?;
        self.prove(&claimed, password).await.map(|_| ())
    }

    /// Where a browser goes to link an account of `provider` to whoever is signed in in it; it
    /// comes back to `redirect_uri`. `cookie` is the browser's.
    ///
    /// [`Error::StaleSignIn`] when the sign-in is too old and no `password` is shown,
    /// [`Error::WrongCredentials`] when a wrong one is, [`Error::NotFound`] for a provider that
    /// there is not, [`Error::Outbound`] when it cannot be reached.
    pub async fn begin_link(
        &self,
        providers: &dyn IdentityProviders,
        there: (&str, &str),
        (browser, cookie): (&Browser, &Secret),
        (password, visit): (Option<&Secret>, &Visit),
    ) -> Result<String> {
        self.confirm(browser, password, visit).await?;
        let begun = self.begin_trip(providers, there, Purpose::Link, cookie);
        begun.await
    }

    /// Links an account elsewhere to whoever is signed in in `browser`. The letter that tells the
    /// user; none without an address, and when the account was the user's already.
    pub(super) async fn link(
        &self,
        browser: &Browser,
        identity: (&str, &ExternalIdentity),
        visit: &Visit,
    ) -> Result<Option<Letter>> {
        let user = &browser.user;
        if self.add_link(user, identity, visit).await? {
            let news = "can be used to sign in as you from now on";
            return Ok(self.link_letter(user, (&identity.1.issuer, news)));
        }
        let (key, (issuer, subject)) = (&user.key, (&identity.1.issuer, &identity.1.subject));
        let holder = self
            .ports
            .store
            .user_of_identity(&key.database, issuer, subject);
        match holder.await? {
            Some(holder) if holder.key == *key => Ok(None),
            _ => Err(Error::Taken("account elsewhere")),
        }
    }

    /// Keeps a link and notes it in the audit log. Whether the account was free.
    pub(super) async fn add_link(
        &self,
        user: &User,
        (provider, identity): (&str, &ExternalIdentity),
        visit: &Visit,
    ) -> Result<bool> {
        let linked = LinkedIdentity::new(provider, identity, self.ports.clock.now());
        let added = self.ports.store.insert_identity(&user.key, &linked).await?;
        if added {
            let told = (AuditKind::IdentityLinked, identity.issuer.as_str());
            self.tell_of_identity(told, &user.key, visit).await;
        }
        Ok(added)
    }

    /// Takes an account elsewhere away from whoever is signed in in `browser`. The letter that
    /// tells the user.
    ///
    /// [`Error::NotFound`] when it is none of the user's, [`Error::LastWayIn`] when the user has
    /// no password and no other account elsewhere.
    pub async fn unlink(
        &self,
        browser: &Browser,
        (issuer, subject): (&str, &str),
        visit: &Visit,
    ) -> Result<Option<Letter>> {
        let (store, key) = (&self.ports.store, &browser.user.key);
        match store.delete_identity(key, issuer, subject).await? {
            Unlinked::Missing => Err(Error::NotFound("account elsewhere")),
            Unlinked::LastWay => Err(Error::LastWayIn),
            Unlinked::Done => {
                let told = (AuditKind::IdentityUnlinked, issuer);
                self.tell_of_identity(told, key, visit).await;
                let news = "cannot be used to sign in as you any more";
                Ok(self.link_letter(&browser.user, (issuer, news)))
            }
        }
    }

    async fn tell_of_identity(
        &self,
        (kind, issuer): (AuditKind, &str),
        key: &UserKey,
        visit: &Visit,
    ) {
        let event = self.event(kind, Some(&key.database)).of_user(&key.name);
        let event = event.about(issuer).from(visit.address);
        self.ports.audit(event).await;
    }

    fn link_letter(&self, user: &User, (issuer, news): (&str, &str)) -> Option<Letter> {
        let (address, key) = (self.settings.issuer(), &user.key);
        let issuer: String = issuer.chars().filter(|c| !c.is_control()).collect();
        Some(Letter {
            to: user.email.clone()?,
            subject: format!("How {} signs in has changed", key.name),
            text: format!(
                "Hello {},\n\nan account at {issuer} {news}: your user {} in the database {}.\n\n\
                 If you did not do this, change your password and look at your accounts \
                 elsewhere:\n\n{address}/account\n",
                key.name, key.name, key.database
            ),
        })
    }
}
