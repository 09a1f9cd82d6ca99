//! An external issuer and the verification of its tokens.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use quick_cache::Weighter;
use quick_cache::sync::Cache;
use serde_json::{Map, Value};

use crate::fetch::Fetch;
use crate::key_cache::KeyCache;
use crate::key_set::KeySet;
use crate::token::Token;
use crate::{ClaimPath, IssuerSettings, Network, SettingsError, SignatureAlgorithm, TokenError};

/// How many bytes of verified tokens are cached. Their claims take about three times as much.
const CACHED_BYTES: u64 = 4 << 20;
/// The usual length of a token in bytes, with which the cache is dimensioned.
const USUAL_LENGTH: usize = 1_024;
/// The longest name of a user or role that is accepted, in bytes.
const MAX_NAME: usize = 255;
/// The largest number of roles in a token that is accepted.
const MOST_ROLES: usize = 100;

/// A configured issuer. Share it in an `Arc`.
#[derive(Debug)]
pub struct Issuer {
    settings: IssuerSettings,
    keys: Arc<KeyCache>,
    verified: Cache<Box<str>, Cached, TokenLength>,
}

#[derive(Clone, Debug)]
struct Cached {
    token: Arc<VerifiedToken>,
    keys: Arc<KeySet>,
}

#[derive(Clone, Debug)]
struct TokenLength;

impl Weighter<Box<str>, Cached> for TokenLength {
    fn weight(&self, token: &Box<str>, _: &Cached) -> u64 {
        token.len() as u64
    }
}

/// A verified token. Its signature, issuer, audience and times are valid.
#[derive(Clone, Debug, PartialEq)]
pub struct VerifiedToken {
    /// The value of the user claim.
    pub user: String,
    /// The values of the role claim in the order of the token, or else the default role. Empty if
    /// neither is configured.
    pub roles: Vec<String>,
    /// When the token expires, in seconds since 1970.
    pub expires_at: u64,
    /// All claims of the token.
    pub claims: Map<String, Value>,
    not_before: u64,
}

impl Issuer {
    /// Creates an issuer. Its keys are loaded with the first token.
    pub fn new(settings: IssuerSettings, network: Network) -> Result<Self, SettingsError> {
        settings.check(network)?;
        let fetch = Fetch::new(&settings, network)?;
        Ok(Self {
            keys: Arc::new(KeyCache::new(fetch)),
            verified: Cache::with_weighter(
                usize::try_from(CACHED_BYTES).unwrap_or(usize::MAX) / USUAL_LENGTH,
                CACHED_BYTES,
                TokenLength,
            ),
            settings,
        })
    }

    /// The settings of the issuer.
    pub fn settings(&self) -> &IssuerSettings {
        &self.settings
    }

    /// Verifies a token at the time `now`.
    pub async fn verify(
        &self,
        token: &str,
        now: SystemTime,
    ) -> Result<Arc<VerifiedToken>, TokenError> {
        let now = seconds(now);
        if let Some(cached) = self.verified.get(token)
            && self.keys.are_current(&cached.keys)
        {
            self.check_times(&cached.token, now)?;
            return Ok(cached.token);
        }
        let parsed = Token::read(token)?;
        let algorithm = SignatureAlgorithm::of_header(&parsed.header.alg)
            .filter(|algorithm| self.settings.algorithms.contains(algorithm))
            .ok_or(TokenError::Algorithm)?;
        let keys = self.keys.verify(&parsed, algorithm).await?;
        let verified = Arc::new(self.read_claims(parsed.claims()?)?);
        self.check_times(&verified, now)?;
        let cached = Cached {
            token: Arc::clone(&verified),
            keys,
        };
        self.verified.insert(token.into(), cached);
        Ok(verified)
    }

    /// Checks the claims of a token whose signature is valid.
    fn read_claims(&self, claims: Map<String, Value>) -> Result<VerifiedToken, TokenError> {
        let settings = &self.settings;
        if claims.get("iss").and_then(Value::as_str) != Some(&settings.issuer) {
            return Err(TokenError::Issuer);
        }
        let audience = strings(settings.audience_claim.find(&claims));
        if !audience.is_some_and(|found| found.iter().any(|one| settings.audience.contains(one))) {
            return Err(TokenError::Audience(settings.audience_claim.clone()));
        }
        Ok(VerifiedToken {
            user: user(&settings.user_claim, &claims)?,
            roles: self.roles(&claims)?,
            expires_at: time(&claims, "exp")?.ok_or(TokenError::Claim {
                claim: "exp".to_owned(),
                expected: "a time in seconds since 1970",
            })?,
            not_before: time(&claims, "nbf")?
                .max(time(&claims, "iat")?)
                .unwrap_or(0),
            claims,
        })
    }

    fn roles(&self, claims: &Map<String, Value>) -> Result<Vec<String>, TokenError> {
        let settings = &self.settings;
        let role_claim = settings.role_claim.as_ref();
        let error = |path: &ClaimPath| TokenError::Claim {
            claim: path.to_string(),
            expected: "a text or an array of 1 to 100 texts, each of 1 to 255 bytes",
        };
        match role_claim.and_then(|path| Some((path, path.find(claims)?))) {
            Some((path, value)) => strings(Some(value))
                .filter(|roles| (1..=MOST_ROLES).contains(&roles.len()))
                .filter(|roles| roles.iter().all(|role| is_name(role)))
                .ok_or_else(|| error(path)),
            None => match (&settings.default_role, role_claim) {
                (Some(role), _) => Ok(vec![role.clone()]),
                (None, None) => Ok(Vec::new()),
                (None, Some(path)) => Err(error(path)),
            },
        }
    }

    fn check_times(&self, token: &VerifiedToken, now: u64) -> Result<(), TokenError> {
        let skew = self.settings.clock_skew;
        if token.expires_at.saturating_add(skew) <= now {
            return Err(TokenError::Expired);
        }
        if token.not_before > now.saturating_add(skew) {
            return Err(TokenError::NotYetValid);
        }
        Ok(())
    }
}

fn seconds(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH);
    since.as_ref().map_or(0, Duration::as_secs)
}

/// Reads a time, which is a `NumericDate` and may have a fraction (RFC 7519, section 2).
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a cast of a float saturates, and any such time is far in the past or future"
)]
fn time(claims: &Map<String, Value>, name: &str) -> Result<Option<u64>, TokenError> {
    match claims.get(name) {
        None => Ok(None),
        Some(value) => {
            value
                .as_f64()
                .map(|time| Some(time as u64))
                .ok_or_else(|| TokenError::Claim {
                    claim: name.to_owned(),
                    expected: "a time in seconds since 1970",
                })
        }
    }
}

/// Reads a value that is a string or an array of strings.
fn strings(value: Option<&Value>) -> Option<Vec<String>> {
    match value? {
        Value::String(one) => Some(vec![one.clone()]),
        Value::Array(many) => many
            .iter()
            .map(|one| one.as_str().map(str::to_owned))
            .collect(),
        _ => None,
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.len() <= MAX_NAME && !text.chars().any(char::is_control)
}

fn user(path: &ClaimPath, claims: &Map<String, Value>) -> Result<String, TokenError> {
    let text = match path.find(claims) {
        Some(Value::String(text)) => Some(text.clone()),
        // Some issuers have numbers for their users.
        Some(Value::Number(number)) => Some(number.to_string()),
        _ => None,
    };
    text.filter(|text| is_name(text))
        .ok_or_else(|| TokenError::Claim {
            claim: path.to_string(),
            expected: "a text of 1 to 255 bytes without control characters",
        })
}
