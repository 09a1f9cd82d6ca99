//! Authenticating a user by password.

use std::net::IpAddr;

use super::IdentityService;
use super::attempts::CountedAttempts;
use crate::password::PasswordCheck;
use crate::rate_limit;
use crate::{AuditEvent, AuditKind, Error, Result, Secret, User, UserKey};

/// The user to authenticate, and the client and address of the request.
#[derive(Clone, Debug)]
pub struct LoginAttempt<'a> {
    /// The user to authenticate, who need not exist.
    pub key: UserKey,
    /// The OAuth client; `None` for a page of the service.
    pub client_id: Option<&'a str>,
    /// The address of the request.
    pub address: Option<IpAddr>,
}

impl IdentityService {
    /// Authenticates a user by password.
    ///
    /// Errors: [`Error::WrongCredentials`] for an unknown user and for a wrong password, with the
    /// same text and in the same time; [`Error::TooManyAttempts`], [`Error::Busy`],
    /// [`Error::Store`].
    pub async fn login_with_password(
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
                let (now, database) = (self.ports.clock.now(), Some(&*attempt.key.database));
                let event = AuditEvent::new(now, AuditKind::SignInFailed, database)
                    .with_user(&attempt.key.name)
                    .with_client(attempt.client_id)
                    .with_address(attempt.address);
                self.ports.audit(event).await;
                Err(Error::WrongCredentials)
            }
            Err(busy @ Error::Busy { .. }) => {
                // No password was checked, so the attempt is refunded. Without the refund, overload
                // would lock users out.
                attempts.refund().await?;
                Err(busy)
            }
            Err(error) => Err(error),
        }
    }

    /// Counts the attempt, by address and by user, before the user is looked up.
    async fn count_password(&self, attempt: &LoginAttempt<'_>) -> Result<CountedAttempts<'_>> {
        let mut attempts = self.attempts_from(attempt.address).await?;
        let limit = &self.settings.limits.account;
        attempts
            .count(rate_limit::account(&attempt.key), limit)
            .await?;
        Ok(attempts)
    }

    /// The user, if the password is right; otherwise `None`. If the password is right and the
    /// stored hash is not an Argon2id hash with the current cost parameters, stores a new hash. If
    /// the stored hash has changed since `user` was read, checks the password against the changed
    /// hash. The result is `None` if `user` is disabled, because any other result would confirm
    /// that the password is right.
    async fn check_password(&self, user: Option<User>, password: &Secret) -> Result<Option<User>> {
        let ports = &self.ports;
        let known = user.as_ref().and_then(|user| user.password_hash.clone());
        let checked = ports
            .hasher
            .verify(password, known.as_deref(), &*ports.random);
        let (Some(mut user), PasswordCheck::Right { rehashed }) =
            (user.filter(|user| !user.disabled), checked.await?)
        else {
            return Ok(None);
        };
        let Some(hash) = rehashed else {
            return Ok(Some(user));
        };
        let stored = ports
            .store
            .set_password_hash(&user.key, known.as_deref(), &hash)
            .await?;
        if stored {
            user.password_hash = Some(hash);
            return Ok(Some(user));
        }
        let user = ports.store.user(&user.key).await?;
        let Some(user) = user.filter(|user| !user.disabled) else {
            return Ok(None);
        };
        let hasher = &ports.hasher;
        let checked = hasher.verify(password, user.password_hash.as_deref(), &*ports.random);
        let is_right = matches!(checked.await?, PasswordCheck::Right { .. });
        Ok(is_right.then_some(user))
    }
}
