//! The authorization server metadata document (RFC 8414).

use serde::Serialize;

use super::Issuer;
use crate::{GrantKind, json};

/// The paths of the endpoints below the issuer's URL, each with a leading slash.
#[derive(Clone, Copy, Debug)]
pub struct Endpoints<'a> {
    /// The token endpoint.
    pub token: &'a str,
    /// The authorization endpoint.
    pub authorization: &'a str,
    /// The device authorization endpoint (RFC 8628).
    pub device_authorization: &'a str,
    /// The revocation endpoint (RFC 7009).
    pub revocation: &'a str,
    /// The introspection endpoint (RFC 7662).
    pub introspection: &'a str,
    /// The JWK set (RFC 7517).
    pub key_set: &'a str,
}

#[derive(Serialize)]
struct Metadata<'a> {
    issuer: &'a str,
    authorization_endpoint: String,
    token_endpoint: String,
    device_authorization_endpoint: String,
    jwks_uri: String,
    revocation_endpoint: String,
    introspection_endpoint: String,
    response_types_supported: [&'a str; 1],
    response_modes_supported: [&'a str; 1],
    grant_types_supported: [&'a str; 5],
    code_challenge_methods_supported: [&'a str; 1],
    authorization_response_iss_parameter_supported: bool,
    token_endpoint_auth_methods_supported: [&'a str; 3],
    revocation_endpoint_auth_methods_supported: [&'a str; 3],
    introspection_endpoint_auth_methods_supported: [&'a str; 2],
}

impl Issuer {
    /// The metadata document as JSON text. It lists implemented features only.
    pub fn metadata(&self, endpoints: &Endpoints<'_>) -> String {
        let issuer = self.settings.issuer();
        let url = |path: &str| format!("{issuer}{path}");
        let any = ["none", "client_secret_basic", "client_secret_post"];
        let metadata = Metadata {
            issuer,
            authorization_endpoint: url(endpoints.authorization),
            token_endpoint: url(endpoints.token),
            device_authorization_endpoint: url(endpoints.device_authorization),
            jwks_uri: url(endpoints.key_set),
            revocation_endpoint: url(endpoints.revocation),
            introspection_endpoint: url(endpoints.introspection),
            response_types_supported: ["code"],
            response_modes_supported: ["query"],
            grant_types_supported: [
                "authorization_code",
                "refresh_token",
                "password",
                GrantKind::DEVICE_URN,
                "device_code",
            ],
            code_challenge_methods_supported: ["S256"],
            authorization_response_iss_parameter_supported: true,
            token_endpoint_auth_methods_supported: any,
            revocation_endpoint_auth_methods_supported: any,
            introspection_endpoint_auth_methods_supported: [
                "client_secret_basic",
                "client_secret_post",
            ],
        };
        json::text(&metadata)
    }
}
