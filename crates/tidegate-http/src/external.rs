//! Verifies tokens of external issuers, and finds the identity of a request with such a token.
//!
//! The signature of a token is verified once, and the result is cached. Each further request checks
//! only the token's times, its issuer and its user again.

mod identity;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use quick_cache::Weighter;
use quick_cache::sync::Cache;
use tidegate_identity::{Secret, SecretHash, SessionId, Timestamp};
use tidegate_issuers::{
    GroupLogins, IssuerRegistry, TenantIssuer, TokenError, UnverifiedToken, VerifiedToken,
    unverified,
};
use tidegate_oauth::{Issuer, IssuerStore};

use crate::error::ApiError;
use identity::Identities;

pub(crate) use identity::ExternalUser;

/// The maximum size of all cached tokens together in bytes. Each token counts twice, because the
/// cache holds two copies. The claims of the tokens are not counted. They take about three times
/// this size in addition.
const CACHED_BYTES: u64 = 16 << 20;
/// The expected length of a token in bytes. The initial size of the cache is computed from it.
const USUAL_LENGTH: u64 = 1_024;
/// How long the cached identity of a token is used without asking the store. A change of the user
/// takes effect within this time, unless the store is down.
const CACHE_TTL: Duration = Duration::from_secs(4);
/// How long the cached identity of a token is used if the store is down.
const STALE_TTL: Duration = Duration::from_mins(1);

/// Verifies tokens of external issuers.
pub(crate) struct ExternalTokens {
    issuers: Arc<IssuerRegistry>,
    identities: Identities,
    verified: Cache<Box<str>, Arc<ExternalToken>, TokenLength>,
}

/// A verified token of an external issuer.
pub(crate) struct ExternalToken {
    text: Box<str>,
    issuer: Arc<TenantIssuer>,
    token: VerifiedToken,
    /// Whether the request for which the token was verified named a database.
    named_database: bool,
    /// A number that identifies the token. It is used where a token of this service has the id of
    /// its OAuth session.
    session: SessionId,
    identity: Mutex<Option<(ExternalUser, Instant)>>,
}

#[derive(Clone, Debug)]
struct TokenLength;

impl Weighter<Box<str>, Arc<ExternalToken>> for TokenLength {
    fn weight(&self, token: &Box<str>, _: &Arc<ExternalToken>) -> u64 {
        2 * token.len() as u64
    }
}

impl ExternalToken {
    /// Whether this token's issuer is still the right one for another request with the token.
    /// `database` is the database that the request names; `None` if it names no database.
    fn serves(&self, database: Option<&str>) -> bool {
        !self.issuer.is_retired()
            && match database {
                Some(database) => self.issuer.record().database == database,
                None => !self.named_database,
            }
    }

    fn identity(&self) -> Option<(ExternalUser, Instant)> {
        let identity = self.identity.lock();
        identity.unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_identity(&self, user: ExternalUser) {
        let mut identity = self.identity.lock().unwrap_or_else(PoisonError::into_inner);
        *identity = Some((user, Instant::now()));
    }

    fn forget_identity(&self) {
        *self.identity.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl fmt::Debug for ExternalToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExternalToken")
            .field("issuer", &self.issuer.record().name)
            .finish_non_exhaustive()
    }
}

impl ExternalTokens {
    pub(crate) fn new(
        issuers: Arc<IssuerRegistry>,
        groups: Arc<dyn GroupLogins>,
        users: Arc<dyn IssuerStore>,
    ) -> Self {
        Self {
            identities: Identities::new(Arc::clone(&issuers), groups, users),
            issuers,
            verified: Cache::with_weighter(
                usize::try_from(CACHED_BYTES / USUAL_LENGTH).unwrap_or(usize::MAX),
                CACHED_BYTES,
                TokenLength,
            ),
        }
    }

    /// The issuers of all tenants.
    pub(crate) fn issuers(&self) -> &IssuerRegistry {
        &self.issuers
    }

