//! The password grant (RFC 6749, section 4.3).

use super::GrantContext;
use crate::{Error, GrantKind, Result, Scopes, TokenResponse};
use tidegate_identity::{LoginAttempt, Secret, UserKey};

/// Issues tokens to the user `key` if the password is right.
///
/// Errors: [`Error::ForeignDatabase`] when the client belongs to another tenant,
/// [`Error::SecondFactorNeeded`] when the client requires a second factor,
/// [`Error::SecondFactorMissing`] when the user has a second factor, and those of the sign-in as
/// [`Error::Identity`]: wrong credentials, too many attempts, a full queue of passwords to hash, an
/// unavailable store. An unknown user and a wrong password cause the same error after the same
/// time.
pub(super) async fn exchange(
    cx: &GrantContext<'_>,
    key: UserKey,
    password: &Secret,
    scopes: Scopes,
) -> Result<TokenResponse> {
    if !cx.client.admits(&key.database) {
        return Err(Error::ForeignDatabase);
    }
    if cx.client.two_factor {
        return Err(Error::SecondFactorNeeded);
    }
    let attempt = LoginAttempt {
        key,
        client_id: Some(&cx.client.id),
        address: cx.address,
    };
    let user = cx
        .issuer
        .identity
        .login_with_password(&attempt, password)
        .await?;
    if cx
        .issuer
        .identity
        .second_factor_of(&user.key)
        .await?
        .is_some()
    {
        return Err(Error::SecondFactorMissing);
    }
    let opened = (GrantKind::Password, scopes);
    cx.issuer.open_session(cx, &user, opened).await
}
