//! Browser sessions of the pages, and the CSRF tokens of their forms.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;

use super::{IdentityService, LoginAttempt};
use crate::{
    AuditKind, BrowserSession, Error, RequestContext, Result, Secret, SecretHash, Timestamp, User,
    UserKey,
};

/// The `seen_at` of a session is updated only when the stored time is at least this old, so that
/// most requests write nothing.
const TOUCH: Duration = Duration::from_mins(5);

/// A browser in which a user is signed in.
#[derive(Clone, Debug)]
pub struct Browser {
    /// The browser session.
    pub session: BrowserSession,
    /// The user who is signed in.
    pub user: User,
    /// Whether the user has a second factor that was not verified in this browser.
    pub lacks_second_factor: bool,
}

/// A user who is signed in, and the time of the sign-in.
#[derive(Clone, Debug)]
pub struct SignedIn {
    /// The record of the user.
    pub user: User,
    /// When the user signed in.
    pub since: Timestamp,
}

impl IdentityService {
    /// A new cookie: 256 random bits in base64url. The cookie belongs to no session yet, but form
    /// tokens are bound to it from the first page on. Signing in replaces the cookie.
    pub fn new_cookie(&self) -> Result<Secret> {
        self.ports.random.secret()
    }

    /// The CSRF token of forms for the browser with this cookie: an HMAC of the cookie.
    pub fn form_token(&self, cookie: &Secret) -> String {
        URL_SAFE_NO_PAD.encode(hmac::sign(&self.form_key, cookie.expose().as_bytes()))
    }

    /// Whether `shown` is the CSRF token for this cookie.
    pub fn is_form_token(&self, cookie: &Secret, shown: &str) -> bool {
        let tag = URL_SAFE_NO_PAD.decode(shown).unwrap_or_default();
        hmac::verify(&self.form_key, cookie.expose().as_bytes(), &tag).is_ok()
    }

    /// Signs a user in and returns a new cookie. The browser's previous cookie is never reused,
    /// which prevents session fixation.
    ///
    /// Errors: [`Error::WrongCredentials`], [`Error::TooManyAttempts`], [`Error::Busy`].
    pub async fn sign_in(
        &self,
        key: UserKey,
        password: &Secret,
        client_id: Option<&str>,
        context: &RequestContext,
    ) -> Result<Secret> {
        let attempt = LoginAttempt {
            key,
            client_id,
            address: context.address,
        };
        let user = self.login_with_password(&attempt, password).await?;
        self.sign_in_authenticated(&user, (client_id, None), context)
            .await
    }

    /// Signs in a user who has been authenticated without a second factor, and returns a new
    /// cookie. The audit event names `client_id` and `detail`.
    pub async fn sign_in_authenticated(
        &self,
        user: &User,
        (client_id, detail): (Option<&str>, Option<&str>),
        context: &RequestContext,
    ) -> Result<Secret> {
        let cookie = self.open_browser_session(user, context, false).await?;
        let event = self.event(AuditKind::SignedIn, &user.key, context);
        let event = event.with_client(client_id);
        let event = match detail {
            Some(detail) => event.with_detail(detail),
            None => event,
        };
        self.ports.audit(event).await;
        Ok(cookie)
    }

    /// Opens a browser session for a user who has been authenticated, and returns the cookie of the
    /// session. `second_factor` states whether the second factor was verified.
    ///
    /// Errors: [`Error::WrongCredentials`] for a disabled user.
    pub async fn open_browser_session(
        &self,
        user: &User,
        context: &RequestContext,
        second_factor: bool,
    ) -> Result<Secret> {
        if user.disabled {
            return Err(Error::WrongCredentials);
        }
        let cookie = self.new_cookie()?;
        let now = self.ports.clock.now();
        let session = BrowserSession {
            id: SecretHash::of(&cookie),
            user: user.key.clone(),
            password_fingerprint: password_fingerprint(user),
            second_factor,
            agent: context.stored_agent(),
            address: context.address,
            created_at: now,
            seen_at: now,
            expires_at: now.plus(self.settings.lifetimes.browser_idle),
        };
        self.ports.store.insert_browser_session(&session).await?;
        Ok(cookie)
    }

    /// The signed-in browser with this cookie; `None` if the cookie has no valid session. Records
    /// the use of the session, which extends it.
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
        let Some(user) = user.filter(|user| is_valid(&session, user)) else {
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

    /// The user `key`, if the user is signed in in the browser session with the id `browser`.
    /// `None` if the session does not exist or belongs to another user, if the user is disabled, or
    /// if the stored password hash has changed since the sign-in. The lifetimes of the session are
    /// not checked, because this function is for codes and device approvals, which are valid only
    /// for minutes.
    pub async fn signed_in(&self, key: &UserKey, browser: SecretHash) -> Result<Option<SignedIn>> {
        let store = &self.ports.store;
        let session = store.browser_session(browser).await?;
        let Some(session) = session.filter(|session| session.user == *key) else {
            return Ok(None);
        };
        let user = store.user(key).await?;
        let user = user.filter(|user| is_valid(&session, user));
        Ok(user.map(|user| SignedIn {
            user,
            since: session.created_at,
        }))
    }

    /// Ends a browser session of the user who is signed in in `browser`. `name` is the session's id
    /// in base64url. [`Error::NotFound`] if the user has no such session.
    pub async fn end_own_browser(&self, browser: &Browser, name: &str) -> Result<()> {
        let (store, now) = (&self.ports.store, self.ports.clock.now());
        let own = store
            .browser_sessions_of_user(&browser.user.key, now)
            .await?;
        let found = own
            .iter()
            .find(|session| session.id.to_base64url() == name)
            .ok_or(Error::NotFound("browser"))?;
        store.delete_browser_session(found.id).await?;
        Ok(())
    }

    /// Ends a browser session. Its unredeemed codes and device approvals become void.
    pub async fn sign_out(&self, browser: &Browser, context: &RequestContext) -> Result<()> {
        let store = &self.ports.store;
        store.delete_browser_session(browser.session.id).await?;
        let event = self.event(AuditKind::SignedOut, &browser.user.key, context);
        self.ports.audit(event).await;
        Ok(())
    }
}

/// Whether a session of this user is still valid: the user is not disabled, and the stored password
/// hash is the same as at the sign-in.
fn is_valid(session: &BrowserSession, user: &User) -> bool {
    !user.disabled && password_fingerprint(user) == session.password_fingerprint
}

/// The fingerprint of a user's stored password hash. When the hash changes, browser sessions, reset
/// links and links that sign in by email become invalid. The hash changes with the password, and
/// also if the same password is hashed again with other cost parameters.
pub(super) fn password_fingerprint(user: &User) -> SecretHash {
    let hash = user.password_hash.as_deref().unwrap_or_default();
    SecretHash::of(&Secret::new(hash))
}
