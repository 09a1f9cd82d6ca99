//! The device grant (RFC 8628, section 3.4).

use super::GrantContext;
use crate::{DeviceState, Error, GrantKind, Result, Session, TokenResponse};
use tidegate_identity::{Secret, SecretHash, SignedIn};

/// Issues tokens to an approved device.
///
/// Errors: [`Error::AuthorizationPending`] or [`Error::SlowDown`] while the request is pending,
/// [`Error::AccessDenied`], [`Error::ExpiredDeviceCode`], and [`Error::InvalidDeviceCode`] when the
/// code is used, was not issued to this client, or was approved in a browser session that has
/// ended.
pub(super) async fn exchange(cx: &GrantContext<'_>, code: &Secret) -> Result<TokenResponse> {
    let (store, now) = (&cx.issuer.ports.store, cx.issuer.ports.clock.now());
    let hash = SecretHash::of(code);
    let polled = store
        .poll_device_code(hash, &cx.client.id, now)
        .await?
        .ok_or(Error::InvalidDeviceCode)?;
    let scopes = polled.device.scopes;
    let approval = match polled.device.state {
        DeviceState::Consumed => return Err(Error::InvalidDeviceCode),
        DeviceState::Denied => return Err(Error::AccessDenied),
        _ if polled.device.expires_at <= now => return Err(Error::ExpiredDeviceCode),
        DeviceState::Pending if polled.early => return Err(Error::SlowDown),
        DeviceState::Pending => return Err(Error::AuthorizationPending),
        DeviceState::Approved(approval) => approval,
    };
    if !cx.client.admits(&approval.user.database) {
        return Err(Error::InvalidDeviceCode);
    }
    let signed_in = cx
        .issuer
        .identity
        .signed_in(&approval.user, approval.browser);
    let SignedIn { user, since } = signed_in.await?.ok_or(Error::InvalidDeviceCode)?;
    let opened = (GrantKind::DeviceCode, scopes);
    let session = Session {
        authenticated_at: since,
        ..cx.issuer.new_session(cx, &user, opened)?
    };
    if !store.redeem_device_code(hash, &session).await? {
        return Err(Error::InvalidDeviceCode);
    }
    cx.issuer.first_tokens(cx, &session, &user, None).await
}
