//! Errors: of settings (the owner's), of tokens (the caller's), of requests to the issuer.

use crate::ClaimPath;

/// Why settings of an issuer are rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// The issuer or the address of its keys is no URL, or not an encrypted one.
    #[error(
        "`{member}` is {url}: an https URL without user, query and fragment was expected (http only for this machine, if private addresses are allowed)"
    )]
    Url {
        /// `issuer` or `jwks_url`.
        member: &'static str,
        /// The value.
        url: String,
    },
    /// The URL names a private address.
    #[error("`{member}` is {url}: requests to private addresses are not allowed")]
    PrivateAddress {
        /// `issuer` or `jwks_url`.
        member: &'static str,
        /// The value.
        url: String,
    },
    /// A list is empty or too long.
    #[error("`{member}` has {found} elements: 1 to {most} were expected")]
    Count {
        /// `audience` or `algorithms`.
        member: &'static str,
        /// How many it has.
        found: usize,
        /// The limit.
        most: usize,
    },
    /// The tolerated clock skew is too large.
    #[error("`clock_skew` is {found} seconds: at most {most} were expected")]
    ClockSkew {
        /// The value.
        found: u64,
        /// The limit.
        most: u64,
    },
    /// The TLS library cannot be set up.
    #[error("the HTTP client cannot be made: {0}")]
    Client(String),
}

/// Why a token is rejected. No variant carries a part of the token besides names of claims.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// Longer than any real token.
    #[error("the token has {length} bytes, at most {most} are allowed")]
    TooLong {
        /// Its length.
        length: usize,
        /// The limit.
        most: usize,
    },
    /// Not a signed JSON Web Token.
    #[error("the token is malformed: {0}")]
    Malformed(&'static str),
    /// The header names an algorithm that the issuer may not use, such as `none` or `HS256`.
    #[error("the token is signed with an algorithm that its issuer may not use")]
    Algorithm,
    /// The issuer has no key with the `kid` of the token.
    #[error("the issuer has no key with the id that the token names")]
    UnknownKey,
    /// The signature does not verify.
    #[error("the signature of the token is not valid")]
    Signature,
    /// Another `iss`.
    #[error("the token is of another issuer")]
    Issuer,
    /// None of the expected audiences.
    #[error("the token is for another audience: none of the configured ones is in `{0}`")]
    Audience(ClaimPath),
    /// `exp` has passed.
    #[error("the token has expired")]
    Expired,
    /// `nbf` or `iat` is in the future.
    #[error("the token is not valid yet")]
    NotYetValid,
    /// A claim is missing, or not of the expected type.
    #[error("the claim `{claim}` of the token is missing or unusable: {expected} was expected")]
    Claim {
        /// Where it was looked for.
        claim: String,
        /// What was expected.
        expected: &'static str,
    },
    /// The keys of the issuer cannot be loaded. The client may retry.
    #[error("the keys of the issuer cannot be loaded: {0}")]
    Unavailable(FetchError),
}

/// Why a document of the issuer cannot be loaded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    /// The address is private.
    #[error("{0} is a private address")]
    PrivateAddress(String),
    /// The connection failed, timed out, or the response is no success.
    #[error("{url}: {reason}")]
    Request {
        /// The document.
        url: String,
        /// Why.
        reason: String,
    },
    /// More bytes than any real document has.
    #[error("{url}: the response has more than {most} bytes")]
    TooLarge {
        /// The document.
        url: String,
        /// The limit.
        most: usize,
    },
    /// The document is not what was expected.
    #[error("{url}: {expected} was expected")]
    Document {
        /// The document.
        url: String,
        /// What was expected.
        expected: &'static str,
    },
}
