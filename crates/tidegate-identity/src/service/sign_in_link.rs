//! Links that sign a browser in once. The program prints such a link for an operator who starts the
//! service on the operator's own machine.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::IdentityService;
use crate::{AttemptLimit, Error, RequestContext, Result, Secret, UserKey, rate_limit};

const SIGN_IN: &str = "sign-in link";
/// The maximum lifetime of a link, and how long the use of a link is stored.
const MEMORY: Duration = Duration::from_hours(24);
const ONCE: AttemptLimit = AttemptLimit::once(MEMORY);

#[derive(Serialize, Deserialize)]
struct SignInLink {
    database: String,
    name: String,
    /// When the user was created, in milliseconds since 1970. The link is invalid for a new user of
    /// the same name.
    since: i64,
    until: i64,
}

impl IdentityService {
    /// A token that signs in the user `key` once. It is valid for `lifetime`, but for at most a
    /// day.
    ///
    /// Errors: [`Error::NotFound`] when there is no such user.
    pub async fn sign_in_link(&self, key: &UserKey, lifetime: Duration) -> Result<Secret> {
        let user = self.ports.store.user(key).await?;
        let user = user.ok_or(Error::NotFound("user"))?;
        let link = SignInLink {
            database: key.database.clone(),
            name: key.name.clone(),
            since: user.created_at.millis(),
            until: self.ports.clock.now().plus(lifetime.min(MEMORY)).millis(),
        };
        Ok(Secret::new(self.seal_token(SIGN_IN, &link)?))
    }

    /// Signs in the user of a link, and returns the browser's new cookie and the user's database.
    /// A user with a second factor must still verify it.
    ///
    /// Errors: [`Error::InvalidLink`] if the request did not come from this machine, if the link is
    /// forged, expired or used, or if the user was dropped or disabled.
    pub async fn open_sign_in_link(
        &self,
        token: &str,
        context: &RequestContext,
    ) -> Result<(Secret, String)> {
        let local = context.address.is_some_and(|address| address.is_loopback());
        if !local {
            return Err(Error::InvalidLink);
        }
        let link: SignInLink = self.open_token(SIGN_IN, token)?;
        self.require_unexpired(link.until)?;
        let key = UserKey::new(link.database, link.name);
        let user = self.ports.store.user(&key).await?;
        let user = user
            .filter(|user| user.created_at.millis() == link.since && !user.disabled)
            .ok_or(Error::InvalidLink)?;
        match self.attempts().count(rate_limit::link(token), &ONCE).await {
            Err(Error::TooManyAttempts { .. }) => return Err(Error::InvalidLink),
            counted => counted?,
        }
        let cookie = self
            .sign_in_authenticated(&user, (None, Some("sign-in link")), context)
            .await?;
        Ok((cookie, key.database))
    }
}
