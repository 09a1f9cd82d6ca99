//! Device authorization (RFC 8628, sections 3.1 to 3.3).

use std::net::IpAddr;
use std::time::Duration;

use serde::Serialize;

use super::Issuer;
use crate::device_code::UserCode;
use crate::{
    Approval, Client, DeviceCode, DeviceRequest, DeviceState, Error, GrantKind, Result, Scopes,
    json, rate_limit,
};
use tidegate_identity::{AttemptKey, Browser, Error as IdentityError};
use tidegate_identity::{AuditKind, Secret, SecretHash};

/// The maximum number of random user codes to try until one is not in use. Two codes are equal with
/// a probability of 1 in 25 thousand million.
const MAX_TRIES: usize = 8;

/// The device authorization response (RFC 8628, section 3.2).
#[derive(Clone, Debug)]
pub struct DeviceAuthorization {
    /// The code that the device polls with.
    pub device_code: Secret,
    /// The code that the person enters, as `XXXX-XXXX`.
    pub user_code: String,
    /// The URL of the page on which the person enters the user code.
    pub verification_uri: String,
    /// The lifetime of both codes.
    pub expires_in: Duration,
    /// The minimum time between two polls.
    pub interval: Duration,
}

/// A device that waits for approval, as the person sees it.
#[derive(Clone, Debug)]
pub struct PendingDevice {
    /// The user code, as `XXXX-XXXX`.
    pub user_code: String,
    /// The client that the device runs.
    pub client: Client,
    /// The scopes that the device requested.
    pub scopes: Scopes,
}

impl Issuer {
    /// Issues codes to a device at `address`. `page` is the path of the page on which the person
    /// enters the user code.
    ///
    /// Errors: [`Error::UnknownClient`], [`Error::InvalidTarget`], [`Error::GrantNotAllowed`],
    /// [`Error::ClientNotAuthenticated`], [`Error::ForeignDatabase`] when the request names the
    /// database of another tenant, [`IdentityError::TooManyAttempts`].
    pub async fn authorize_device(
        &self,
        request: DeviceRequest,
        address: Option<IpAddr>,
        page: &str,
    ) -> Result<DeviceAuthorization> {
        let client = self.require_client(&request.client).await?;
        self.check_resource(request.resource.as_deref())?;
        let cx = self.grant_context(&client, address);
        cx.require_grant(GrantKind::DeviceCode)?;
        self.authenticate(&client, &request.client, address).await?;
        cx.require_database(request.database.as_deref())?;
        if let Some(address) = address {
            let key = AttemptKey::of_address(rate_limit::DEVICE, address);
            // The attempt is not refunded after success: the limit is for stored device codes, not
            // for failures.
            self.identity
                .attempts()
                .count(key, &self.settings.limits.device)
                .await?;
        }
        let (device_code, user_code) = self.new_device(&client, request.scopes).await?;
        Ok(DeviceAuthorization {
            device_code,
            user_code: user_code.to_string(),
            verification_uri: format!("{}{page}", self.settings.issuer()),
            expires_in: self.settings.lifetimes.device_code,
            interval: self.settings.lifetimes.device_interval,
        })
    }

    async fn new_device(&self, client: &Client, scopes: Scopes) -> Result<(Secret, UserCode)> {
        let lifetimes = &self.settings.lifetimes;
        let code = self.ports.random.secret()?;
        for _ in 0..MAX_TRIES {
            let user_code = UserCode::generate(&*self.ports.random)?;
            let device = DeviceCode {
                hash: SecretHash::of(&code),
                user_code: user_code.as_str().to_owned(),
                client_id: client.id.clone(),
                scopes,
                state: DeviceState::Pending,
                interval: lifetimes.device_interval,
                poll_at: None,
                expires_at: self.ports.clock.now().plus(lifetimes.device_code),
            };
            if self.ports.store.insert_device_code(&device).await? {
                return Ok((code, user_code));
            }
        }
        Err(IdentityError::NoRandomness.into())
    }

