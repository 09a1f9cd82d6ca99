//! Self-registration, either immediately or after the person has confirmed an email address by a
//! link. The link contains its data, encrypted with the master key; the store only records the use
//! of the link.

use serde::{Deserialize, Serialize};

use super::IdentityService;
use crate::{
    Accounts, AttemptKey, AttemptLimit, Email, Error, NewUser, PasswordHash, RequestContext,
    Result, Secret, TenantName, Timestamp, User, UserDirectory, UserKind, UserName, rate_limit,
};

const SIGN_UP: &str = "sign-up link";

/// The OAuth client through which a person signs up.
#[derive(Clone, Copy, Debug)]
pub struct SignUpApplication<'a> {
    /// The id of the OAuth client.
    pub id: &'a str,
    /// The name of the OAuth client.
    pub name: &'a str,
    /// When the OAuth client was registered.
    pub registered_at: Timestamp,
}

/// The kind and the group of users that a sign-up creates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignUpUser {
    /// The kind of the user: with a role, or a member of a group.
    pub kind: UserKind,
    /// The group that the user joins. A member needs one.
    pub group: Option<String>,
}

impl SignUpUser {
    /// Returns `new` with the kind and group of `self`, in place of its own.
    pub fn of(&self, new: NewUser) -> NewUser {
        NewUser {
            kind: self.kind,
            user_groups: self.group.iter().cloned().collect(),
            ..new
        }
    }
}

impl Default for SignUpUser {
    /// A user with a role and without a group.
    fn default() -> Self {
        Self {
            kind: UserKind::Role,
            group: None,
        }
    }
}

/// The content of a link that confirms a sign-up.
#[derive(Serialize, Deserialize)]
pub struct SignUpLink {
    /// The tenant's database.
    pub database: String,
    /// The id of the OAuth client.
    pub client: String,
    /// When the OAuth client was registered, in milliseconds since 1970. The link is invalid for a
    /// new client with the same id.
    client_since: i64,
    /// The name of the user.
    pub name: String,
    email: String,
    password_hash: String,
    next: String,
    /// The URL of the application to which the browser finally goes. `None` in links that earlier
    /// versions made.
    #[serde(default)]
    pub returns_to: Option<String>,
    until: i64,
}

impl SignUpLink {
    /// When the OAuth client was registered. A client of the same id with another time of
    /// registration is another client.
    pub fn registered_at(&self) -> Timestamp {
        Timestamp::from_millis(self.client_since)
    }
}

impl std::fmt::Debug for SignUpLink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SignUpLink")
            .field("database", &self.database)
            .field("client", &self.client)
            .finish_non_exhaustive()
    }
}

impl IdentityService {
    /// Creates a user and signs the browser in; returns the browser's new cookie. The calling
    /// function must check that sign-up is allowed.
    ///
    /// Errors: [`Error::TooManyAttempts`], and the errors of [`Accounts::create`].
    pub async fn sign_up(
        &self,
        accounts: &Accounts,
        new: NewUser,
        context: &RequestContext,
    ) -> Result<Secret> {
        self.count_sign_up(context).await?;
        let user = create_self_registered(accounts, new, context).await?;
        self.open_browser_session(&user, context, false).await
    }

