//! Splits a token into its parts (RFC 7515, section 7.1).

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
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
        let malformed = TokenError::Malformed("its header is no JSON object in base64url");
        let header = Members::decode(header).ok_or_else(|| malformed.clone())?;
        let repeated = TokenError::Malformed("its header has a duplicate member");
        let header = Value::Object(header.distinct().ok_or(repeated)?);
        let header = TokenHeader::deserialize(header).map_err(|_| malformed)?;
        // A token with critical extensions must be refused, because this service understands none
        // (section 4.1.11).
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
        let malformed = "its payload cannot be read as a JSON object in base64url";
        let claims = Members::decode(self.payload).ok_or(TokenError::Malformed(malformed))?;
        let repeated = TokenError::Malformed("its payload has a duplicate member");
        claims.distinct().ok_or(repeated)
    }
}

/// The members of a JSON object at its top level.
struct Members {
    members: Map<String, Value>,
    has_duplicate: bool,
}

impl Members {
    fn decode(part: &str) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(part).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    /// The members; `None` if two members have the same name. Parsers differ in which of the two
    /// they use, so another service could read other claims from the same token (RFC 7519, section
    /// 4).
    fn distinct(self) -> Option<Map<String, Value>> {
        (!self.has_duplicate).then_some(self.members)
    }
}

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MembersVisitor)
    }
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Members;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Members, A::Error> {
        let mut members = Map::new();
        let mut has_duplicate = false;
        while let Some((name, value)) = object.next_entry::<String, Value>()? {
            has_duplicate |= members.insert(name, value).is_some();
        }
        Ok(Members {
            members,
            has_duplicate,
        })
    }
}