    /// The user of a token. `own` is the service's own issuer, and `database` is the database that
    /// the request names.
    ///
    /// # Errors
    ///
    /// 401 if the token is invalid, or the tenant does not accept its issuer; 403 if the token
    /// names neither a user nor a group of the tenant; 503 if the keys of the issuer cannot be
    /// loaded, or if the store is down.
    pub(crate) async fn user(
        &self,
        own: &Issuer,
        token: &str,
        database: Option<&str>,
    ) -> Result<ExternalUser, ApiError> {
        let now = system_time(own.now());
        if let Some(known) = self.verified.get(token)
            && known.serves(database)
        {
            let issuer = known.issuer.issuer();
            if issuer.recheck(&known.token, now).map_err(refused)? {
                return self.user_of(own, &known).await;
            }
        }
        let claims = unverified(token).map_err(refused)?;
        let issuer = self.select(own, &claims, database)?;
        let verified = issuer.issuer().verify(token, now).await.map_err(refused)?;
        let known = Arc::new(ExternalToken {
            text: token.into(),
            issuer,
            token: verified,
            named_database: database.is_some(),
            session: session_of(token),
            identity: Mutex::default(),
        });
        let user = self.user_of(own, &known).await?;
        self.verified.insert(token.into(), known);
        Ok(user)
    }

    /// Removes the cached users of the tenant `database`, so that the next request with each token
    /// reads the token's user again. This is needed, for example, if a user was made a member: the
    /// cached user has a role that was dropped.
    pub(crate) fn forget_users(&self, database: &str) {
        for (_, token) in self.verified.iter() {
            if token.issuer.record().database == database {
                token.forget_identity();
            }
        }
    }

    fn select(
        &self,
        own: &Issuer,
        claims: &UnverifiedToken,
        database: Option<&str>,
    ) -> Result<Arc<TenantIssuer>, ApiError> {
        // The service's own issuer has already refused the token. So a token that names this
        // service as its issuer is not a valid access token: it may be an ID token, or its signing
        // key may have been removed.
        if claims.issuer == own.address() {
            return Err(ApiError::invalid_token(
                "the token is not accepted, it is not an access token of this service with a key \
                 in use",
            ));
        }
        let selected = self.issuers.select(claims, database);
        selected
            .map_err(|error| ApiError::invalid_token(format!("the token is not accepted, {error}")))
    }

    /// The user of a verified token. A cached user is used for [`CACHE_TTL`], or for [`STALE_TTL`]
    /// if the store is down.
    async fn user_of(
        &self,
        own: &Issuer,
        known: &Arc<ExternalToken>,
    ) -> Result<ExternalUser, ApiError> {
        let before = known.identity();
        if let Some((user, asked_at)) = &before
            && asked_at.elapsed() < CACHE_TTL
        {
            return Ok(user.clone());
        }
        match self.identities.of(own.identity(), known).await {
            Ok(user) => {
                known.set_identity(user.clone());
                Ok(user)
            }
            Err(failure) if failure.status.is_server_error() => match before {
                Some((user, asked_at)) if asked_at.elapsed() < STALE_TTL => Ok(user),
                _ => Err(failure),
            },
            Err(failure) => {
                known.forget_identity();
                Err(failure)
            }
        }
    }

    /// Checks again whether the token of a user is valid and still names the same role, and for a
    /// member the same claims. `own` is the service's own issuer.
    ///
    /// # Errors
    ///
    /// As [`user`](Self::user), and 401 if the role or the member's claims have changed, or if the
    /// issuer is no longer accepted.
    pub(crate) async fn recheck(&self, own: &Issuer, user: &ExternalUser) -> Result<(), ApiError> {
        let token = &user.token;
        let database = token.issuer.record().database.as_str();
        let again = self.user(own, &token.text, Some(database)).await?;
        if again.is_same(user) {
            return Ok(());
        }
        Err(ApiError::invalid_token(
            "the token is not accepted, it names another role than before",
        ))
    }
}

impl fmt::Debug for ExternalTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExternalTokens").finish_non_exhaustive()
    }
}

/// The error for a token that could not be verified.
fn refused(error: TokenError) -> ApiError {
    match error {
        TokenError::Unavailable(_) => {
            let text = "the keys of the token's issuer cannot be loaded now";
            ApiError::unavailable("ISSUER_UNAVAILABLE", text, Duration::from_secs(10))
                .with_cause(Some(error.into()))
        }
        error => ApiError::invalid_token(format!("the token is not accepted, {error}")),
    }
}

fn system_time(now: Timestamp) -> SystemTime {
    let millis = u64::try_from(now.millis()).unwrap_or(0);
    SystemTime::UNIX_EPOCH + Duration::from_millis(millis)
}

/// The number that identifies a token: the first half of its SHA-256.
fn session_of(token: &str) -> SessionId {
    let hash = SecretHash::of(&Secret::new(token));
    let mut half = [0; 16];
    half.copy_from_slice(&hash.as_bytes()[..16]);
    SessionId::from_bytes(half)
}
