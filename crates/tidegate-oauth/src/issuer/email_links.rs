//! E-mail links: to confirm a sign-up and to reset a password. A link carries its data encrypted by
//! the master key; the store only records that a sign-up link was used.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::Issuer;
use super::browser::password_fingerprint;
use crate::{
    Accounts, AttemptLimit, AttemptScope, Client, Directory, Email, Error, NewUser, RequestContext,
    Result, Secret, TenantName, Timestamp, User, UserKey, UserName, rate_limit,
};

const SIGN_UP: &str = "sign-up link";
const RESET: &str = "password reset link";
/// Longer tokens cannot be ours.
const MAX_LENGTH: usize = 4096;
/// At most this many users with one e-mail address are sent a message.
const MAX_RECIPIENTS: usize = 5;

#[derive(Serialize, Deserialize)]
struct SignUpLink {
    database: String,
    client: String,
    /// `created_at` of the client: invalidates the link if a new client has this id.
    client_since: i64,
    name: String,
    email: String,
    password_hash: String,
    next: String,
    until: i64,
}

#[derive(Serialize, Deserialize)]
struct ResetLink {
    database: String,
    name: String,
    /// Fingerprint of the password: invalidates the link when the password changes.
    password_fingerprint: String,
    /// The recipient: invalidates the link when the user's address changes.
    email: String,
    /// `created_at` of the user: invalidates the link if a new user has this name.
    since: i64,
    until: i64,
}

impl Issuer {
    /// The message with the link that confirms a sign-up. `next` is the path to which the browser
    /// goes afterwards.
    ///
    /// [`Error::SignUpClosed`], [`Error::TooManyAttempts`], [`Error::Taken`], and the validation
    /// errors of the user. Nothing is created yet, but a link that cannot work is not sent.
    pub async fn sign_up_email(
        &self,
        client: &Client,
        new: NewUser,
        next: &str,
        context: &RequestContext,
    ) -> Result<Email> {
        if !client.allow_signup || new.database.as_str() != client.database {
            return Err(Error::SignUpClosed);
        }
        self.count_sign_up(context).await?;
        let directory = Directory::new(self.ports.clone());
        let new = NewUser {
            self_registered: true,
            ..new
        };
        let (user, password_hash) = directory.prepare(&new).await?;
        let (Some(email), Some(password_hash)) = (user.email, password_hash) else {
            return Err(Error::MissingParameter("email"));
        };
        // Never refunded: limits how many messages a mailbox gets.
        let limit = &self.settings.limits.emails;
        let counted = rate_limit::recipient(&email);
        self.attempts().count(counted, limit).await?;
        let now = self.ports.clock.now();
        let until = now.plus(self.settings.lifetimes.sign_up_link);
        let token = self.seal_link(
            SIGN_UP,
            &SignUpLink {
                database: user.key.database,
                client: client.id.clone(),
                client_since: client.created_at.millis(),
                name: user.key.name.clone(),
                email: email.clone(),
                password_hash,
                next: next.to_owned(),
                until: until.millis(),
            },
        )?;
        let (address, name) = (self.settings.issuer(), &user.key.name);
        Ok(Email {
            to: email,
            subject: format!("Confirm your account for {}", one_line(&client.name)),
            text: format!(
                "Hello {name},\n\nconfirm your account here:\n\n\
                 {address}/signup/confirm?token={token}\n\n\
                 The link is good for a day. If you did not ask for an account, do nothing.\n"
            ),
        })
    }

    /// The user name in a sign-up link, to show before the account is created.
    ///
    /// [`Error::InvalidLink`], [`Error::SignUpClosed`].
    pub async fn sign_up_user_name(&self, token: &str) -> Result<String> {
        Ok(self.sign_up_link(token).await?.name)
    }

    /// Creates the account of a sign-up link, which can be used once, and signs the browser in.
    /// Returns the new cookie and the path to go to.
    ///
    /// [`Error::InvalidLink`], [`Error::SignUpClosed`], and the errors of [`Accounts::create`].
    pub async fn confirm_sign_up(
        &self,
        accounts: &Accounts,
        token: &str,
        context: &RequestContext,
    ) -> Result<(Secret, String)> {
        let link = self.sign_up_link(token).await?;
        let database = TenantName::adopted(&link.database)?;
        let mut new = NewUser::new(database, UserName::parse(&link.name)?);
        new.email = Some(link.email);
        new.password_hash = Some(link.password_hash);
        new.self_registered = true;
        let accounts = accounts.acting_as(&link.name, context.address);
        let user = self.use_sign_up_link(token, accounts.create(new)).await?;
        let cookie = self.open_browser_session(&user, context, false).await?;
        Ok((cookie, link.next))
    }

    /// Marks a link as used and creates its account; the mark is removed if that fails. The mark is
    /// an attempt counter with limit 1 that outlives the link.
    async fn use_sign_up_link(
        &self,
        token: &str,
        create: impl Future<Output = Result<User>> + Send,
    ) -> Result<User> {
        let lifetime = self.settings.lifetimes.sign_up_link;
        let once = AttemptLimit {
            count: 1,
            window: lifetime,
            first_delay: lifetime,
            longest_delay: lifetime,
            memory: lifetime,
        };
        let mut uses = self.attempts();
        match uses.count(rate_limit::link(token), &once).await {
            Err(Error::TooManyAttempts { .. }) => return Err(Error::InvalidLink),
            counted => counted?,
        }
        let made = create.await;
        if made.is_err() {
            uses.refund().await?;
        }
        made
    }

