//! Password reset by email. The link in the message contains its data, encrypted with the master
//! key.

use serde::{Deserialize, Serialize};

use super::IdentityService;
use super::browser::password_fingerprint;
use crate::rate_limit::EmailLink;
use crate::{
    AttemptKey, CredentialKind, Credentials, Email, EndReason, Error, RequestContext, Result,
    Secret, User, UserDirectory, UserKey, rate_limit,
};

const RESET: &str = "password reset link";
/// The maximum number of users with the same email address to whom a message is sent.
const MAX_RECIPIENTS: usize = 5;

#[derive(Serialize, Deserialize)]
struct ResetLink {
    database: String,
    name: String,
    /// The fingerprint of the user's password. The link is invalid after the password has changed.
    password_fingerprint: String,
    /// The recipient. The link is invalid after the user's email address has changed.
    email: String,
    /// When the user was created, in milliseconds since 1970. The link is invalid for a new user of
    /// the same name.
    since: i64,
    until: i64,
}

impl IdentityService {
    /// Counts a request for an email message by the client's network address. The counter
    /// of an address counts the requests for all recipients.
    ///
    /// Errors: [`Error::TooManyAttempts`].
    pub async fn count_email_request(&self, context: &RequestContext) -> Result<()> {
        let Some(address) = context.address else {
            return Ok(());
        };
        let key = AttemptKey::of_address(rate_limit::EMAIL, address);
        let limit = &self.settings.limits.emails_per_address;
        self.attempts().count(key, limit).await
    }

    /// The messages for a password reset: to the user of this name, or to the users with this email
    /// address. Users without an address, and users that have reached the rate limit, get no
    /// message.
    ///
    /// The call takes longer for an existing user. It must run after the response was sent, so that
    /// the response does not reveal which users exist.
    pub async fn reset_emails(&self, database: &str, name: &str) -> Result<Vec<Email>> {
        let users = self.email_recipients(database, name, EmailLink::Reset);
        let users = users.await?;
        let messages = users.iter().filter_map(|user| self.reset_email(user));
        messages.collect()
    }

    /// The user of this name, or the users with this email address, to whom a requested message is
    /// sent. Counts the message for the name and for each user. There are no recipients if the name
    /// has reached the rate limit. A user who has reached the rate limit is no recipient.
    pub(super) async fn email_recipients(
        &self,
        database: &str,
        name: &str,
        link: EmailLink,
    ) -> Result<Vec<User>> {
        // The store compares email addresses without regard to case, so they are counted in lower
        // case.
        let counted = if name.contains('@') {
            UserKey::new(database, &*name.to_lowercase())
        } else {
            UserKey::new(database, name)
        };
        if !self.may_send(link, &counted).await? {
            return Ok(Vec::new());
        }
        let store = &self.ports.store;
        let key = UserKey::new(database, name);
        let mut users: Vec<User> = store.user(&key).await?.into_iter().collect();
        if users.is_empty() && name.contains('@') {
            users = store.users_with_email(database, name).await?;
        }
        // The default user and disabled users cannot sign in, so they get no message.
        users.retain(|user| !user.default_user && !user.disabled);
        users.truncate(MAX_RECIPIENTS);
        let mut recipients = Vec::new();
        for user in users {
            if user.key == counted || self.may_send(link, &user.key).await? {
                recipients.push(user);
            }
        }
        Ok(recipients)
    }

