//! Signing in on a page: browser sessions and the tokens of forms.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;

use super::{Claimed, Issuer};
use crate::{AuditKind, BrowserSession, Result, Secret, SecretHash, User, UserKey, Visit, random};

/// A browser session is noted as used at most this often, so that looking at pages writes little.
const TOUCH: Duration = Duration::from_mins(5);

/// A browser in which somebody is signed in.
#[derive(Clone, Debug)]
pub struct Browser {
    /// The session.
    pub session: BrowserSession,
    /// Who is signed in.
    pub user: User,
    /// Whether the user has a second factor and did not show it in this browser.
    pub lacks_second_factor: bool,
}

impl Issuer {
    /// A new cookie: 256 random bits in base64url. It means nothing until somebody signs in with
    /// another one, but binds forms to the browser from the first page on.
    pub fn new_cookie(&self) -> Result<Secret> {
        let bytes: [u8; 32] = random::bytes(&*self.ports.random)?;
        Ok(Secret::new(URL_SAFE_NO_PAD.encode(bytes)))
    }

    /// What a form shows to prove that it came from a page that we gave to the browser with this
    /// cookie: nobody else can make it, for no other cookie.
    pub fn form_token(&self, cookie: &Secret) -> String {
        URL_SAFE_NO_PAD.encode(hmac::sign(&self.form_key, cookie.expose().as_bytes()))
    }

    /// Whether a form came from a page that we gave to this browser.
    pub fn is_form_token(&self, cookie: &Secret, shown: &str) -> bool {
        let tag = URL_SAFE_NO_PAD.decode(shown).unwrap_or_default();
        hmac::verify(&self.form_key, cookie.expose().as_bytes(), &tag).is_ok()
    }

    /// Signs a user in and returns the browser's new cookie; the one that it had before is never
    /// taken over, so that nobody can plant one (session fixation).
    ///
    /// [`Error::WrongCredentials`](crate::Error::WrongCredentials) and the other errors of the
    /// password grant.
    pub async fn sign_in(
        &self,
        key: UserKey,
        password: &Secret,
        client_id: Option<&str>,
        visit: &Visit,
    ) -> Result<Secret> {
        let claimed = Claimed {
            key,
            client_id,
            address: visit.address,
        };
        let user = self.prove(&claimed, password).await?;
        let event = self.event(AuditKind::SignedIn, Some(&user.key.database));
        let event = event.of_user(&user.key.name).from(visit.address);
        let event = match client_id {
            Some(id) => event.of_client(id),
            None => event,
        };
        self.ports.audit(event).await;
        self.open_browser(&user, visit, false).await
    }

    /// Opens a browser session for a user who has proved to be one; returns its cookie.
    pub async fn open_browser(
        &self,
        user: &User,
        visit: &Visit,
        second_factor: bool,
    ) -> Result<Secret> {
        let cookie = self.new_cookie()?;
        let now = self.ports.clock.now();
        let session = BrowserSession {
            id: SecretHash::of(&cookie),
            user: user.key.clone(),
            stamp: stamp(user),
            second_factor,
            agent: visit.kept_agent(),
            address: visit.address,
            created_at: now,
            seen_at: now,
            expires_at: now.plus(self.settings.lifetimes.browser_idle),
        };
        self.ports.store.insert_browser_session(&session).await?;
        Ok(cookie)
    }

    /// Who is signed in in the browser with this cookie, if anybody is.
    pub async fn browser(&self, cookie: &Secret) -> Result<Option<Browser>> {
        let (store, now) = (&self.ports.store, self.ports.clock.now());
        let lifetimes = &self.settings.lifetimes;
        let found = store.browser_session(SecretHash::of(cookie)).await?;
        let Some(session) = found.filter(|session| {
            now < session.expires_at && now < session.created_at.plus(lifetimes.browser)
        }) else {
            return Ok(None);
        };
        let user = store.user(&session.user).await?;
        let Some(user) = user.filter(|user| stamp(user) == session.stamp) else {
            return Ok(None);
        };
        if session.seen_at.plus(TOUCH) <= now {
            let expires_at = now.plus(lifetimes.browser_idle);
            store
                .touch_browser_session(session.id, now, expires_at)
                .await?;
        }
        let lacks_second_factor =
            !session.second_factor && store.second_factor(&user.key).await?.is_some();
        Ok(Some(Browser {
            session,
            user,
            lacks_second_factor,
        }))
    }

    /// The user, if still signed in in this browser session. Whether it has been used of late does
    /// not matter: what was allowed in it lives for minutes.
    pub(crate) async fn signed_in(
        &self,
        key: &UserKey,
        browser: SecretHash,
    ) -> Result<Option<User>> {
        let store = &self.ports.store;
        let session = store.browser_session(browser).await?;
        let Some(session) = session.filter(|session| session.user == *key) else {
            return Ok(None);
        };
        let user = store.user(key).await?;
        Ok(user.filter(|user| stamp(user) == session.stamp))
    }

    /// Ends a browser session, and what was allowed in it and not redeemed.
    pub async fn sign_out(&self, browser: &Browser, visit: &Visit) -> Result<()> {
        let store = &self.ports.store;
        store.delete_browser_session(browser.session.id).await?;
        let key = &browser.user.key;
        let event = self.event(AuditKind::SignedOut, Some(&key.database));
        let event = event.of_user(&key.name).from(visit.address);
        self.ports.audit(event).await;
        Ok(())
    }
}

/// What of a user must stay for its browser sessions to go on.
pub(super) fn stamp(user: &User) -> SecretHash {
    let hash = user.password_hash.as_deref().unwrap_or_default();
    SecretHash::of(&Secret::new(hash))
}