    async fn sign_up_link(&self, token: &str) -> Result<SignUpLink> {
        let link: SignUpLink = self.open_link(SIGN_UP, token)?;
        self.require_unexpired(link.until)?;
        let client = self.ports.store.client(&link.client).await?;
        let same = |client: &Client| {
            client.database == link.database && client.created_at.millis() == link.client_since
        };
        if client.is_some_and(|client| client.allow_signup && same(&client)) {
            Ok(link)
        } else {
            Err(Error::SignUpClosed)
        }
    }

    /// Counts a request for a message, whatever the recipient.
    ///
    /// [`Error::TooManyAttempts`] by the caller's address.
    pub async fn count_email_request(&self, context: &RequestContext) -> Result<()> {
        let Some(address) = context.address else {
            return Ok(());
        };
        let key = rate_limit::address(AttemptScope::Email, address);
        let limit = &self.settings.limits.emails_per_address;
        self.attempts().count(key, limit).await
    }

    /// The messages for a password reset: to the user of this name, or to the users with this
    /// e-mail address. Empty for a user without an address, and when enough messages were sent.
    ///
    /// Takes longer for an existing user, so call it after the response has been sent.
    pub async fn reset_emails(&self, database: &str, name: &str) -> Result<Vec<Email>> {
        let limits = &self.settings.limits;
        let key = UserKey::new(database, name);
        let counted = rate_limit::emails_to(&key);
        match self.attempts().count(counted, &limits.emails).await {
            Ok(()) => {}
            // Enough messages were sent.
            Err(Error::TooManyAttempts { .. }) => return Ok(Vec::new()),
            Err(error) => return Err(error),
        }
        let store = &self.ports.store;
        let mut users: Vec<User> = store.user(&key).await?.into_iter().collect();
        if users.is_empty() && name.contains('@') {
            users = store.users_with_email(database, name).await?;
        }
        users.truncate(MAX_RECIPIENTS);
        let messages = users.iter().filter_map(|user| self.reset_email(user));
        messages.collect()
    }

    fn reset_email(&self, user: &User) -> Option<Result<Email>> {
        // The default user cannot sign in.
        let to = user.email.clone().filter(|_| !user.default_user)?;
        let until = self
            .ports
            .clock
            .now()
            .plus(self.settings.lifetimes.reset_link);
        let sealed = self.seal_link(
            RESET,
            &ResetLink {
                database: user.key.database.clone(),
                name: user.key.name.clone(),
                password_fingerprint: password_fingerprint(user).to_base64url(),
                email: to.clone(),
                since: user.created_at.millis(),
                until: until.millis(),
            },
        );
        let (address, name) = (self.settings.issuer(), &user.key.name);
        Some(sealed.map(|token| Email {
            to,
            subject: format!("A new password for {name}"),
            text: format!(
                "Hello {name},\n\nchoose a new password here:\n\n{address}/reset?token={token}\n\n\
                 The link is good for an hour and for one password. If you did not ask for it, do \
                 nothing.\n"
            ),
        }))
    }

    /// The user whose password this reset link changes.
    ///
    /// [`Error::InvalidLink`] when the link is forged, expired or used, or when the user's e-mail
    /// address has changed.
    pub async fn reset_user(&self, token: &str) -> Result<UserKey> {
        let link: ResetLink = self.open_link(RESET, token)?;
        self.require_unexpired(link.until)?;
        let key = UserKey::new(link.database, link.name);
        let user = self.ports.store.user(&key).await?;
        let same = |user: &User| {
            password_fingerprint(user).to_base64url() == link.password_fingerprint
                && user.email.as_ref() == Some(&link.email)
                && user.created_at.millis() == link.since
                && !user.default_user
        };
        match user.filter(same) {
            Some(user) => Ok(user.key),
            None => Err(Error::InvalidLink),
        }
    }

    /// Sets the password of the link's user and ends all sessions of the user, including browser
    /// sessions.
    ///
    /// [`Error::InvalidLink`], [`Error::InvalidMember`] unless it has 8 to 256 bytes.
    pub async fn reset_password(
        &self,
        token: &str,
        new: &Secret,
        context: &RequestContext,
    ) -> Result<()> {
        let key = self.reset_user(token).await?;
        let directory = Directory::new(self.ports.clone());
        let directory = directory.acting_as(&key.name, context.address);
        directory.set_password(&key, new).await?;
        self.refresh_denylist().await
    }

    pub(super) fn require_unexpired(&self, until: i64) -> Result<()> {
        if self.ports.clock.now() < Timestamp::from_millis(until) {
            Ok(())
        } else {
            Err(Error::InvalidLink)
        }
    }

    /// Encrypts `content` for use in a URL.
    pub(crate) fn seal_link(&self, purpose: &str, content: &impl Serialize) -> Result<String> {
        let plain = serde_json::to_vec(content).map_err(|_| Error::DamagedKey)?;
        let sealed = self.master.seal(purpose, &plain, &*self.ports.random)?;
        Ok(URL_SAFE_NO_PAD.encode(sealed))
    }

    /// Decrypts what [`seal_link`](Self::seal_link) made for the same purpose;
    /// [`Error::InvalidLink`] otherwise.
    pub(crate) fn open_link<T: DeserializeOwned>(&self, purpose: &str, token: &str) -> Result<T> {
        if token.len() > MAX_LENGTH {
            return Err(Error::InvalidLink);
        }
        let sealed = URL_SAFE_NO_PAD.decode(token);
        let sealed = sealed.map_err(|_| Error::InvalidLink)?;
        let plain = self.master.open(purpose, &sealed);
        let plain = plain.map_err(|_| Error::InvalidLink)?;
        serde_json::from_slice(&plain).map_err(|_| Error::InvalidLink)
    }
}

fn one_line(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).collect()
}
