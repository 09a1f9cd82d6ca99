//! The response to a successful token request.

use serde::Serialize;

use crate::json;
use tidegate_identity::Secret;

/// A token response (RFC 6749, section 5.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenResponse {
    /// The bearer token.
    pub access_token: Secret,
    /// `Bearer`; the guest grant spells it `bearer`.
    pub token_type: &'static str,
    /// The lifetime of the access token in seconds.
    pub expires_in: u64,
    /// The refresh token.
    pub refresh_token: Secret,
}

impl TokenResponse {
    /// The response body. It holds secrets: do not store or log it.
    pub fn to_json(&self) -> String {
        #[derive(Serialize)]
        struct Body<'a> {
            access_token: &'a str,
            token_type: &'a str,
            expires_in: u64,
            refresh_token: &'a str,
            scope: &'a str,
        }
        let body = Body {
            access_token: self.access_token.expose(),
            token_type: self.token_type,
            expires_in: self.expires_in,
            refresh_token: self.refresh_token.expose(),
            scope: "",
        };
        json::text(&body)
    }
}
