//! The issuer: gives tokens, checks them, takes them back.

mod about;
mod account;
mod authenticate;
mod authorize;
mod browser;
mod device;
mod letter;
mod link;
mod metadata;
mod prove;
mod second_factor;
mod session;
mod sign_up;
mod social;
mod upkeep;

use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

pub use about::{ActiveToken, Introspection};
pub use account::Account;
pub use authorize::{AuthorizationRequest, Refusal};
pub use browser::Browser;
pub use device::{DeviceAuthorization, WaitingDevice};
pub use metadata::Endpoints;
pub(crate) use prove::Claimed;
pub use second_factor::Enrolment;
pub use social::{Arrival, Return};

use ring::hmac;

use crate::denylist::Denylist;
use crate::grant;
use crate::key::{self, Foundry, KeyRing};
use crate::throttle::InFlight;
use crate::token::{self, RefreshTokens, Segments, TokenCache};
use crate::{
    AuditEvent, Claims, Clock, Error, GuestRequest, MasterKey, PasswordHasher, Result,
    SecureRandom, Settings, Store, TokenFault, TokenRequest, TokenResponse,
};

/// What the issuer and the [`Directory`](crate::Directory) need from outside.
#[derive(Clone)]
pub struct Ports {
    /// Durable state.
    pub store: Arc<dyn Store>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub random: Arc<dyn SecureRandom>,
    /// The pool that hashes passwords.
    pub hasher: Arc<PasswordHasher>,
}

impl Ports {
    /// Writes to the audit log. A log that cannot be written is no reason to refuse a request whose
    /// work is done; it is told to the operator.
    pub(crate) async fn audit(&self, event: AuditEvent) {
        self.audit_all(&[event]).await;
    }

    /// As [`audit`](Self::audit), for several.
    pub(crate) async fn audit_all(&self, events: &[AuditEvent]) {
        if let Err(error) = self.store.append_audit(events).await {
            tracing::warn!(%error, "audit events are lost");
        }
    }
}

impl fmt::Debug for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ports")
            .field("hasher", &self.hasher)
            .finish_non_exhaustive()
    }
}

/// An OAuth 2.0 authorization server (RFC 6749) for the tenants of one store. Any number of nodes
/// may run one over the same store; none keeps what another lacks.
pub struct Issuer {
    pub(crate) ports: Ports,
    pub(crate) settings: Settings,
    master: MasterKey,
    refresh_tokens: RefreshTokens,
    form_key: hmac::Key,
    ring: RwLock<Arc<KeyRing>>,
    cache: TokenCache,
    denylist: Denylist,
    in_flight: InFlight,
}

impl Issuer {
    /// Starts an issuer: checks the master key against the store, reads the signing keys (makes the
    /// first ones where there are none) and the ended sessions.
    ///
    /// [`Error::WrongMasterKey`] when the store was made with another one.
    pub async fn start(ports: Ports, master: MasterKey, settings: Settings) -> Result<Self> {
        let fingerprint = master.fingerprint();
        if ports.store.claim_master_key(&fingerprint).await? != fingerprint {
            return Err(Error::WrongMasterKey);
        }
        let foundry = Foundry {
            store: &*ports.store,
            master: &master,
            random: &*ports.random,
        };
        let records = key::load(&foundry, ports.clock.now()).await?;
        let ring = KeyRing::open(records, &master)?.ok_or(Error::DamagedKey)?;
        let issuer = Self {
            refresh_tokens: RefreshTokens::new(&master),
            form_key: master.form_key(),
            ring: RwLock::new(Arc::new(ring)),
            cache: TokenCache::new(settings.token_cache),
            denylist: Denylist::default(),
            in_flight: InFlight::default(),
            ports,
            settings,
            master,
        };
        issuer.refresh_denylist().await?;
        Ok(issuer)
    }

    /// The issuer's address.
    pub fn address(&self) -> &str {
        self.settings.issuer()
    }

    /// Answers a token request that came from `address`.
    ///
    /// Errors as the table of the token endpoint says (RFC 6749, section 5.2): `unauthorized_client`,
    /// `invalid_client`, `invalid_grant`, and [`Error::TooManyAttempts`], [`Error::Busy`],
    /// [`Error::Store`].
    pub async fn token(
        &self,
        request: TokenRequest,
        address: Option<IpAddr>,
    ) -> Result<TokenResponse> {
        let client = self.asking_client(&request.client).await?;
        let cx = self.exchange(&client, address);
        grant::exchange(&cx, &request).await
    }

    /// Gives a token of the tenant's default user to a stranger.
    ///
    /// [`Error::UnknownGuestClient`], [`Error::ClientNotAuthenticated`], [`Error::NoDefaultUser`]
    /// and those of [`token`](Self::token).
    pub async fn guest(
        &self,
        request: GuestRequest,
        address: Option<IpAddr>,
    ) -> Result<TokenResponse> {
        let client = self
            .known_client(&request.client)
            .await?
            .ok_or(Error::UnknownGuestClient)?;
        let cx = self.exchange(&client, address);
        grant::guest::exchange(&cx, &request).await
    }

    /// Checks an access token. No I/O: signatures are checked once and remembered, ended sessions
    /// are in memory.
    ///
    /// [`Error::InvalidToken`] with the reason.
    pub fn verify(&self, token: &str) -> Result<Arc<Claims>> {
        let claims = self.genuine(token)?;
        let now = self.ports.clock.now();
        if claims.expires_at.plus(self.settings.lifetimes.leeway) <= now {
            return Err(Error::InvalidToken(TokenFault::Expired));
        }
        if self.denylist.contains(claims.session) {
            return Err(Error::InvalidToken(TokenFault::SessionEnded));
        }
        Ok(claims)
    }

    /// How long a token with these claims is still good; nothing when it has expired.
    pub fn remaining(&self, claims: &Claims) -> Duration {
        let left = claims.expires_at.millis() - self.ports.clock.now().millis();
        Duration::from_millis(u64::try_from(left).unwrap_or(0))
    }

    /// The claims of an access token that we made, expired or not.
    fn genuine(&self, token: &str) -> Result<Arc<Claims>> {
        if token.len() > token::LONGEST {
            return Err(Error::InvalidToken(TokenFault::TooLong));
        }
        let malformed = Error::InvalidToken(TokenFault::Malformed);
        let segments = Segments::split(token).ok_or(malformed)?;
        if let Some(claims) = self.cache.get(segments.signed, segments.signature) {
            return Ok(claims);
        }
        let time = (self.ports.clock.now(), self.settings.lifetimes.leeway);
        let claims = token::decode_access(&segments, &self.ring(), &self.settings.issuer, time)
            .map_err(Error::InvalidToken)?;
        let claims = Arc::new(claims);
        self.cache
            .insert(segments.signed, segments.signature, &claims);
        Ok(claims)
    }

    /// The public keys (RFC 7517), as JSON text. Changes when keys do; may be cached for minutes.
    pub fn key_set(&self) -> Result<String> {
        self.ring().document()
    }

    fn ring(&self) -> Arc<KeyRing> {
        Arc::clone(&self.ring.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl fmt::Debug for Issuer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Issuer")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}
