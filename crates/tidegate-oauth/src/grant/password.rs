//! The password grant (RFC 6749, section 4.3).

use super::Exchange;
use crate::issuer::Claimed;
use crate::{Error, GrantKind, Result, Secret, TokenResponse, UserKey};

/// Gives tokens to the user of `database` with this name and password.
///
/// [`Error::ForeignDatabase`] when the client is not of this tenant, [`Error::SecondFactorNeeded`]
/// when a password alone is not enough for it, [`Error::SecondFactorMissing`] when it is not for the
/// user, [`Error::WrongCredentials`] with the same text and
/// after the same time for a wrong name and a wrong password.
pub(super) async fn exchange(
    cx: &Exchange<'_>,
    database: &str,
    username: &str,
    password: &Secret,
) -> Result<TokenResponse> {
    if database != cx.client.database {
        return Err(Error::ForeignDatabase);
    }
    if cx.client.two_factor {
        return Err(Error::SecondFactorNeeded);
    }
    let claimed = Claimed {
        key: UserKey::new(database, username),
        client_id: Some(&cx.client.id),
        address: cx.address,
    };
    let user = cx.issuer.prove(&claimed, password).await?;
    if cx.issuer.second_factor_of(&user.key).await?.is_some() {
        return Err(Error::SecondFactorMissing);
    }
    cx.issuer.open_session(cx, &user, GrantKind::Password).await
}
