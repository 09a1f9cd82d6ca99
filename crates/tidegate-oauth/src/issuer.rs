//! The issuer: issues, verifies and revokes tokens.

mod account;
mod authenticate;
mod authorize;
mod consent;
mod device;
mod federation;
mod grant;
mod id_token;
mod impersonation;
mod introspection;
mod key_rotation;
mod logout;
mod maintenance;
mod metadata;
mod openid_metadata;
mod openid_request;
mod personal_token;
mod session;
mod sign_up;
mod tenant_sessions;
mod user_info;

use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

pub use account::Account;
pub use authorize::{AuthorizationError, AuthorizationRequest};
pub use device::{DeviceAuthorization, PendingDevice};
pub use federation::{LoginOutcome, ProviderCallback};
pub use impersonation::ImpersonationToken;
pub use introspection::{ActiveToken, Introspection};
pub use logout::LogoutRequest;
pub use metadata::Endpoints;
pub use openid_request::{OpenIdRequest, Prompt};
pub use personal_token::{CreatedPersonalToken, NewPersonalToken};

use tidegate_identity::{Error as IdentityError, IdentityService, MasterKey, Timestamp};

use crate::key::KeyRing;
use crate::token::{
    self, Denylist, PersonalTokens, RefreshTokens, Segments, TokenCache, TokenHash,
};
use crate::{
    Claims, ClientDirectory, Error, GuestRequest, Ports, Result, Settings, TokenError,
    TokenRequest, TokenResponse,
};

/// An OAuth 2.0 authorization server (RFC 6749) for the tenants of one store. Any number of nodes
/// may share a store; all durable state is in the store.
pub struct Issuer {
    pub(crate) ports: Ports,
    pub(crate) settings: Settings,
    pub(crate) identity: IdentityService,
    master: MasterKey,
    refresh_tokens: RefreshTokens,
    personal_tokens: PersonalTokens,
    ring: RwLock<Arc<KeyRing>>,
    cache: TokenCache,
    denylist: Denylist,
}

impl Issuer {
    /// Starts an issuer: checks the master key against the store, creates the first signing keys if
    /// there are none, and loads the signing keys and the ended sessions.
    ///
    /// Errors: [`Error::WrongMasterKey`] when the store belongs to another master key.
    pub async fn start(ports: Ports, master: MasterKey, settings: Settings) -> Result<Self> {
        let fingerprint = master.fingerprint();
        if ports.store.claim_master_key(&fingerprint).await? != fingerprint {
            return Err(Error::WrongMasterKey);
        }
        let generator = key_rotation::KeyGenerator {
            store: &*ports.store,
            master: &master,
            random: &*ports.random,
        };
        let records = key_rotation::load(&generator, ports.clock.now()).await?;
        let ring = KeyRing::open(records, &master)?.ok_or(IdentityError::DamagedSecret)?;
        let issuer = Self {
            refresh_tokens: RefreshTokens::new(&master),
            personal_tokens: PersonalTokens::new(&master),
            identity: IdentityService::new(
                ports.identity(),
                master.clone(),
                settings.identity.clone(),
            ),
            ring: RwLock::new(Arc::new(ring)),
            cache: TokenCache::new(settings.token_cache),
            denylist: Denylist::default(),
            ports,
            settings,
            master,
        };
        issuer.refresh_denylist().await?;
        Ok(issuer)
    }

    /// The issuer's URL.
    pub fn address(&self) -> &str {
        self.settings.issuer()
    }

    /// The current time.
    pub fn now(&self) -> Timestamp {
        self.ports.clock.now()
    }

    /// The directory of clients, in which the ids of built-in clients are reserved.
    pub fn clients(&self) -> ClientDirectory {
        ClientDirectory::new(self.ports.clone()).reserving(&self.settings.builtin.ids)
    }

    /// The service that authenticates users: sign-in, browser sessions, second factors, linked
    /// accounts.
    pub fn identity(&self) -> &IdentityService {
        &self.identity
    }

