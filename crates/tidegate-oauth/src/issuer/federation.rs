//! Sign-in and sign-up with an identity provider, for an OAuth client.

use tidegate_identity::{
    Accounts, Browser, Email, Error as IdentityError, ExternalIdentity, IdentityProviders,
    LoginPurpose, RequestContext, Secret, User,
};

use super::Issuer;
use crate::{Client, Error, Parameters, Result};

/// The result of a login at an identity provider.
#[derive(Debug)]
pub enum LoginOutcome {
    /// A user is signed in.
    SignedIn {
        /// The browser's new cookie.
        cookie: Secret,
        /// The path to which the browser goes next.
        next: String,
    },
    /// The account was linked to the signed-in user. Contains the email that informs the user;
    /// `None` if the user has no email address or had already linked the account.
    Linked(Option<Email>),
}

/// A browser's request to the callback URL.
#[derive(Clone, Copy, Debug)]
pub struct ProviderCallback<'a> {
    /// The query parameters of the callback, with the provider's result.
    pub response: &'a Parameters,
    /// The browser's cookie. It must be the cookie with which the login began, so that no other
    /// browser can complete the login.
    pub cookie: &'a Secret,
    /// The signed-in browser, if any.
    pub browser: Option<&'a Browser>,
}

impl Issuer {
    /// Begins a login at an identity provider for an OAuth client. Returns the URL of the provider
    /// to which the browser goes. `provider` is the id of the provider. The provider sends the
    /// browser back to `redirect_uri`. After the login the browser goes to the path `next`.
    ///
    /// Errors: [`IdentityError::NotFound`] for an unknown provider, [`IdentityError::Outbound`]
    /// when the provider cannot be reached.
    pub async fn begin_federated_login(
        &self,
        providers: &dyn IdentityProviders,
        (provider, redirect_uri): (&str, &str),
        (client, next): (&Client, &str),
        cookie: &Secret,
    ) -> Result<String> {
        let purpose = LoginPurpose::SignIn {
            client: client.id.clone(),
            next: next.to_owned(),
        };
        let target = (provider, redirect_uri);
        let begun = self
            .identity
            .begin_provider_login(providers, target, purpose, cookie);
        Ok(begun.await?)
    }

    /// Completes a login at an identity provider: signs in the linked user, creates a user if the
    /// client allows it, or links the account to the user who is signed in.
    ///
    /// Errors:
    ///
    /// - [`IdentityError::InvalidLink`] if the login was begun in another browser or with another
    ///   provider, or has expired. For a login that links an account, also if no user is signed in
    ///   in `callback.browser`, or if the user's second factor is still missing.
    /// - [`IdentityError::LoginDenied`] if the callback has no code.
    /// - [`Error::UnknownClient`] if the client was dropped.
    /// - [`Error::SignUpClosed`] if the account is not linked and the client does not allow sign-up
    ///   with an identity provider.
    /// - [`IdentityError::InvalidField`] if a new user has no verified email address.
    /// - [`IdentityError::Taken`] if the account to link is linked to another user.
    /// - [`IdentityError::Outbound`] if the provider does not return the identity.
    pub async fn complete_federated_login(
        &self,
        (providers, accounts): (&dyn IdentityProviders, &Accounts),
        (provider, redirect_uri): (&str, &str),
        callback: &ProviderCallback<'_>,
        context: &RequestContext,
    ) -> Result<LoginOutcome> {
        let state = callback.response.text("state")?.unwrap_or_default();
        let code = callback.response.text("code")?;
        let target = (provider, redirect_uri);
        let (purpose, identity) = self
            .identity
            .complete_provider_login(providers, target, (state, code), callback.cookie)
            .await?;
        let identity = (provider, &identity);
        match purpose {
            LoginPurpose::Link => {
                let browser = callback
                    .browser
                    .filter(|browser| !browser.lacks_second_factor);
                let browser = browser.ok_or(IdentityError::InvalidLink)?;
                let message = self
                    .identity
                    .link_account(browser, identity, context)
                    .await?;
                Ok(LoginOutcome::Linked(message))
            }
            LoginPurpose::SignIn { client, next } => {
                let client = self.ports.store.client(&client).await?;
                let client = client.ok_or(Error::UnknownClient)?;
                let user = self.provider_user(accounts, &client, identity, context);
                let user = user.await?;
                let audited = (Some(&*client.id), Some(&*identity.1.issuer));
                let cookie = self
                    .identity
                    .sign_in_authenticated(&user, audited, context)
                    .await?;
                Ok(LoginOutcome::SignedIn { cookie, next })
            }
        }
    }

    /// The user with this linked account. Creates a user if there is none and the client allows
    /// sign-up with an identity provider.
    async fn provider_user(
        &self,
        accounts: &Accounts,
        client: &Client,
        (provider, account): (&str, &ExternalIdentity),
        context: &RequestContext,
    ) -> Result<User> {
        let database = client.database.as_deref().ok_or(Error::UnknownClient)?;
        let user = self.identity.user_of_account(database, account).await?;
        match user {
            Some(user) => Ok(user),
            None if client.allow_signup && client.social_signup => {
                let account = (provider, account);
                let created = self.identity.sign_up_with_account(
                    (accounts, &client.signup),
                    database,
                    account,
                    context,
                );
                Ok(created.await?)
            }
            None => Err(Error::SignUpClosed),
        }
    }
}
