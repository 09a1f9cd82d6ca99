//! The settings with which a tenant describes an issuer.

use reqwest::Url;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::address::literal;
use crate::{ClaimPath, Network, SettingsError};

/// The largest number of elements in `audience` and in `algorithms`.
const MAX_ELEMENTS: usize = 20;
/// The largest number of elements in `claims`.
const MAX_CLAIMS: usize = 100;
/// The largest clock skew that is tolerated, in seconds.
const MAX_CLOCK_SKEW: u64 = 300;

/// The settings of an issuer whose tokens a tenant accepts.
///
/// Nodes of several releases read the same stored settings, so members that this release does not
/// know are stored unchanged and have no effect. If a later release adds a setting that restricts
/// the accepted tokens, the setting must replace a required member. Older nodes then refuse the
/// issuer, because the required member is missing. Otherwise they would ignore the restriction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IssuerSettings {
    /// The issuer's URL. Tokens must have exactly this text as the claim `iss`. The URL of the
    /// discovery document is derived from it.
    pub issuer: String,
    /// The URL of the issuer's keys. If absent, the discovery document names it (OpenID Connect
    /// Discovery 1.0, section 4, or RFC 8414).
    #[serde(default)]
    pub jwks_url: Option<String>,
    /// The accepted audiences. A token must name one of them.
    pub audience: Vec<String>,
    /// The path of the claim that names the audience. It is `aud` for most issuers, `client_id` for
    /// access tokens of Cognito, and `azp` for Clerk.
    #[serde(default = "aud")]
    pub audience_claim: ClaimPath,
    /// The accepted signature algorithms. The default is RS256, ES256 and `EdDSA`.
    #[serde(default = "default_algorithms")]
    pub algorithms: Vec<SignatureAlgorithm>,
    /// The path of the claim that names a user. If absent, tokens name no users.
    #[serde(default)]
    pub user_claim: Option<ClaimPath>,
    /// The path of the claim that names one or more roles, as a string or an array of strings.
    #[serde(default)]
    pub role_claim: Option<ClaimPath>,
    /// The role for tokens that name no existing user and no existing role.
    #[serde(default)]
    pub default_role: Option<String>,
    /// Whether a person in a group is recorded as a member of the tenant at the first request.
    // This setting is stored only if it is true. The first releases refuse an issuer whose settings
    // have a member that they do not know.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub create_members: bool,
    /// The paths of the claims that policies can read for a person in a group; `None` for all
    /// claims. The paths must not contain indexes. Claims that are not listed do not count for the
    /// size limit of a person's claims.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claims: Option<Vec<ClaimPath>>,
    /// The clock skew that is tolerated, in seconds. The default is 60.
    #[serde(default = "default_clock_skew")]
    pub clock_skew: u64,
    /// The members that this release does not know, because a later release stored them.
    #[serde(flatten)]
    pub unknown: Map<String, Value>,
}

/// A signature algorithm with public keys (RFC 7518, section 3.1; RFC 8037). Algorithms with shared
/// secrets are not supported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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

impl IssuerSettings {
    /// The claims of a token that policies can read.
    pub fn policy_claims(&self, claims: &Map<String, Value>) -> Map<String, Value> {
        let Some(paths) = &self.claims else {
            return claims.clone();
        };
        let mut listed = Map::new();
        for path in paths {
            path.copy(claims, &mut listed);
        }
        listed
    }

    /// The settings of an issuer with this URL and these audiences; all other members have their
    /// defaults.
    pub fn new(issuer: String, audience: Vec<String>) -> Self {
        Self {
            issuer,
            jwks_url: None,
            audience,
            audience_claim: aud(),
            algorithms: default_algorithms(),
            user_claim: None,
            role_claim: None,
            default_role: None,
            create_members: false,
            claims: None,
            clock_skew: default_clock_skew(),
            unknown: Map::new(),
        }
    }

    /// The settings that decide which tokens are accepted.
    pub(crate) fn accepted(&self) -> (&str, &ClaimPath, &[String]) {
        (&self.issuer, &self.audience_claim, &self.audience)
    }

    /// Whether both settings have the same issuer, the same audience claim and an audience in
    /// common. If so, both settings accept a token for the common audience. The function does not
    /// detect every overlap: both settings may accept a token for several audiences although the
    /// settings have no audience in common.
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        self.issuer == other.issuer
            && self.audience_claim == other.audience_claim
            && self.audience.iter().any(|one| other.audience.contains(one))
    }

    /// Checks the settings. No request is sent.
    pub fn check(&self, network: Network) -> Result<(), SettingsError> {
        check_url("issuer", &self.issuer, network)?;
        if let Some(url) = &self.jwks_url {
            check_url("jwks_url", url, network)?;
        }
        check_count("audience", self.audience.len(), MAX_ELEMENTS)?;
        if let Some(index) = self.audience.iter().position(String::is_empty) {
            return Err(SettingsError::EmptyAudience { index });
        }
        check_count("algorithms", self.algorithms.len(), MAX_ELEMENTS)?;
        if let Some(claims) = &self.claims {
            check_count("claims", claims.len(), MAX_CLAIMS)?;
            if let Some(index) = claims.iter().position(ClaimPath::has_index) {
                let path = claims[index].clone();
                return Err(SettingsError::IndexedClaim { index, path });
            }
        }
        if self.clock_skew > MAX_CLOCK_SKEW {
            return Err(SettingsError::ClockSkew {
                found: self.clock_skew,
                most: MAX_CLOCK_SKEW,
            });
        }
        Ok(())
    }
}

impl SignatureAlgorithm {
    /// The algorithm that has this name in the header of a token; `None` if it is not supported.
    pub fn from_name(name: &str) -> Option<Self> {
        let name = serde::de::value::StrDeserializer::<serde::de::value::Error>::new(name);
        Self::deserialize(name).ok()
    }
}

fn aud() -> ClaimPath {
    ClaimPath::member("aud")
}

fn default_algorithms() -> Vec<SignatureAlgorithm> {
    use SignatureAlgorithm::{ES256, EdDSA, RS256};
    vec![RS256, ES256, EdDSA]
}

fn default_clock_skew() -> u64 {
    60
}

fn check_count(member: &'static str, found: usize, most: usize) -> Result<(), SettingsError> {
    if (1..=most).contains(&found) {
        return Ok(());
    }
    Err(SettingsError::Count {
        member,
        found,
        most,
    })
}

/// Checks a URL to which requests are sent. If its host is a name, the addresses of the host are
/// checked later, when the name is resolved.
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
