//! Making an account of one's own.

use super::Issuer;
use crate::throttle;
use crate::{
    Accounts, AttemptScope, Client, Error, NewUser, Result, Secret, Timestamp, Visit, redirect,
};

impl Issuer {
    /// Makes a user through a client and signs the browser in; returns its cookie.
    ///
    /// [`Error::SignUpClosed`], [`Error::TooManyAttempts`], and the errors of
    /// [`Accounts::create`].
    pub async fn sign_up(
        &self,
        accounts: &Accounts,
        client: &Client,
        new: NewUser,
        visit: &Visit,
    ) -> Result<Secret> {
        if !client.allow_signup || new.database.as_str() != client.database {
            return Err(Error::SignUpClosed);
        }
        self.count_sign_up(visit).await?;
        let actor = new.name.as_str().to_owned();
        let user = accounts
            .acting_as(&actor, visit.address)
            .create(NewUser {
                signs_up: true,
                ..new
            })
            .await?;
        self.open_browser(&user, visit, false).await
    }

    /// Counts a sign-up. Never given back: names are found out by trying to take them.
    pub(super) async fn count_sign_up(&self, visit: &Visit) -> Result<()> {
        let Some(address) = visit.address else {
            return Ok(());
        };
        let key = throttle::address(AttemptScope::SignUp, address);
        let limit = &self.settings.limits.sign_up;
        self.attempts().count(key, limit).await
    }

    /// Whether a browser may be sent to this address: a client has registered it, of whatever
    /// tenant, because who signs out twice is nobody's user the second time.
    pub async fn is_registered(&self, uri: &str) -> Result<bool> {
        let start = redirect::certain_part(uri);
        let registered = self.ports.store.redirect_uris_from(start).await?;
        let mut registered = registered.iter();
        Ok(registered.any(|known| redirect::matches(known, uri)))
    }

    /// The present.
    pub fn now(&self) -> Timestamp {
        self.ports.clock.now()
    }
}