    /// Counts a message. Returns whether it may be sent: `false` if the rate limit is reached. The
    /// response to the client does not depend on this result.
    async fn may_send(&self, link: EmailLink, key: &UserKey) -> Result<bool> {
        let limit = link.limit(&self.settings.limits);
        match self.attempts().count(link.counter(key), limit).await {
            Ok(()) => Ok(true),
            Err(Error::TooManyAttempts { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn reset_email(&self, user: &User) -> Option<Result<Email>> {
        let to = user.email.clone()?;
        let until = self
            .ports
            .clock
            .now()
            .plus(self.settings.lifetimes.reset_link);
        let sealed = self.seal_token(
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
        let (address, name) = (self.settings.address(), &user.key.name);
        Some(sealed.map(|token| Email {
            to,
            subject: format!("A new password for {name}"),
            text: format!(
                "Hello {name},\n\nchoose a new password here:\n\n{address}/reset?token={token}\n\n\
                 The link is valid for one hour and can be used once. If you did not request it, \
                 ignore this message.\n"
            ),
        }))
    }

    /// The user whose password this reset link changes, and the user's credentials.
    ///
    /// Errors: [`Error::InvalidLink`] when the link is forged, expired or used, when the user was
    /// dropped, disabled or made the default user, or when its email address has changed.
    pub async fn reset_user(&self, token: &str) -> Result<(UserKey, Credentials)> {
        let key = self.user_of_reset_link(token).await?.key;
        let directory = UserDirectory::new(self.ports.clone());
        let credentials = directory.credentials(&key).await?;
        Ok((key, credentials))
    }

    async fn user_of_reset_link(&self, token: &str) -> Result<User> {
        let link: ResetLink = self.open_token(RESET, token)?;
        self.require_unexpired(link.until)?;
        let key = UserKey::new(link.database, link.name);
        let user = self.ports.store.user(&key).await?;
        let same = |user: &User| {
            password_fingerprint(user).to_base64url() == link.password_fingerprint
                && user.email.as_ref() == Some(&link.email)
                && user.created_at.millis() == link.since
                && !user.default_user
                && !user.disabled
        };
        user.filter(same).ok_or(Error::InvalidLink)
    }

    /// Records that the user receives messages at its email address. Does nothing if the user has a
    /// passkey or a linked account: it may belong to a person who does not receive the messages,
    /// and this person could then use the confirmed address in applications. Also does nothing if
    /// another request changes the user.
    async fn confirm_email(&self, user: &User) -> Result<()> {
        let directory = UserDirectory::new(self.ports.clone());
        let credentials = directory.credentials(&user.key).await?;
        if !credentials.passkeys.is_empty() || !credentials.linked_accounts.is_empty() {
            return Ok(());
        }
        let confirmed = User {
            confirmed_email: user.email.clone(),
            ..user.clone()
        };
        if confirmed != *user {
            self.ports.store.update_user(user, &confirmed).await?;
        }
        Ok(())
    }

    /// Sets the password of the link's user and ends all sessions of the user, including browser
    /// sessions. With `only_password`, also removes all passkeys and linked accounts of the user,
    /// because an intruder may have added some.
    ///
    /// Sessions are ended and credentials are removed before the password is set, because the link
    /// is valid until then. If one of these steps fails, the request can be repeated.
    ///
    /// Errors: [`Error::InvalidLink`]; [`Error::InvalidField`] unless the password has 8 to 256
    /// bytes.
    pub async fn reset_password(
        &self,
        token: &str,
        (new, only_password): (&Secret, bool),
        context: &RequestContext,
    ) -> Result<()> {
        let user = self.user_of_reset_link(token).await?;
        let key = &user.key;
        let directory = UserDirectory::new(self.ports.clone());
        let directory = directory.acting_as(&key.name, context.address);
        let hash = directory.hash_password(new).await?;
        let reason = EndReason::PasswordChanged;
        let kinds: &[_] = if only_password {
            &CredentialKind::WITHOUT_PASSWORD
        } else {
            &[]
        };
        directory.end_sessions(key, reason).await?;
        directory.delete_credentials(key, kinds).await?;
        self.confirm_email(&user).await?;
        directory.replace_password(key, &hash).await?;
        if only_password {
            // The credentials are deleted again, because a sign-in with the old password may have
            // added one before the password was replaced.
            directory.delete_credentials(key, kinds).await?;
            directory.end_sessions(key, reason).await?;
        }
        Ok(())
    }
}
