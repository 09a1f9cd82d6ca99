//! Proving that somebody is a user, by the password.

use std::net::IpAddr;

use super::Issuer;
use crate::password::Checked;
use crate::throttle::{self, Attempts};
use crate::{AttemptScope, AuditKind, Error, Result, Secret, User, UserKey};

/// Who somebody claims to be, and from where.
pub(crate) struct Claimed<'a> {
    pub(crate) key: UserKey,
    pub(crate) client_id: Option<&'a str>,
    pub(crate) address: Option<IpAddr>,
}

impl Issuer {
    /// The user, if the password is right.
    ///
    /// [`Error::WrongCredentials`] with the same text and after the same time for a wrong name and
    /// a wrong password; [`Error::TooManyAttempts`], [`Error::Busy`], [`Error::Store`].
    pub(crate) async fn prove(&self, claimed: &Claimed<'_>, password: &Secret) -> Result<User> {
        let attempts = self.count_password(claimed).await?;
        let user = self.ports.store.user(&claimed.key).await?;
        match self.check_password(user, password).await {
            Ok(Some(user)) => {
                attempts.give_back().await?;
                Ok(user)
            }
            Ok(None) => {
                let event = self.event(AuditKind::SignInFailed, Some(&claimed.key.database));
                let event = event.of_user(&claimed.key.name).from(claimed.address);
                let event = match claimed.client_id {
                    Some(id) => event.of_client(id),
                    None => event,
                };
                self.ports.audit(event).await;
                Err(Error::WrongCredentials)
            }
            Err(busy @ Error::Busy { .. }) => {
                // Nothing was tried, so nothing is counted: a storm must not lock anybody out.
                attempts.give_back().await?;
                Err(busy)
            }
            Err(error) => Err(error),
        }
    }

    /// Counts the attempt before anything is known about it.
    async fn count_password(&self, claimed: &Claimed<'_>) -> Result<Attempts<'_>> {
        let limits = &self.settings.limits;
        let mut attempts = self.attempts();
        if let Some(address) = claimed.address {
            let key = throttle::address(AttemptScope::Address, address);
            attempts.count(key, &limits.address).await?;
        }
        attempts
            .count(throttle::account(&claimed.key), &limits.account)
            .await?;
        Ok(attempts)
    }

    /// The user, if the password is right. A hash of another cost is replaced on the way.
    async fn check_password(&self, user: Option<User>, password: &Secret) -> Result<Option<User>> {
        let ports = &self.ports;
        let known = user.as_ref().and_then(|user| user.password_hash.clone());
        let checked = ports
            .hasher
            .check(password, known.as_deref(), &*ports.random);
        let (Some(mut user), Checked::Right { rehashed }) = (user, checked.await?) else {
            return Ok(None);
        };
        if let Some(hash) = rehashed {
            ports
                .store
                .set_password_hash(&user.key, known.as_deref(), &hash)
                .await?;
            user.password_hash = Some(hash);
        }
        Ok(Some(user))
    }
}
