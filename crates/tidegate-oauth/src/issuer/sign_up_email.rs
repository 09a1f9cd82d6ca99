//! Self-registration with an email address that is confirmed by a link. The link carries its data
//! encrypted by the master key; the store only records that it was used.

use serde::{Deserialize, Serialize};

use super::Issuer;
use crate::{
    Accounts, AttemptLimit, Client, Directory, Email, Error, NewUser, RequestContext, Result,
    Secret, TenantName, User, UserName, rate_limit,
};

const SIGN_UP: &str = "sign-up link";

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
        if !client.allow_signup || !client.belongs_to(new.database.as_str()) {
            return Err(Error::SignUpClosed);
        }
        self.identity.count_sign_up(context).await?;
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
        self.identity.attempts().count(counted, limit).await?;
        let now = self.ports.clock.now();
        let until = now.plus(self.settings.lifetimes.sign_up_link);
        let token = self.identity.seal_link(
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
                 The link is valid for one day. If you did not request an account, ignore this message.\n"
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
        let cookie = self
            .identity
            .open_browser_session(&user, context, false)
            .await?;
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
        let mut uses = self.identity.attempts();
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
        let link: SignUpLink = self.identity.open_link(SIGN_UP, token)?;
        self.identity.require_unexpired(link.until)?;
        let client = self.ports.store.client(&link.client).await?;
        let same = |client: &Client| {
            client.belongs_to(&link.database) && client.created_at.millis() == link.client_since
        };
        if client.is_some_and(|client| client.allow_signup && same(&client)) {
            Ok(link)
        } else {
            Err(Error::SignUpClosed)
        }
    }
}

fn one_line(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).collect()
}
