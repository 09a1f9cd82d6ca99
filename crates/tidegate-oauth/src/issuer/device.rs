//! Devices that wait for a person (RFC 8628, sections 3.1 to 3.3).

use std::net::IpAddr;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;

use super::{Browser, Issuer};
use crate::flow::UserCode;
use crate::{
    Approval, AttemptScope, AuditKind, Client, DeviceCode, DeviceRequest, DeviceState, Error,
    GrantKind, Result, Secret, SecretHash, json, random, throttle,
};

/// Two user codes are the same once in 25 thousand million times.
const TRIES: usize = 8;

/// What a device shows and polls with (RFC 8628, section 3.2).
#[derive(Clone, Debug)]
pub struct DeviceAuthorization {
    /// What the device polls with.
    pub device_code: Secret,
    /// What the person types, as `XXXX-XXXX`.
    pub user_code: String,
    /// Where the person types it.
    pub verification_uri: String,
    /// How long both are good.
    pub expires_in: Duration,
    /// The pause between two polls.
    pub interval: Duration,
}

/// A device that waits, as the person sees it who is asked.
#[derive(Clone, Debug)]
pub struct WaitingDevice {
    /// The user code, as `XXXX-XXXX`.
    pub user_code: String,
    /// The client that asks.
    pub client: Client,
}

impl Issuer {
    /// Gives codes to a device that came from `address`; `page` is the path of the page on which
    /// they are typed.
    ///
    /// [`Error::UnknownClient`], [`Error::GrantNotAllowed`], [`Error::ClientNotAuthenticated`],
    /// [`Error::TooManyAttempts`].
    pub async fn authorize_device(
        &self,
        request: DeviceRequest,
        address: Option<IpAddr>,
        page: &str,
    ) -> Result<DeviceAuthorization> {
        let client = self.asking_client(&request.client).await?;
        let cx = self.exchange(&client, address);
        cx.allow(GrantKind::DeviceCode)?;
        self.authenticate(&client, &request.client, address).await?;
        if let Some(address) = address {
            let key = throttle::address(AttemptScope::Device, address);
            // Never given back: what is counted here is rows.
            self.attempts()
                .count(key, &self.settings.limits.device)
                .await?;
        }
        let (device_code, user_code) = self.new_device(&client).await?;
        Ok(DeviceAuthorization {
            device_code,
            user_code: user_code.to_string(),
            verification_uri: format!("{}{page}", self.settings.issuer()),
            expires_in: self.settings.lifetimes.device_code,
            interval: self.settings.lifetimes.device_interval,
        })
    }

    async fn new_device(&self, client: &Client) -> Result<(Secret, UserCode)> {
        let lifetimes = &self.settings.lifetimes;
        let bytes: [u8; 32] = random::bytes(&*self.ports.random)?;
        let code = Secret::new(URL_SAFE_NO_PAD.encode(bytes));
        for _ in 0..TRIES {
            let user_code = UserCode::generate(&*self.ports.random)?;
            let device = DeviceCode {
                hash: SecretHash::of(&code),
                user_code: user_code.letters().to_owned(),
                client_id: client.id.clone(),
                state: DeviceState::Pending,
                interval: lifetimes.device_interval,
                poll_at: None,
                expires_at: self.ports.clock.now().plus(lifetimes.device_code),
            };
            if self.ports.store.insert_device_code(&device).await? {
                return Ok((code, user_code));
            }
        }
        Err(Error::NoRandomness)
    }

    /// The device that waits with this user code. Wrong codes are counted before they are looked
    /// for, by address and by the session of whoever is signed in, so that nobody can try them out.
    ///
    /// [`Error::UnknownUserCode`] also when it was decided about or has expired,
    /// [`Error::TooManyAttempts`].
    pub async fn waiting_device(
        &self,
        user_code: &str,
        address: Option<IpAddr>,
        browser: Option<&Browser>,
    ) -> Result<WaitingDevice> {
        let mut attempts = self.attempts();
        if let Some(address) = address {
            let key = throttle::address(AttemptScope::UserCode, address);
            attempts.count(key, &self.settings.limits.user_code).await?;
        }
        if let Some(browser) = browser {
            let key = throttle::browser(AttemptScope::UserCode, browser.session.id);
            let limit = &self.settings.limits.user_code_of_browser;
            attempts.count(key, limit).await?;
        }
        let now = self.ports.clock.now();
        let user_code = UserCode::parse(user_code).ok_or(Error::UnknownUserCode)?;
        let device = self.ports.store.device_code(user_code.letters()).await?;
        let device = device
            .filter(|device| device.state == DeviceState::Pending && now < device.expires_at)
            .ok_or(Error::UnknownUserCode)?;
        let client = self.ports.store.client(&device.client_id).await?;
        let client = client.ok_or(Error::UnknownUserCode)?;
        attempts.give_back().await?;
        Ok(WaitingDevice {
            user_code: user_code.to_string(),
            client,
        })
    }

    /// Decides about a device as whoever is signed in in `browser` and was shown the client. What
    /// is allowed is good no longer than that user is signed in there.
    ///
    /// [`Error::UnknownUserCode`] when somebody was faster or its time is over,
    /// [`Error::ForeignDatabase`] when the client is another tenant's.
    pub async fn decide_device(
        &self,
        device: &WaitingDevice,
        browser: &Browser,
        allow: bool,
        address: Option<IpAddr>,
    ) -> Result<()> {
        let user = &browser.user;
        if user.key.database != device.client.database {
            return Err(Error::ForeignDatabase);
        }
        let code = UserCode::parse(&device.user_code).ok_or(Error::UnknownUserCode)?;
        let approval = allow.then(|| Approval {
            user: user.key.clone(),
            browser: browser.session.id,
        });
        let (store, now) = (&self.ports.store, self.ports.clock.now());
        if !store
            .decide_device_code(code.letters(), approval.as_ref(), now)
            .await?
        {
            return Err(Error::UnknownUserCode);
        }
        let kind = if allow {
            AuditKind::ConsentGiven
        } else {
            AuditKind::ConsentDenied
        };
        let event = self.event(kind, Some(&user.key.database));
        let event = event.of_user(&user.key.name).of_client(&device.client.id);
        self.ports.audit(event.from(address)).await;
        Ok(())
    }
}

impl DeviceAuthorization {
    /// The body of the answer. It holds a secret: it must not be stored or logged.
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
