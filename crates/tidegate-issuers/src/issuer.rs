//! An external issuer and the verification of its tokens.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde_json::{Map, Value};

use crate::fetch::{DocumentClient, Fetch};
use crate::key_cache::KeyCache;
use crate::key_set::KeySet;
use crate::token::Token;
use crate::{
    ClaimPath, FetchError, IssuerSettings, Network, SettingsError, SignatureAlgorithm, TokenError,
};

/// The maximum length of a subject, and of the name of a user or role, in bytes.
const MAX_NAME: usize = 255;
/// The maximum number of roles in a token. A token with more roles is refused.
const MAX_ROLES: usize = 256;
/// The start of the year 10000, in seconds since 1970. A token with this or a later time is
/// refused, because it would never expire. Such a time is an error of the issuer, which may have
/// written milliseconds.
const LATEST: f64 = 253_402_300_800.0;

/// A configured issuer. Share it in an `Arc`.
#[derive(Debug)]
pub struct Issuer {
    settings: IssuerSettings,
    keys: Arc<KeyCache>,
}

/// A verified token. Its signature, issuer, audience and times were valid when it was verified.
#[derive(Clone, Debug, PartialEq)]
pub struct VerifiedToken {
    /// The claim `sub`: an id that the issuer never gives to another subject.
    pub subject: String,
    /// The value of the user claim; `None` if no user claim is configured or the token does not
    /// have the claim.
    pub user: Option<String>,
    /// The values of the role claim in the order of the token. Empty if no role claim is configured
    /// or the token does not have the claim.
    pub roles: Vec<String>,
    /// When the token expires, in seconds since 1970.
    pub expires_at: u64,
    /// All claims of the token.
    pub claims: Map<String, Value>,
    not_before: u64,
    keys: Arc<KeySet>,
}

impl Issuer {
    /// Creates an issuer with an HTTP client of its own. The keys are loaded when the first token
    /// is verified.
    pub fn new(settings: IssuerSettings, network: Network) -> Result<Self, SettingsError> {
        Self::with_client(settings, &DocumentClient::new(network)?)
    }

    /// Creates an issuer that loads its keys through `client`.
    pub fn with_client(
        settings: IssuerSettings,
        client: &DocumentClient,
    ) -> Result<Self, SettingsError> {
        settings.check(client.network())?;
        let fetch = Fetch::new(&settings, client);
        Ok(Self {
            keys: Arc::new(KeyCache::new(fetch)),
            settings,
        })
    }

    /// The settings of the issuer.
    pub fn settings(&self) -> &IssuerSettings {
        &self.settings
    }

    /// Why the most recent request for the keys failed; `None` if it succeeded or if no request has
    /// ended yet.
    pub fn failure(&self) -> Option<FetchError> {
        self.keys.failure()
    }

    /// Verifies a token at the time `now`. May load the keys of the issuer. The signature check is
    /// expensive, so callers should cache the result and check it with [`recheck`](Self::recheck).
    pub async fn verify(&self, token: &str, now: SystemTime) -> Result<VerifiedToken, TokenError> {
        let parsed = Token::read(token)?;
        let algorithm = SignatureAlgorithm::from_name(&parsed.header.alg)
            .filter(|algorithm| self.settings.algorithms.contains(algorithm))
            .ok_or(TokenError::Algorithm)?;
        let keys = self.keys.verify(&parsed, algorithm).await?;
        let verified = self.read_claims(parsed.claims()?, keys)?;
        self.check_times(&verified, seconds(now))?;
        Ok(verified)
    }

    /// Checks the times of a token that this issuer has verified before, without waiting for I/O.
    /// Returns `false` if the token must be verified again, because the issuer has other keys now
    /// or its keys were loaded too long ago to be used. Starts to load the keys in a task if they
    /// are no longer fresh.
    ///
    /// # Errors
    ///
    /// [`TokenError::Expired`], [`TokenError::NotYetValid`].
    pub fn recheck(&self, token: &VerifiedToken, now: SystemTime) -> Result<bool, TokenError> {
        self.check_times(token, seconds(now))?;
        Ok(self.keys.are_current(&token.keys))
    }

