//! Splits a token into its parts (RFC 7515, section 7.1).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::TokenError;

/// The length of the longest accepted token, in bytes. Tokens with many groups have a few
/// kilobytes.
const MAX_LENGTH: usize = 16 * 1024;

/// A token whose signature has not been verified.
#[derive(Debug)]
pub(crate) struct Token<'t> {
    pub(crate) header: TokenHeader,
    /// The header and the payload, which the signature covers.
    pub(crate) signed: &'t str,
    pub(crate) signature: Vec<u8>,
    payload: &'t str,
}

#[derive(Debug, Deserialize)]
pub(crate) struct TokenHeader {
    pub(crate) alg: String,
    pub(crate) kid: Option<String>,
    crit: Option<Value>,
}

/// The claims of a token that has not been verified. They may be used only to choose the
/// [`Issuer`](crate::Issuer) that verifies it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnverifiedToken {
    /// The claim `iss`.
    pub issuer: String,
    /// All claims of the token.
    pub claims: Map<String, Value>,
}

/// Reads the claims of a token without verifying it.
pub fn unverified(token: &str) -> Result<UnverifiedToken, TokenError> {
    let claims = Token::read(token)?.claims()?;
    match claims.get("iss") {
        Some(Value::String(issuer)) => Ok(UnverifiedToken {
            issuer: issuer.clone(),
            claims,
        }),
        _ => Err(TokenError::Claim {
            claim: "iss".to_owned(),
            expected: "a string",
        }),
    }
}

impl<'t> Token<'t> {
    pub(crate) fn read(token: &'t str) -> Result<Self, TokenError> {
        if token.len() > MAX_LENGTH {
            return Err(TokenError::TooLong {
                length: token.len(),
                most: MAX_LENGTH,
            });
        }
        let parts = "three parts with dots between them were expected";
        let (signed, signature) = token.rsplit_once('.').ok_or(TokenError::Malformed(parts))?;
        let (header, payload) = signed
            .split_once('.')
            .filter(|(_, payload)| !payload.contains('.'))
            .ok_or(TokenError::Malformed(parts))?;
        let header: TokenHeader = decode(header, "its header is no JSON object in base64url")?;
        // The token has extensions that this service does not understand (section 4.1.11).
        if header.crit.is_some() {
            return Err(TokenError::Malformed("its header has critical extensions"));
        }
        let signature = URL_SAFE_NO_PAD.decode(signature);
        Ok(Self {
            header,
            signed,
            signature: signature
                .map_err(|_| TokenError::Malformed("its signature is not in base64url"))?,
            payload,
        })
    }

    pub(crate) fn claims(&self) -> Result<Map<String, Value>, TokenError> {
        decode(
            self.payload,
            "its payload cannot be read as a JSON object in base64url",
        )
    }
}

fn decode<T: DeserializeOwned>(part: &str, expected: &'static str) -> Result<T, TokenError> {
    let bytes = URL_SAFE_NO_PAD.decode(part).ok();
    bytes
        .and_then(|bytes| serde_json::from_slice(&bytes).ok())
        .ok_or(TokenError::Malformed(expected))
}