    /// Handles a token request sent from `address`.
    ///
    /// Errors: those with the codes of RFC 6749, section 5.2; `invalid_target` (RFC 8707, section
    /// 2); for a device code, also those with the codes of RFC 8628, section 3.5; and
    /// [`Error::Identity`], for example with [`IdentityError::TooManyAttempts`] or
    /// [`IdentityError::Busy`].
    pub async fn token(
        &self,
        request: TokenRequest,
        address: Option<IpAddr>,
    ) -> Result<TokenResponse> {
        let client = self.require_client(&request.client).await?;
        self.check_resource(request.resource.as_deref())?;
        let cx = self.grant_context(&client, address);
        grant::exchange(&cx, &request).await
    }

    /// Issues a token for the tenant's default user, without credentials of a user.
    ///
    /// Errors: [`Error::UnknownGuestClient`], [`Error::ClientNotAuthenticated`],
    /// [`Error::NoDefaultUser`], and the errors of [`token`](Self::token).
    pub async fn guest(
        &self,
        request: GuestRequest,
        address: Option<IpAddr>,
    ) -> Result<TokenResponse> {
        let client = self
            .find_client(&request.client)
            .await?
            .ok_or(Error::UnknownGuestClient)?;
        let cx = self.grant_context(&client, address);
        grant::guest::exchange(&cx, &request).await
    }

    /// Verifies a bearer token of any kind. An access token is verified without I/O, a personal
    /// access token by a lookup whose result is cached.
    ///
    /// Errors: [`Error::InvalidToken`] with the reason.
    pub async fn authenticate_token(&self, token: &str) -> Result<Arc<Claims>> {
        if !PersonalTokens::is_personal(token) {
            return self.verify(token);
        }
        let invalid = || Error::InvalidToken(TokenError::UnknownPersonalToken);
        let hash = self.personal_tokens.hash(token).ok_or_else(invalid)?;
        let now = self.ports.clock.now();
        let claims = match self.personal_tokens.cached(&hash, now) {
            Some(known) => known,
            None => self.look_up_personal_token(hash, now).await?,
        };
        let claims = claims.ok_or_else(invalid)?;
        self.recheck(&claims)?;
        Ok(claims)
    }

    /// Verifies an access token without I/O: verified signatures are cached, and the ended sessions
    /// are in memory.
    ///
    /// Errors: [`Error::InvalidToken`] with the reason if the token is not valid.
    pub fn verify(&self, token: &str) -> Result<Arc<Claims>> {
        let claims = self.decode_signed(token)?;
        self.recheck(&claims)?;
        Ok(claims)
    }

    /// Checks whether the token with these claims is still valid: it must not have expired, and its
    /// session must not have ended. Does no I/O.
    ///
    /// Errors: [`Error::InvalidToken`] with the reason.
    pub fn recheck(&self, claims: &Claims) -> Result<()> {
        let now = self.ports.clock.now();
        if claims.expires_at.plus(self.settings.lifetimes.leeway) <= now {
            return Err(Error::InvalidToken(TokenError::Expired));
        }
        if self.denylist.contains(claims.session) {
            return Err(Error::InvalidToken(TokenError::SessionEnded));
        }
        Ok(())
    }

    /// The remaining lifetime of a token with these claims; zero when it has expired.
    pub fn remaining(&self, claims: &Claims) -> Duration {
        let left = claims.expires_at.millis() - self.ports.clock.now().millis();
        Duration::from_millis(u64::try_from(left).unwrap_or(0))
    }

    /// The claims of an access token that was signed with one of the issuer's keys. The token may
    /// have expired.
    fn decode_signed(&self, token: &str) -> Result<Arc<Claims>> {
        if token.len() > token::MAX_LENGTH {
            return Err(Error::InvalidToken(TokenError::TooLong));
        }
        let hash = TokenHash::of(token);
        if let Some(claims) = self.cache.get(&hash) {
            return Ok(claims);
        }
        let malformed = || Error::InvalidToken(TokenError::Malformed);
        let segments = Segments::split(token).ok_or_else(malformed)?;
        let time = (self.ports.clock.now(), self.settings.lifetimes.leeway);
        let claims = token::decode_access(&segments, &self.ring(), self.settings.issuer(), time)
            .map_err(Error::InvalidToken)?;
        let claims = Arc::new(claims);
        self.cache.insert(hash, &claims);
        Ok(claims)
    }

    /// The issuer's public keys, as the JSON text of a JWK set (RFC 7517). The text changes only
    /// when keys change, so it may be cached for minutes.
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
