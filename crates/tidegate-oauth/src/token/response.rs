//! The response to a successful token request.

use serde::Serialize;

use crate::{Scopes, json};
use tidegate_identity::Secret;

/// A token response (RFC 6749, section 5.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenResponse {
    /// The bearer token.
    pub access_token: Secret,
    /// The token type: `bearer` for the guest grant, `Bearer` for all other grants.
    pub token_type: &'static str,
    /// The lifetime of the access token in seconds.
    pub expires_in: u64,
    /// The refresh token; `None` for the grant `client_credentials`.
    pub refresh_token: Option<Secret>,
    /// The scopes of the access token.
    pub scopes: Scopes,
    /// The ID token, if a person signed in and the scopes have `openid` (OpenID Connect Core,
    /// section 3.1.3.3).
    pub id_token: Option<Secret>,
}

impl TokenResponse {
    /// The JSON of the response body. It contains secrets: do not store or log it.
    pub fn to_json(&self) -> String {
        #[derive(Serialize)]
        struct Body<'a> {
            access_token: &'a str,
            token_type: &'a str,
            expires_in: u64,
            #[serde(skip_serializing_if = "Option::is_none")]
            refresh_token: Option<&'a str>,
            scope: String,
            #[serde(skip_serializing_if = "Option::is_none")]
            id_token: Option<&'a str>,
        }
        let body = Body {
            access_token: self.access_token.expose(),
            token_type: self.token_type,
            expires_in: self.expires_in,
            refresh_token: self.refresh_token.as_ref().map(Secret::expose),
            scope: self.scopes.to_string(),
            id_token: self.id_token.as_ref().map(Secret::expose),
        };
        json::text(&body)
    }
}
