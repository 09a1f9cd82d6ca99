//! Errors of settings, of tokens, and of requests to an issuer. The owner can correct settings, and
//! the caller can correct a token.

use crate::ClaimPath;

/// The reason why the settings of an issuer are rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// The issuer's URL or the URL of its keys does not use https, or has a user or a fragment. A
    /// query in the issuer's URL is invalid too.
    #[error(
        "`{member}` is {url}: an https URL without user, query and fragment was expected (http only for this machine, if private addresses are allowed)"
    )]
    Url {
        /// The name of the setting: `issuer` or `jwks_url`.
        member: &'static str,
        /// The value of the setting.
        url: String,
    },
    /// The host of a URL is a private address.
    #[error("`{member}` is {url}: requests to private addresses are not allowed")]
    PrivateAddress {
        /// The name of the setting: `issuer` or `jwks_url`.
        member: &'static str,
        /// The value of the setting.
        url: String,
    },
    /// A list in the settings is empty or too long.
    #[error("`{member}` has {found} elements: 1 to {most} were expected")]
    Count {
        /// The name of the setting: `audience`, `algorithms` or `claims`.
        member: &'static str,
        /// The number of elements in the setting.
        found: usize,
        /// The largest number that is allowed.
        most: usize,
    },
    /// One of the accepted audiences is empty. It is refused because it would accept tokens with an
    /// empty `aud`.
    #[error("`audience[{index}]`: an audience is empty")]
    EmptyAudience {
        /// The index in `audience`.
        index: usize,
    },
    /// A path in `claims` leads to an element of an array.
    #[error("`claims[{index}]`: {path} has an index: the path of the whole array was expected")]
    IndexedClaim {
        /// The index in `claims`.
        index: usize,
        /// The path of the claim.
        path: ClaimPath,
    },
    /// The tolerated clock skew is too large.
    #[error("`clock_skew` is {found} seconds: at most {most} were expected")]
    ClockSkew {
        /// The clock skew in the settings, in seconds.
        found: u64,
        /// The largest clock skew that is allowed, in seconds.
        most: u64,
    },
    /// The HTTP client cannot be created, because the TLS library cannot be set up.
    #[error("the HTTP client cannot be made: {0}")]
    Client(String),
}

/// The reason why a token is rejected. No variant contains a part of the token, except the names of
/// claims.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// The token is longer than any real token.
    #[error("the token has {length} bytes, at most {most} are allowed")]
    TooLong {
        /// The length of the token in bytes.
        length: usize,
        /// The largest length that is accepted.
        most: usize,
    },
    /// The text is not a signed JSON Web Token.
    #[error("the token is malformed: {0}")]
    Malformed(&'static str),
    /// The header names an algorithm that the issuer may not use, such as `none` or `HS256`.
    #[error("the token is signed with an algorithm that its issuer may not use")]
    Algorithm,
    /// The issuer has no key with the `kid` of the token.
    #[error("the issuer has no key with the id that the token names")]
    UnknownKey,
    /// The signature is invalid.
    #[error("the signature of the token is not valid")]
    Signature,
    /// The claim `iss` names another issuer.
    #[error("the token is of another issuer")]
    Issuer,
    /// The claim at this path names none of the expected audiences.
    #[error("the token is for another audience: none of the configured ones is in `{0}`")]
    Audience(ClaimPath),
    /// The time in `exp` has passed.
    #[error("the token has expired")]
    Expired,
    /// The time in `nbf` or `iat` is in the future.
    #[error("the token is not valid yet")]
    NotYetValid,
    /// A claim is missing, or its value is not of the expected type.
    #[error("the claim `{claim}` of the token is missing or unusable: {expected} was expected")]
    Claim {
        /// The path of the claim.
        claim: String,
        /// The type that was expected.
        expected: &'static str,
    },
    /// The keys of the issuer cannot be loaded now. A later attempt may succeed.
    #[error("the keys of the issuer cannot be loaded: {0}")]
    Unavailable(FetchError),
}

impl FetchError {
    /// The kind of failure, without the URL and the cause. These could reveal the network of the
    /// service to the owner of a tenant.
    pub fn kind(&self) -> String {
        match self {
            Self::PrivateAddress(_) | Self::Request { .. } => {
                "the request for the discovery document or the keys was refused or failed"
                    .to_owned()
            }
            Self::TooLarge { most, .. } => {
                format!("the discovery document or the key set has more than {most} bytes")
            }
            Self::Document { expected, .. } => {
                format!("the response is not as expected: {expected} was expected")
            }
        }
    }
}

/// The reason why a document of the issuer cannot be loaded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    /// The address of the document is private.
    #[error("{0} is a private address")]
    PrivateAddress(String),
    /// The connection failed, the request timed out, or the response was not successful.
    #[error("{url}: {reason}")]
    Request {
        /// The URL of the document.
        url: String,
        /// The cause of the failure.
        reason: String,
    },
    /// The document is larger than any real key set or discovery document.
    #[error("{url}: the response has more than {most} bytes")]
    TooLarge {
        /// The URL of the document.
        url: String,
        /// The largest size that is accepted, in bytes.
        most: usize,
    },
    /// The document does not have the expected content.
    #[error("{url}: {expected} was expected")]
    Document {
        /// The URL of the document.
        url: String,
        /// The content that was expected.
        expected: &'static str,
    },
}
