//! The grants, one file each.

mod authorization_code;
mod client_credentials;
mod device_code;
pub(crate) mod guest;
mod password;
mod refresh;

use std::net::IpAddr;

use tidegate_identity::UserKey;

use crate::{
    Client, Error, GrantKind, GrantParameters, Issuer, Result, TokenRequest, TokenResponse,
};

/// The context of a grant: the issuer, the client, and the address that the request came from.
pub(crate) struct GrantContext<'a> {
    pub(crate) issuer: &'a Issuer,
    pub(crate) client: &'a Client,
    pub(crate) address: Option<IpAddr>,
}

impl GrantContext<'_> {
    /// Fails with [`Error::ForeignDatabase`] if the request names a database whose users may not
    /// sign in through the client.
    pub(crate) fn require_database(&self, database: Option<&str>) -> Result<()> {
        if database.is_none_or(|database| self.client.admits(database)) {
            Ok(())
        } else {
            Err(Error::ForeignDatabase)
        }
    }

    /// Fails with [`Error::GrantNotAllowed`] if the client may not use this grant.
    pub(crate) fn require_grant(&self, kind: GrantKind) -> Result<()> {
        if self.client.grants.allows(kind) {
            Ok(())
        } else {
            Err(Error::GrantNotAllowed)
        }
    }
}

/// Handles a token request. Checks in this order that the client may use the grant, that the client
/// is authenticated, that users of the named database may sign in through the client, and that the
/// grant is valid.
pub(crate) async fn exchange(
    cx: &GrantContext<'_>,
    request: &TokenRequest,
) -> Result<TokenResponse> {
    let kind = match request.grant {
        GrantParameters::Password { .. } => GrantKind::Password,
        GrantParameters::RefreshToken { .. } => GrantKind::RefreshToken,
        GrantParameters::AuthorizationCode { .. } => GrantKind::AuthorizationCode,
        GrantParameters::DeviceCode { .. } => GrantKind::DeviceCode,
        GrantParameters::ClientCredentials { .. } => GrantKind::ClientCredentials,
    };
    cx.require_grant(kind)?;
    cx.issuer
        .authenticate(cx.client, &request.client, cx.address)
        .await?;
    cx.require_database(request.database.as_deref())?;
    match &request.grant {
        GrantParameters::Password {
            username,
            password,
            scopes,
        } => {
            let database = request.database.as_deref().unwrap_or(username);
            let key = UserKey::new(database, username);
            password::exchange(cx, key, password, *scopes).await
        }
        GrantParameters::RefreshToken { token, scopes } => {
            refresh::exchange(cx, token, *scopes).await
        }
        GrantParameters::AuthorizationCode {
            code,
            redirect_uri,
            verifier,
        } => authorization_code::exchange(cx, code, redirect_uri, verifier).await,
        GrantParameters::DeviceCode { code } => device_code::exchange(cx, code).await,
        GrantParameters::ClientCredentials { scopes } => {
            client_credentials::exchange(cx, *scopes).await
        }
    }
}
