//! Self-registration.

use super::Issuer;
use crate::{
    Accounts, Client, Error, NewUser, RequestContext, Result, Secret, Timestamp, redirect,
};

impl Issuer {
    /// Creates a user through a client and signs the browser in; returns its cookie.
    ///
    /// [`Error::SignUpClosed`], [`Error::TooManyAttempts`], and the errors of
    /// [`Accounts::create`].
    pub async fn sign_up(
        &self,
        accounts: &Accounts,
        client: &Client,
        new: NewUser,
        context: &RequestContext,
    ) -> Result<Secret> {
        if !client.allow_signup || !client.belongs_to(new.database.as_str()) {
            return Err(Error::SignUpClosed);
        }
        self.identity.count_sign_up(context).await?;
        let actor = new.name.as_str().to_owned();
        let user = accounts
            .acting_as(&actor, context.address)
            .create(NewUser {
                self_registered: true,
                ..new
            })
            .await?;
        self.identity
            .open_browser_session(&user, context, false)
            .await
    }

    /// Whether this is a page of the built-in clients, or a redirect URI that any client of any
    /// tenant has registered. The tenant does not
    /// matter, because a second sign-out has no user.
    pub async fn is_registered(&self, uri: &str) -> Result<bool> {
        if self.settings.builtin.is_page(uri) {
            return Ok(true);
        }
        let start = redirect::lookup_prefix(uri);
        let registered = self.ports.store.redirect_uris_from(start).await?;
        let mut registered = registered.iter();
        Ok(registered.any(|known| redirect::matches(known, uri)))
    }

    /// The current time.
    pub fn now(&self) -> Timestamp {
        self.ports.clock.now()
    }
}
