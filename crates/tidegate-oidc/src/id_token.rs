//! Checks the nonce and the client of an ID token (OpenID Connect Core 1.0, section 3.1.3.7).
//! `tidegate-issuers` has already checked signature, issuer, audience and times.

use serde::Deserialize;
use serde_json::Value;
use tidegate_identity::ExternalIdentity;
use tidegate_issuers::VerifiedToken;

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum IdTokenError {
    #[error("the ID token is malformed")]
    Malformed,
    #[error("the ID token is for another client")]
    Audience,
    #[error("the ID token has another nonce")]
    Nonce,
}

#[derive(Deserialize)]
struct IdTokenClaims {
    iss: String,
    aud: Audience,
    azp: Option<String>,
    nonce: Option<String>,
    email: Option<String>,
    email_verified: Option<Flag>,
    preferred_username: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Audience {
    One(String),
    Many(Vec<String>),
}

/// A boolean claim, which some providers send as a string.
#[derive(Deserialize)]
#[serde(untagged)]
enum Flag {
    Bool(bool),
    Text(String),
}

/// The identity in a verified ID token. The token must be for the client `client_id` and have this
/// nonce.
pub(crate) fn identity(
    token: VerifiedToken,
    client_id: &str,
    nonce: &str,
) -> Result<ExternalIdentity, IdTokenError> {
    let claims = Value::Object(token.claims);
    let claims = IdTokenClaims::deserialize(claims).map_err(|_| IdTokenError::Malformed)?;
    if !claims.are_for(client_id) {
        return Err(IdTokenError::Audience);
    }
    if claims.nonce.as_deref() != Some(nonce) {
        return Err(IdTokenError::Nonce);
    }
    let is_verified = match &claims.email_verified {
        Some(Flag::Bool(verified)) => *verified,
        Some(Flag::Text(text)) => text == "true",
        None => false,
    };
    Ok(ExternalIdentity {
        issuer: claims.iss,
        subject: token.subject,
        verified_email: claims.email.filter(|_| is_verified),
        name: claims.preferred_username,
    })
}

impl IdTokenClaims {
    /// Whether the token was issued for this client. If the token names an authorized party
    /// (`azp`), it must be the client. A token with several audiences must name one.
    fn are_for(&self, client_id: &str) -> bool {
        let is_audience = match &self.aud {
            Audience::One(one) => one == client_id,
            Audience::Many(many) => {
                let is_sole = many.len() == 1 || self.azp.is_some();
                is_sole && many.iter().any(|one| one == client_id)
            }
        };
        is_audience && self.azp.as_deref().is_none_or(|azp| azp == client_id)
    }
}
