//! Tokens: issued by the issuer, verified on every request.

mod access;
mod cache;
mod id_token;
mod personal;
mod refresh;
mod response;

pub use access::{Claims, MemberClaims};
pub use response::TokenResponse;

pub(crate) use access::{AccessToken, decode as decode_access, encode as encode_access};
pub(crate) use cache::{Denylist, TokenCache, TokenHash};
pub(crate) use id_token::{IdToken, IdTokenHint, UserClaims, subject};
pub(crate) use personal::PersonalTokens;
pub(crate) use refresh::{RefreshClaims, RefreshTokens};

use crate::Scopes;

/// The maximum length of a token in bytes. Longer tokens are refused without being parsed.
pub(crate) const MAX_LENGTH: usize = 8 * 1024;

/// The values from which the tokens of a session are issued.
pub(crate) struct Issue<'a> {
    /// The number of the refresh token.
    pub(crate) number: u64,
    /// The scopes of the access token.
    pub(crate) scopes: Scopes,
    /// The `nonce` of the ID token.
    pub(crate) nonce: Option<&'a str>,
}

/// The three segments of a compact JWS (RFC 7515, section 7.1).
pub(crate) struct Segments<'a> {
    pub(crate) header: &'a str,
    pub(crate) payload: &'a str,
    pub(crate) signature: &'a str,
    /// The header and the payload with the dot between them. The signature covers this text.
    pub(crate) signed: &'a str,
}

impl<'a> Segments<'a> {
    /// Splits a token at its two dots; `None` if it does not have exactly two dots.
    pub(crate) fn split(token: &'a str) -> Option<Self> {
        let (signed, signature) = token.rsplit_once('.')?;
        let (header, payload) = signed.split_once('.')?;
        (!payload.contains('.')).then_some(Self {
            header,
            payload,
            signature,
            signed,
        })
    }
}
