//! Sign-in with a link that is sent by email. The link works once, and only in the browser that
//! requested it. The link contains its data, encrypted with the master key.

use serde::{Deserialize, Serialize};

use super::IdentityService;
use super::browser::password_fingerprint;
use crate::rate_limit::EmailLink;
use crate::{
    AttemptLimit, Email, Error, RequestContext, Result, Secret, SecretHash, User, UserKey,
    rate_limit,
};

const SIGN_IN: &str = "sign-in email link";

/// The page at which a person requested a link to sign in.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PendingSignIn {
    /// The id of the OAuth client; `None` for a page of the service.
    pub client: Option<String>,
    /// The path at which the browser continues.
    pub next: String,
    /// The URL of another site to which the browser finally goes; `None` if it stays on the pages
    /// of the service.
    pub returns_to: Option<String>,
    /// The hash of the browser's cookie.
    browser: String,
}

impl PendingSignIn {
    /// The maximum length of `next` and `returns_to` together, in bytes. Links must be short enough
    /// for email programs.
    const MAX_LENGTH: usize = 2048;

    /// A sign-in that continues at `next` in the browser with this cookie; `None` if the URLs are
    /// too long for a link.
    pub fn new(
        client: Option<&str>,
        (next, returns_to): (&str, Option<&str>),
        cookie: &Secret,
    ) -> Option<Self> {
        let length = next.len() + returns_to.map_or(0, str::len);
        (length <= Self::MAX_LENGTH).then(|| Self {
            client: client.map(str::to_owned),
            next: next.to_owned(),
            returns_to: returns_to.map(str::to_owned),
            browser: SecretHash::of(cookie).to_base64url(),
        })
    }
}

#[derive(Serialize, Deserialize)]
struct EmailSignInLink {
    database: String,
    name: String,
    /// The fingerprint of the user's password. The link is invalid after the password has changed.
    password_fingerprint: String,
    /// The recipient. The link is invalid after the user's email address has changed.
    email: String,
    /// When the user was created, in milliseconds since 1970. The link is invalid for a new user of
    /// the same name.
    since: i64,
    pending: PendingSignIn,
    until: i64,
}

/// The content of a valid link.
#[derive(Clone, Debug)]
pub struct EmailSignIn {
    /// The user whom the link signs in.
    pub user: User,
    /// The page at which the link was requested.
    pub pending: PendingSignIn,
}

impl EmailSignIn {
    /// Whether the link was requested in the browser with this cookie.
    pub fn is_for(&self, cookie: &Secret) -> bool {
        self.pending.browser == SecretHash::of(cookie).to_base64url()
    }
}

impl IdentityService {
    /// The messages with a link that signs in: to the user of this name, or to the users with this
    /// email address. Users without an address, and users that have reached the rate limit, get no
    /// message.
    ///
    /// The call takes longer for an existing user. It must run after the response was sent, so that
    /// the response does not reveal which users exist.
    pub async fn sign_in_emails(
        &self,
        (database, name): (&str, &str),
        pending: &PendingSignIn,
    ) -> Result<Vec<Email>> {
        let users = self.email_recipients(database, name, EmailLink::SignIn);
        let users = users.await?;
        let messages = users.iter().filter_map(|user| self.link_to(user, pending));
        messages.collect()
    }

    fn link_to(&self, user: &User, pending: &PendingSignIn) -> Option<Result<Email>> {
        let to = user.email.clone()?;
        let lifetime = self.settings.lifetimes.email_sign_in;
        let link = EmailSignInLink {
            database: user.key.database.clone(),
            name: user.key.name.clone(),
            password_fingerprint: password_fingerprint(user).to_base64url(),
            email: to.clone(),
            since: user.created_at.millis(),
            pending: pending.clone(),
            until: self.ports.clock.now().plus(lifetime).millis(),
        };
        let (address, name) = (self.settings.address(), &user.key.name);
        let minutes = lifetime.as_secs() / 60;
        Some(self.seal_token(SIGN_IN, &link).map(|token| Email {
            to,
            subject: format!("Sign in as {name}"),
            text: format!(
                "Hello {name},\n\nsign in here, in the browser in which you asked for this:\n\n\
                 {address}/auth/email?token={token}\n\n\
                 The link is valid for {minutes} minutes and can be used once. If you did not \
                 request it, ignore this message.\n"
            ),
        }))
    }

    /// The content of a link that signs in. Reading the content does not mark the link as used.
    ///
    /// Errors: [`Error::InvalidLink`] when the link is forged, expired or used, when the user was
    /// dropped, disabled or made the default user, or when its password or email address has
    /// changed.
    pub async fn email_sign_in(&self, token: &str) -> Result<EmailSignIn> {
        let link: EmailSignInLink = self.open_token(SIGN_IN, token)?;
        self.require_unexpired(link.until)?;
        let key = UserKey::new(link.database, link.name);
        let same = |user: &User| {
            password_fingerprint(user).to_base64url() == link.password_fingerprint
                && user.email.as_ref() == Some(&link.email)
                && user.created_at.millis() == link.since
                && !user.default_user
                && !user.disabled
        };
        let user = self.ports.store.user(&key).await?;
        let user = user.filter(same).ok_or(Error::InvalidLink)?;
        // This check refuses a link that was used. Its use replaced the browser's cookie, so the
        // page would otherwise find another cookie and report that the browser is not the one that
        // requested the link.
        let lifetime = self.settings.lifetimes.email_sign_in;
        self.count_use(token, &AttemptLimit::unreached(lifetime))
            .await?;
        Ok(EmailSignIn {
            user,
            pending: link.pending,
        })
    }

    /// Signs in the user of a link, in the browser with `cookie`. Returns the browser's new cookie
    /// and the path to go to. A user with a second factor must still verify it.
    ///
    /// Errors: [`Error::InvalidLink`], also when the link was used or another browser requested it.
    pub async fn use_email_sign_in(
        &self,
        token: &str,
        cookie: &Secret,
        context: &RequestContext,
    ) -> Result<(Secret, String)> {
        let link = self.email_sign_in(token).await?;
        if !link.is_for(cookie) {
            return Err(Error::InvalidLink);
        }
        let EmailSignIn { user, pending } = link;
        // The mark that the link was used is stored for at least as long as the link is valid.
        let once = AttemptLimit::once(self.settings.lifetimes.email_sign_in);
        self.count_use(token, &once).await?;
        let by = (pending.client.as_deref(), Some("email link"));
        let cookie = self.sign_in_authenticated(&user, by, context).await?;
        Ok((cookie, pending.next))
    }

    async fn count_use(&self, token: &str, limit: &AttemptLimit) -> Result<()> {
        match self.attempts().count(rate_limit::link(token), limit).await {
            Err(Error::TooManyAttempts { .. }) => Err(Error::InvalidLink),
            counted => counted,
        }
    }
}
