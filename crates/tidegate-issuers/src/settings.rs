//! What a tenant says of an issuer.

use reqwest::Url;
use serde::Deserialize;

use crate::address::literal;
use crate::{ClaimPath, Network, SettingsError};

/// The most elements of `audience` and `algorithms`.
const MOST_ELEMENTS: usize = 20;
/// The largest tolerated clock skew, in seconds.
const MOST_CLOCK_SKEW: u64 = 300;

/// An issuer of tokens that a tenant accepts.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IssuerSettings {
    /// The claim `iss` of its tokens, to the letter, and where its discovery document is.
    pub issuer: String,
    /// The address of its keys; otherwise the discovery document names it (OpenID Connect Discovery
    /// 1.0, section 4, or RFC 8414).
    #[serde(default)]
    pub jwks_url: Option<String>,
    /// The accepted audiences: a token has to name one of them.
    pub audience: Vec<String>,
    /// Where a token names its audience. `aud` for most issuers, `client_id` for access tokens of
    /// Cognito, `azp` for Clerk.
    #[serde(default = "aud")]
    pub audience_claim: ClaimPath,
    /// The accepted signature algorithms; RS256, ES256 and `EdDSA` if not given.
    #[serde(default = "default_algorithms")]
    pub algorithms: Vec<SignatureAlgorithm>,
    /// Where a token names the user; `sub` if not given.
    #[serde(default = "sub")]
    pub user_claim: ClaimPath,
    /// Where a token names one or more roles, as a string or an array of strings.
    #[serde(default)]
    pub role_claim: Option<ClaimPath>,
    /// The role of tokens that do not have `role_claim`; without a default they are rejected.
    #[serde(default)]
    pub default_role: Option<String>,
    /// The tolerated difference of clocks, in seconds; 60 if not given.
    #[serde(default = "default_clock_skew")]
    pub clock_skew: u64,
}

/// A signature algorithm with public keys (RFC 7518, section 3.1; RFC 8037). Algorithms with shared
/// secrets cannot be named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[expect(missing_docs, reason = "the names are those of the RFC")]
pub enum SignatureAlgorithm {
    RS256,
    RS384,
    RS512,
    PS256,
    PS384,
    PS512,
    ES256,
    ES384,
    #[serde(alias = "Ed25519")]
    EdDSA,
}

impl SignatureAlgorithm {
    /// The algorithm that the header of a token names.
    pub(crate) fn of_header(name: &str) -> Option<Self> {
        let name = serde::de::value::StrDeserializer::<serde::de::value::Error>::new(name);
        Self::deserialize(name).ok()
    }
}

fn aud() -> ClaimPath {
    ClaimPath::member("aud")
}

fn sub() -> ClaimPath {
    ClaimPath::member("sub")
}

fn default_algorithms() -> Vec<SignatureAlgorithm> {
    use SignatureAlgorithm::{ES256, EdDSA, RS256};
    vec![RS256, ES256, EdDSA]
}

fn default_clock_skew() -> u64 {
    60
}

impl IssuerSettings {
    /// Checks the settings before anything is requested.
    pub(crate) fn check(&self, network: Network) -> Result<(), SettingsError> {
        check_url("issuer", &self.issuer, network)?;
        if let Some(url) = &self.jwks_url {
            check_url("jwks_url", url, network)?;
        }
        check_count("audience", self.audience.len())?;
        check_count("algorithms", self.algorithms.len())?;
        if self.clock_skew > MOST_CLOCK_SKEW {
            return Err(SettingsError::ClockSkew {
                found: self.clock_skew,
                most: MOST_CLOCK_SKEW,
            });
        }
        Ok(())
    }
}

fn check_count(member: &'static str, found: usize) -> Result<(), SettingsError> {
    if (1..=MOST_ELEMENTS).contains(&found) {
        return Ok(());
    }
    Err(SettingsError::Count {
        member,
        found,
        most: MOST_ELEMENTS,
    })
}

/// Checks an address that is requested. Names are checked when they are resolved.
pub(crate) fn check_url(
    member: &'static str,
    text: &str,
    network: Network,
) -> Result<Url, SettingsError> {
    let wrong = || SettingsError::Url {
        member,
        url: text.to_owned(),
    };
    let url = Url::parse(text).map_err(|_| wrong())?;
    let host = url.host_str().ok_or_else(wrong)?;
    let address = literal(host);
    let is_this_machine = host == "localhost" || address.is_some_and(|ip| ip.is_loopback());
    let is_encrypted = match url.scheme() {
        "https" => true,
        "http" => network == Network::AllowPrivate && is_this_machine,
        _ => false,
    };
    let is_plain =
        url.username().is_empty() && url.password().is_none() && url.fragment().is_none();
    if !is_encrypted || !is_plain || (member == "issuer" && url.query().is_some()) {
        return Err(wrong());
    }
    if address.is_some_and(|address| !network.allows(address)) {
        return Err(SettingsError::PrivateAddress {
            member,
            url: text.to_owned(),
        });
    }
    Ok(url)
}
