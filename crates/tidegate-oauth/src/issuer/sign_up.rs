//! Sign-up through a client, if the client allows it.

use tidegate_identity::{
    Accounts, Email, NewUser, RequestContext, Secret, SignUpApplication, SignUpLink,
};

use super::Issuer;
use crate::{Client, Error, Result};

impl Issuer {
    /// Creates a user through a client and signs the browser in; returns the browser's cookie.
    ///
    /// Errors: [`Error::SignUpClosed`], and the errors of
    /// [`IdentityService::sign_up`](tidegate_identity::IdentityService::sign_up).
    pub async fn sign_up(
        &self,
        accounts: &Accounts,
        client: &Client,
        new: NewUser,
        context: &RequestContext,
    ) -> Result<Secret> {
        require_open(client, new.database.as_str())?;
        let new = client.signup.of(new);
        Ok(self.identity.sign_up(accounts, new, context).await?)
    }

    /// The message with the link that confirms a sign-up through a client. After the confirmation
    /// the browser goes to `next`, and finally to the URL `returns_to` of the application.
    ///
    /// Errors: [`Error::SignUpClosed`], and the errors of
    /// [`IdentityService::sign_up_email`](tidegate_identity::IdentityService::sign_up_email).
    pub async fn sign_up_email(
        &self,
        client: &Client,
        new: NewUser,
        (next, returns_to): (&str, &str),
        context: &RequestContext,
    ) -> Result<Email> {
        require_open(client, new.database.as_str())?;
        let application = SignUpApplication {
            id: &client.id,
            name: &client.name,
            registered_at: client.created_at,
        };
        let new = client.signup.of(new);
        let urls = (next, returns_to);
        let email = self.identity.sign_up_email(application, new, urls, context);
        Ok(email.await?)
    }

    /// The content of a sign-up link, to show before the user is created.
    ///
    /// Errors: [`IdentityError::InvalidLink`](tidegate_identity::Error::InvalidLink);
    /// [`Error::SignUpClosed`] if the client does not allow sign-up any more, or was dropped after
    /// the link was sent. The link is not valid for a new client with the same id.
    pub async fn sign_up_link(&self, token: &str) -> Result<SignUpLink> {
        Ok(self.open_sign_up_link(token).await?.1)
    }

    async fn open_sign_up_link(&self, token: &str) -> Result<(Client, SignUpLink)> {
        let link = self.identity.sign_up_link(token)?;
        let client = self.ports.store.client(&link.client).await?;
        let client = client.filter(|client| client.created_at == link.registered_at());
        let client = client.ok_or(Error::SignUpClosed)?;
        require_open(&client, &link.database)?;
        Ok((client, link))
    }

    /// Creates the user of a sign-up link and signs the browser in. A link can be used only once.
    /// Returns the new cookie and the path to go to.
    ///
    /// Errors: those of [`sign_up_link`](Self::sign_up_link), and those of
    /// [`IdentityService::confirm_sign_up`](tidegate_identity::IdentityService::confirm_sign_up).
    pub async fn confirm_sign_up(
        &self,
        accounts: &Accounts,
        token: &str,
        context: &RequestContext,
    ) -> Result<(Secret, String)> {
        let (client, _) = self.open_sign_up_link(token).await?;
        let template = &client.signup;
        let confirmed = self
            .identity
            .confirm_sign_up((accounts, template), token, context);
        Ok(confirmed.await?)
    }
}

/// Fails with [`Error::SignUpClosed`] if users of this database may not sign up through the client.
fn require_open(client: &Client, database: &str) -> Result<()> {
    if client.allow_signup && client.belongs_to(database) {
        Ok(())
    } else {
        Err(Error::SignUpClosed)
    }
}
