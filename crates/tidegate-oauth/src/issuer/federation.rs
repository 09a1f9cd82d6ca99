//! Sign-in and sign-up with an identity provider, for a client.

use super::Issuer;
use crate::identity::LoginPurpose;
use crate::{
    Accounts, AuditKind, Browser, Client, Email, Error, ExternalIdentity, IdentityProviders,
    NewUser, Parameters, RequestContext, Result, Secret, TenantName, User, UserName,
};

/// How many user names are tried for a new user.
const NAMES: u32 = 20;
/// How much of the provider's user name is used; leaves room for a numeric suffix.
const NAME_CHARACTERS: usize = 24;

/// The result of a login at a provider.
#[derive(Debug)]
pub enum LoginOutcome {
    /// A user is signed in.
    SignedIn {
        /// The browser's new cookie.
        cookie: Secret,
        /// The path to which the browser goes.
        next: String,
    },
    /// The account is linked to the user who was signed in. The message notifies the user, if there
    /// is an email address.
    Linked(Option<Email>),
}

/// A browser's request to the callback URL.
#[derive(Clone, Copy, Debug)]
pub struct ProviderCallback<'a> {
    /// The query parameters.
    pub answer: &'a Parameters,
    /// The browser's cookie.
    pub cookie: &'a Secret,
    /// The signed-in browser, if any.
    pub browser: Option<&'a Browser>,
}

impl Issuer {
    /// The URL to which the browser goes to sign in with a provider, for a client. It returns to
    /// `redirect_uri`, and ends at the path `next`.
    ///
    /// [`Error::NotFound`] for an unknown provider, [`Error::Outbound`] when it cannot be reached.
    pub async fn begin_federated_login(
        &self,
        providers: &dyn IdentityProviders,
        there: (&str, &str),
        (client, next): (&Client, &str),
        cookie: &Secret,
    ) -> Result<String> {
        let purpose = LoginPurpose::SignIn {
            client: client.id.clone(),
            next: next.to_owned(),
        };
        self.identity
            .begin_provider_login(providers, there, purpose, cookie)
            .await
    }

    /// Completes a login at a provider: signs in the linked user, creates a user where the client
    /// allows it, or links the account to the user who is signed in.
    ///
    /// [`Error::InvalidLink`] for a login of another browser or one that took too long,
    /// [`Error::AccessDenied`] when the person or the provider denied it, [`Error::SignUpClosed`],
    /// [`Error::InvalidMember`] without a verified email address, [`Error::Taken`] when the
    /// account is linked to another user, [`Error::Outbound`].
    pub async fn complete_federated_login(
        &self,
        (providers, accounts): (&dyn IdentityProviders, &Accounts),
        (provider, redirect_uri): (&str, &str),
        back: &ProviderCallback<'_>,
        context: &RequestContext,
    ) -> Result<LoginOutcome> {
        let state = back.answer.text("state")?.unwrap_or_default();
        let code = back.answer.text("code")?;
        let there = (provider, redirect_uri);
        let (purpose, identity) = self
            .identity
            .complete_provider_login(providers, there, (state, code), back.cookie)
            .await?;
        let identity = (provider, &identity);
        match purpose {
            LoginPurpose::Link => {
                let browser = back.browser.filter(|browser| !browser.lacks_second_factor);
                let browser = browser.ok_or(Error::InvalidLink)?;
                let message = self
                    .identity
                    .link_account(browser, identity, context)
                    .await?;
                Ok(LoginOutcome::Linked(message))
            }
            LoginPurpose::SignIn { client, next } => {
                let client = self.ports.store.client(&client).await?;
                let client = client.ok_or(Error::UnknownClient)?;
                let user = self.federated_user(accounts, &client, identity, context);
                let user = user.await?;
                let event = self
                    .identity
                    .event(AuditKind::SignedIn, Some(&user.key.database));
                let event = event.with_user(&user.key.name).with_client(&client.id);
                let event = event.with_detail(&identity.1.issuer);
                self.ports.audit(event.with_address(context.address)).await;
                let cookie = self
                    .identity
                    .open_browser_session(&user, context, false)
                    .await?;
                Ok(LoginOutcome::SignedIn { cookie, next })
            }
        }
    }

    /// The user with this linked account, or a new user. An equal email address never matches an
    /// existing user, because local addresses may be unverified.
    async fn federated_user(
        &self,
        accounts: &Accounts,
        client: &Client,
        (provider, identity): (&str, &ExternalIdentity),
        context: &RequestContext,
    ) -> Result<User> {
        let store = &self.ports.store;
        let (issuer, subject) = (identity.issuer.as_str(), identity.subject.as_str());
        let database = client.database.as_deref().ok_or(Error::UnknownClient)?;
        let known = || store.user_of_identity(database, issuer, subject);
        if let Some(user) = known().await? {
            return Ok(user);
        }
        if !client.allow_signup || !client.social_signup {
            return Err(Error::SignUpClosed);
        }
        let Some(email) = &identity.verified_email else {
            return Err(Error::InvalidMember {
                member: "email",
                expected: "an account whose e-mail address the provider has verified",
            });
        };
        self.identity.count_sign_up(context).await?;
        let wanted = identity.name.as_deref().unwrap_or(email);
        let user = self.create_federated_user(accounts, client, (wanted, email), context);
        let user = user.await?;
        if self
            .identity
            .store_link(&user, (provider, identity), context)
            .await?
        {
            return Ok(user);
        }
        // Another window of the same person linked the account first: use that user.
        let accounts = accounts.acting_as(&user.key.name, context.address);
        accounts.drop(&user.key, false).await?;
        known().await?.ok_or(Error::InvalidLink)
    }

    async fn create_federated_user(
        &self,
        accounts: &Accounts,
        client: &Client,
        (wanted, email): (&str, &str),
        context: &RequestContext,
    ) -> Result<User> {
        let allowed = |c: &char| c.is_ascii_alphanumeric() || "_.-".contains(*c);
        let first = wanted.split('@').next().unwrap_or_default();
        let stem: String = first
            .chars()
            .filter(allowed)
            .take(NAME_CHARACTERS)
            .collect();
        let stem = if stem.is_empty() {
            "user".to_owned()
        } else {
            stem
        };
        for number in 1..=NAMES {
            let name = match number {
                1 => stem.clone(),
                _ => format!("{stem}-{number}"),
            };
            let database = TenantName::adopted(client.database.as_deref().unwrap_or_default())?;
            let mut new = NewUser::new(database, UserName::parse(&name)?);
            new.email = Some(email.to_owned());
            new.self_registered = true;
            let accounts = accounts.acting_as(&name, context.address);
            match accounts.create(new).await {
                Err(Error::Taken(_)) => {}
                made => return made,
            }
        }
        Err(Error::Taken("user"))
    }
}
