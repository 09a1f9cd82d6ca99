//! The password grant (RFC 6749, section 4.3).

use super::Exchange;
use crate::password::Checked;
use crate::throttle::{self, Attempts};
use crate::{
    AttemptScope, AuditKind, Error, GrantKind, Result, Secret, TokenResponse, User, UserKey,
};

/// Gives tokens to the user of `database` with this name and password.
///
/// [`Error::ForeignDatabase`] when the client is not of this tenant, [`Error::WrongCredentials`]
/// with the same text and after the same time for a wrong name and a wrong password.
pub(super) async fn exchange(
    cx: &Exchange<'_>,
    database: &str,
    username: &str,
    password: &Secret,
) -> Result<TokenResponse> {
    if database != cx.client.database {
        return Err(Error::ForeignDatabase);
    }
    let key = UserKey::new(database, username);
    let attempts = count(cx, &key).await?;
    let user = cx.issuer.ports.store.user(&key).await?;
    match check(cx, user.as_ref(), password).await {
        Ok(Some(user)) => {
            attempts.give_back().await?;
            cx.issuer.open_session(cx, user, GrantKind::Password).await
        }
        Ok(None) => {
            let event = cx.issuer.event(AuditKind::SignInFailed, Some(database));
            let event = event
                .of_user(username)
                .of_client(&cx.client.id)
                .from(cx.address);
            cx.issuer.ports.audit(event).await;
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
async fn count<'a>(cx: &Exchange<'a>, key: &UserKey) -> Result<Attempts<'a>> {
    let limits = &cx.issuer.settings.limits;
    let mut attempts = cx.issuer.attempts();
    if let Some(address) = cx.address {
        let key = throttle::address(AttemptScope::Address, address);
        attempts.count(key, &limits.address).await?;
    }
    attempts
        .count(throttle::account(key), &limits.account)
        .await?;
    Ok(attempts)
}

/// The user, if the password is right. A hash of another cost is replaced on the way.
async fn check<'u>(
    cx: &Exchange<'_>,
    user: Option<&'u User>,
    password: &Secret,
) -> Result<Option<&'u User>> {
    let ports = &cx.issuer.ports;
    let known = user.and_then(|user| user.password_hash.as_deref());
    let checked = ports.hasher.check(password, known, &*ports.random).await?;
    let (Some(user), Checked::Right { rehashed }) = (user, checked) else {
        return Ok(None);
    };
    if let Some(hash) = rehashed {
        ports
            .store
            .set_password_hash(&user.key, known, &hash)
            .await?;
    }
    Ok(Some(user))
}