    pub(crate) fn accepts_audience(&self, claims: &Map<String, Value>) -> bool {
        let audience = strings(self.settings.audience_claim.find(claims));
        audience.is_some_and(|found| found.iter().any(|one| self.settings.audience.contains(one)))
    }

    /// Checks the issuer and the audience of a token whose signature is valid, and reads its other
    /// claims. Does not compare its times with the clock; see [`Self::check_times`].
    fn read_claims(
        &self,
        claims: Map<String, Value>,
        keys: Arc<KeySet>,
    ) -> Result<VerifiedToken, TokenError> {
        let settings = &self.settings;
        if claims.get("iss").and_then(Value::as_str) != Some(&settings.issuer) {
            return Err(TokenError::Issuer);
        }
        if !self.accepts_audience(&claims) {
            return Err(TokenError::Audience(settings.audience_claim.clone()));
        }
        let subject = ClaimPath::member("sub");
        let user = settings.user_claim.as_ref();
        let user = user.map(|path| name(path, &claims)).transpose()?.flatten();
        Ok(VerifiedToken {
            subject: name(&subject, &claims)?.ok_or_else(|| not_a_name(&subject))?,
            user,
            roles: self.roles(&claims)?,
            expires_at: time(&claims, "exp")?.ok_or_else(|| not_a_time("exp"))?,
            not_before: time(&claims, "nbf")?
                .max(time(&claims, "iat")?)
                .unwrap_or(0),
            claims,
            keys,
        })
    }

    fn roles(&self, claims: &Map<String, Value>) -> Result<Vec<String>, TokenError> {
        let Some(path) = &self.settings.role_claim else {
            return Ok(Vec::new());
        };
        match path.find(claims) {
            None | Some(Value::Null) => Ok(Vec::new()),
            value => strings(value)
                .filter(|roles| roles.len() <= MAX_ROLES)
                .filter(|roles| roles.iter().all(|role| is_name(role)))
                .ok_or_else(|| TokenError::Claim {
                    claim: path.to_string(),
                    expected: "a text or an array of at most 256 texts, each of 1 to 255 bytes",
                }),
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

/// Reads a time, which is a `NumericDate` and may have a fraction (RFC 7519, section 2). `None` if
/// the claim is absent.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a cast of a float saturates, so a time before 1970 becomes 0"
)]
fn time(claims: &Map<String, Value>, name: &str) -> Result<Option<u64>, TokenError> {
    let Some(value) = claims.get(name) else {
        return Ok(None);
    };
    let time = value.as_f64().filter(|time| time.abs() < LATEST);
    let time = time.ok_or_else(|| not_a_time(name))?;
    Ok(Some(time as u64))
}

fn not_a_time(name: &str) -> TokenError {
    TokenError::Claim {
        claim: name.to_owned(),
        expected: "a time in seconds since 1970, before the year 10000,",
    }
}

/// Reads a value that is a string or an array of strings; `None` for any other value.
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

/// Reads a name; `None` if the claim is absent or null.
fn name(path: &ClaimPath, claims: &Map<String, Value>) -> Result<Option<String>, TokenError> {
    let text = match path.find(claims) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(text)) => Some(text.clone()),
        // Some issuers name users by numbers. A float is refused, because several numbers can be
        // rounded to the same float.
        Some(Value::Number(number)) => (!number.is_f64()).then(|| number.to_string()),
        Some(_) => None,
    };
    text.filter(|text| is_name(text))
        .map(Some)
        .ok_or_else(|| not_a_name(path))
}

fn not_a_name(path: &ClaimPath) -> TokenError {
    TokenError::Claim {
        claim: path.to_string(),
        expected: "a text of 1 to 255 bytes without control characters, or a whole number of at most 64 bits,",
    }
}
