//! The metadata document (RFC 8414): tells standard clients what there is and where.

use serde::Serialize;

use super::Issuer;
use crate::json;

/// The paths of the endpoints below the issuer's address, each with its first slash.
#[derive(Clone, Copy, Debug)]
pub struct Endpoints<'a> {
    /// Where tokens are asked for.
    pub token: &'a str,
    /// Where tokens are revoked (RFC 7009).
    pub revocation: &'a str,
    /// Where tokens are asked about (RFC 7662).
    pub introspection: &'a str,
    /// Where the public keys are (RFC 7517).
    pub key_set: &'a str,
}

#[derive(Serialize)]
struct Metadata<'a> {
    issuer: &'a str,
    token_endpoint: String,
    jwks_uri: String,
    revocation_endpoint: String,
    introspection_endpoint: String,
    response_types_supported: [&'a str; 0],
    grant_types_supported: [&'a str; 2],
    token_endpoint_auth_methods_supported: [&'a str; 3],
    revocation_endpoint_auth_methods_supported: [&'a str; 3],
    introspection_endpoint_auth_methods_supported: [&'a str; 2],
}

impl Issuer {
    /// The metadata document as JSON text. It tells what is there, no more: the member
    /// `authorization_endpoint` is left out as long as no grant uses one (section 2).
    pub fn metadata(&self, endpoints: &Endpoints<'_>) -> String {
        let issuer = self.settings.issuer();
        let url = |path: &str| format!("{issuer}{path}");
        let any = ["none", "client_secret_basic", "client_secret_post"];
        let metadata = Metadata {
            issuer,
            token_endpoint: url(endpoints.token),
            jwks_uri: url(endpoints.key_set),
            revocation_endpoint: url(endpoints.revocation),
            introspection_endpoint: url(endpoints.introspection),
            response_types_supported: [],
            grant_types_supported: ["password", "refresh_token"],
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
