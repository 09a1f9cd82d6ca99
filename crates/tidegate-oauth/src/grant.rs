//! The grants: each turns what a client shows into tokens. One file per grant.

mod authorization_code;
mod device_code;
pub(crate) mod guest;
mod password;
mod refresh;

use std::net::IpAddr;

use crate::{Client, Error, Grant, GrantKind, Issuer, Result, TokenRequest, TokenResponse};

/// What every grant works with: the issuer, the client that asks, and from where.
pub(crate) struct Exchange<'a> {
    pub(crate) issuer: &'a Issuer,
    pub(crate) client: &'a Client,
    pub(crate) address: Option<IpAddr>,
}

impl Exchange<'_> {
    /// Refuses a grant that is not enabled for the client.
    pub(crate) fn allow(&self, kind: GrantKind) -> Result<()> {
        if self.client.grants.allows(kind) {
            Ok(())
        } else {
            Err(Error::GrantNotAllowed)
        }
    }
}

/// Answers a request of the token endpoint, in the order of its error table: the grant is enabled,
/// the client proves itself, then the grant itself.
pub(crate) async fn exchange(cx: &Exchange<'_>, request: &TokenRequest) -> Result<TokenResponse> {
    let kind = match request.grant {
        Grant::Password { .. } => GrantKind::Password,
        Grant::RefreshToken { .. } => GrantKind::RefreshToken,
        Grant::AuthorizationCode { .. } => GrantKind::AuthorizationCode,
        Grant::DeviceCode { .. } => GrantKind::DeviceCode,
    };
    cx.allow(kind)?;
    cx.issuer
        .authenticate(cx.client, &request.client, cx.address)
        .await?;
    match &request.grant {
        Grant::Password {
            username,
            password,
            database,
        } => {
            let database = database.as_deref().unwrap_or(username);
            password::exchange(cx, database, username, password).await
        }
        Grant::RefreshToken { token } => refresh::exchange(cx, token).await,
        Grant::AuthorizationCode {
            code,
            redirect_uri,
            verifier,
        } => authorization_code::exchange(cx, code, redirect_uri, verifier).await,
        Grant::DeviceCode { code } => device_code::exchange(cx, code).await,
    }
}