    /// The message with the link that confirms a sign-up. After the confirmation the browser goes
    /// to `next`, and finally to the URL `returns_to` of the application. The calling function must
    /// check that sign-up is allowed.
    ///
    /// Errors: [`Error::TooManyAttempts`], [`Error::Taken`], and the validation errors of the user.
    /// The user is validated before the message is sent, but not created yet.
    pub async fn sign_up_email(
        &self,
        application: SignUpApplication<'_>,
        new: NewUser,
        (next, returns_to): (&str, &str),
        context: &RequestContext,
    ) -> Result<Email> {
        self.count_sign_up(context).await?;
        let directory = UserDirectory::new(self.ports.clone());
        let new = NewUser {
            self_registered: true,
            ..new
        };
        let user = directory.prepare(&new).await?;
        let missing = |field| Error::InvalidField {
            field,
            expected: "a value",
        };
        let email = user.email.ok_or(missing("email"))?;
        let password_hash = user.password_hash.ok_or(missing("password"))?;
        // The attempt is not refunded after success: the limit is for messages to one mailbox, not
        // for failures.
        let limit = &self.settings.limits.emails;
        let counter = rate_limit::recipient(&email);
        self.attempts().count(counter, limit).await?;
        let now = self.ports.clock.now();
        let until = now.plus(self.settings.lifetimes.sign_up_link);
        let token = self.seal_token(
            SIGN_UP,
            &SignUpLink {
                database: user.key.database,
                client: application.id.to_owned(),
                client_since: application.registered_at.millis(),
                name: user.key.name.clone(),
                email: email.clone(),
                password_hash,
                next: next.to_owned(),
                returns_to: Some(returns_to.to_owned()),
                until: until.millis(),
            },
        )?;
        let (address, name) = (self.settings.address(), &user.key.name);
        let application = application.name.chars().filter(|c| !c.is_control());
        Ok(Email {
            to: email,
            subject: format!(
                "Confirm your account for {}",
                application.collect::<String>()
            ),
            text: format!(
                "Hello {name},\n\nconfirm your account here:\n\n\
                 {address}/signup/confirm?token={token}\n\n\
                 The link is valid for one day. If you did not request an account, ignore this message.\n"
            ),
        })
    }

    /// The content of a sign-up link; [`Error::InvalidLink`] when it is forged or expired.
    pub fn sign_up_link(&self, token: &str) -> Result<SignUpLink> {
        let link: SignUpLink = self.open_token(SIGN_UP, token)?;
        self.require_unexpired(link.until)?;
        Ok(link)
    }

    /// Creates the user of a sign-up link, of the kind and group in `template`, and signs the
    /// browser in. A link can be used only once. Returns the new cookie and the path to go to.
    ///
    /// Errors: [`Error::InvalidLink`], and the errors of [`Accounts::create`].
    pub async fn confirm_sign_up(
        &self,
        (accounts, template): (&Accounts, &SignUpUser),
        token: &str,
        context: &RequestContext,
    ) -> Result<(Secret, String)> {
        let link = self.sign_up_link(token)?;
        let database = TenantName::adopted(&link.database)?;
        let mut new = NewUser::new(database, UserName::parse(&link.name)?);
        new.email = Some(link.email);
        new.is_email_confirmed = true;
        new.password_hash = Some(PasswordHash::own(link.password_hash));
        let create = create_self_registered(accounts, template.of(new), context);
        let user = self.use_sign_up_link(token, create).await?;
        let cookie = self.open_browser_session(&user, context, false).await?;
        Ok((cookie, link.next))
    }

    /// Marks a link as used and creates its user. If the creation fails, removes the mark.
    /// Otherwise the mark is stored for longer than the link is valid.
    async fn use_sign_up_link(
        &self,
        token: &str,
        create: impl Future<Output = Result<User>> + Send,
    ) -> Result<User> {
        let once = AttemptLimit::once(self.settings.lifetimes.sign_up_link);
        let mut uses = self.attempts();
        match uses.count(rate_limit::link(token), &once).await {
            Err(Error::TooManyAttempts { .. }) => return Err(Error::InvalidLink),
            counted => counted?,
        }
        let created = create.await;
        if created.is_err() {
            uses.refund().await?;
        }
        created
    }

    /// Counts a sign-up by the client's network address. The attempt is not refunded after success,
    /// because sign-ups reveal which names are taken.
    pub(super) async fn count_sign_up(&self, context: &RequestContext) -> Result<()> {
        let Some(address) = context.address else {
            return Ok(());
        };
        let key = AttemptKey::of_address(rate_limit::SIGN_UP, address);
        let limit = &self.settings.limits.sign_up;
        self.attempts().count(key, limit).await
    }
}

/// Creates a user who registers itself. The audit events name the new user as the acting user.
pub(super) async fn create_self_registered(
    accounts: &Accounts,
    new: NewUser,
    context: &RequestContext,
) -> Result<User> {
    let accounts = accounts.acting_as(new.name.as_str(), context.address);
    accounts
        .create(NewUser {
            self_registered: true,
            ..new
        })
        .await
}