    /// The device that waits for approval with this user code. An attempt is counted for the
    /// address and for the browser session before the lookup, so that user codes cannot be guessed.
    /// The attempt is refunded if there is such a device.
    ///
    /// Errors: [`Error::UnknownUserCode`], also when the code was decided already or has expired;
    /// [`IdentityError::TooManyAttempts`].
    pub async fn pending_device(
        &self,
        user_code: &str,
        address: Option<IpAddr>,
        browser: Option<&Browser>,
    ) -> Result<PendingDevice> {
        let mut attempts = self.identity.attempts();
        if let Some(address) = address {
            let key = AttemptKey::of_address(rate_limit::USER_CODE, address);
            attempts.count(key, &self.settings.limits.user_code).await?;
        }
        if let Some(browser) = browser {
            let key = AttemptKey::of_browser(rate_limit::USER_CODE, browser.session.id);
            let limit = &self.settings.limits.user_codes_per_browser;
            attempts.count(key, limit).await?;
        }
        let now = self.ports.clock.now();
        let user_code = UserCode::parse(user_code).ok_or(Error::UnknownUserCode)?;
        let device = self.ports.store.device_code(user_code.as_str()).await?;
        let device = device
            .filter(|device| device.state == DeviceState::Pending && now < device.expires_at)
            .ok_or(Error::UnknownUserCode)?;
        let client = self.client(&device.client_id).await?;
        let client = client.ok_or(Error::UnknownUserCode)?;
        attempts.refund().await?;
        Ok(PendingDevice {
            user_code: user_code.to_string(),
            client,
            scopes: device.scopes,
        })
    }

    /// Approves or denies a device as the user who is signed in in `browser`. An approval is void
    /// when the browser session of `browser` ends.
    ///
    /// Errors: [`Error::UnknownUserCode`] when the code was decided already or has expired;
    /// [`Error::ForeignDatabase`] when the client belongs to another tenant.
    pub async fn decide_device(
        &self,
        device: &PendingDevice,
        browser: &Browser,
        allow: bool,
        address: Option<IpAddr>,
    ) -> Result<()> {
        let user = &browser.user;
        if !device.client.admits(&user.key.database) {
            return Err(Error::ForeignDatabase);
        }
        let code = UserCode::parse(&device.user_code).ok_or(Error::UnknownUserCode)?;
        let approval = allow.then(|| Approval {
            user: user.key.clone(),
            browser: browser.session.id,
        });
        let (store, now) = (&self.ports.store, self.ports.clock.now());
        if !store
            .decide_device_code(code.as_str(), approval.as_ref(), now)
            .await?
        {
            return Err(Error::UnknownUserCode);
        }
        let kind = if allow {
            AuditKind::ConsentGiven
        } else {
            AuditKind::ConsentDenied
        };
        let event = self.ports.event(kind, Some(&user.key.database));
        let event = event
            .with_user(&user.key.name)
            .with_client(Some(&device.client.id));
        self.ports.audit(event.with_address(address)).await;
        Ok(())
    }
}

impl DeviceAuthorization {
    /// The JSON of the response body. It contains a secret: do not store or log it.
    pub fn to_json(&self) -> String {
        #[derive(Serialize)]
        struct Body<'a> {
            device_code: &'a str,
            user_code: &'a str,
            verification_uri: &'a str,
            expires_in: u64,
            interval: u64,
            verification_uri_complete: String,
        }
        let body = Body {
            device_code: self.device_code.expose(),
            user_code: &self.user_code,
            verification_uri: &self.verification_uri,
            expires_in: self.expires_in.as_secs(),
            interval: self.interval.as_secs(),
            verification_uri_complete: format!(
                "{}?user_code={}",
                self.verification_uri, self.user_code
            ),
        };
        json::text(&body)
    }
}
