//! Authenticating a user by password.

use std::net::IpAddr;

use super::Identity;
use super::attempts::CountedAttempts;
use crate::password::PasswordCheck;
use crate::rate_limit;
use crate::{AttemptScope, AuditKind, Error, Result, Secret, User, UserKey};

/// A user name to authenticate, and where the request came from.
pub(crate) struct LoginAttempt<'a> {
    pub(crate) key: UserKey,
    pub(crate) client_id: Option<&'a str>,
    pub(crate) address: Option<IpAddr>,
}

impl Identity {
    /// The user, if the password is right.
    ///
    /// [`Error::WrongCredentials`] for an unknown user and for a wrong password, with the same text
    /// and in the same time; [`Error::TooManyAttempts`], [`Error::Busy`], [`Error::Store`].
    pub(crate) async fn login_with_password(
        &self,
        attempt: &LoginAttempt<'_>,
        password: &Secret,
    ) -> Result<User> {
        let attempts = self.count_password(attempt).await?;
        let user = self.ports.store.user(&attempt.key).await?;
        match self.check_password(user, password).await {
            Ok(Some(user)) => {
                attempts.refund().await?;
                Ok(user)
            }
            Ok(None) => {
                let event = self.event(AuditKind::SignInFailed, Some(&attempt.key.database));
                let event = event
                    .with_user(&attempt.key.name)
                    .with_address(attempt.address);
                let event = match attempt.client_id {
                    Some(id) => event.with_client(id),
                    None => event,
                };
                self.ports.audit(event).await;
                Err(Error::WrongCredentials)
            }
            Err(busy @ Error::Busy { .. }) => {
                // No password was checked, so do not count the attempt: overload must not lock
                // accounts.
                attempts.refund().await?;
                Err(busy)
            }
            Err(error) => Err(error),
        }
    }

    /// Counts the attempt before the user is looked up.
    async fn count_password(&self, attempt: &LoginAttempt<'_>) -> Result<CountedAttempts<'_>> {
        let limits = &self.settings.limits;
        let mut attempts = self.attempts();
        if let Some(address) = attempt.address {
            let key = rate_limit::address(AttemptScope::Address, address);
            attempts.count(key, &limits.address).await?;
        }
        attempts
            .count(rate_limit::account(&attempt.key), &limits.account)
            .await?;
        Ok(attempts)
    }

    /// The user, if the password is right. A hash with outdated cost parameters is replaced.
    async fn check_password(&self, user: Option<User>, password: &Secret) -> Result<Option<User>> {
        let ports = &self.ports;
        let known = user.as_ref().and_then(|user| user.password_hash.clone());
        let checked = ports
            .hasher
            .verify(password, known.as_deref(), &*ports.random);
        let (Some(mut user), PasswordCheck::Right { rehashed }) = (user, checked.await?) else {
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
