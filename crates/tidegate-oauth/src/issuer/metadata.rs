//! The authorization server metadata document (RFC 8414).

use serde::Serialize;

use super::Issuer;
use crate::{Error, GrantKind, Result, Scopes, json};

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
    /// The userinfo endpoint (OpenID Connect Core 1.0, section 5.3).
    pub user_info: &'a str,
    /// The page that ends browser sessions (OpenID Connect RP-Initiated Logout 1.0, section 2.1).
    pub end_session: &'a str,
}

#[derive(Serialize)]
pub(super) struct Metadata<'a> {
    issuer: &'a str,
    authorization_endpoint: String,
    token_endpoint: String,
    device_authorization_endpoint: String,
    jwks_uri: String,
    revocation_endpoint: String,
    introspection_endpoint: String,
    response_types_supported: [&'a str; 1],
    response_modes_supported: [&'a str; 1],
    grant_types_supported: [&'a str; 6],
    scopes_supported: &'a [&'a str],
    code_challenge_methods_supported: [&'a str; 1],
    authorization_response_iss_parameter_supported: bool,
    token_endpoint_auth_methods_supported: [&'a str; 3],
    revocation_endpoint_auth_methods_supported: [&'a str; 3],
    introspection_endpoint_auth_methods_supported: [&'a str; 2],
}

#[derive(Serialize)]
struct ResourceMetadata<'a> {
    resource: &'a str,
    authorization_servers: [&'a str; 1],
    jwks_uri: String,
    scopes_supported: &'a [&'a str],
    bearer_methods_supported: [&'a str; 1],
    resource_name: &'a str,
}

impl Issuer {
    /// The metadata of this service as a protected resource (RFC 9728), as JSON text. The service
    /// is its own authorization server.
    pub fn resource_metadata(&self, endpoints: &Endpoints<'_>) -> String {
        let issuer = self.settings.issuer();
        json::text(&ResourceMetadata {
            resource: issuer,
            authorization_servers: [issuer],
            jwks_uri: format!("{issuer}{}", endpoints.key_set),
            scopes_supported: Scopes::narrowing(),
            bearer_methods_supported: ["header"],
            resource_name: "Tidegate",
        })
    }

    /// Checks that `resource` is this service: the issuer's URL, as in
    /// [`resource_metadata`](Self::resource_metadata), with or without a slash at the end. The
    /// service issues tokens for no other resource, so all tokens have the issuer's URL as `aud`,
    /// even if the request has no `resource`.
    ///
    /// Errors: [`Error::InvalidTarget`] (RFC 8707, section 2).
    pub(crate) fn check_resource(&self, resource: Option<&str>) -> Result<()> {
        let issuer = self.settings.issuer();
        let rest = resource.map_or(Some(""), |resource| resource.strip_prefix(issuer));
        match rest {
            Some("" | "/") => Ok(()),
            _ => Err(Error::InvalidTarget),
        }
    }

    /// The metadata document as JSON text. It lists only features that are implemented.
    pub fn metadata(&self, endpoints: &Endpoints<'_>) -> String {
        json::text(&self.server_metadata(endpoints, Scopes::narrowing()))
    }

    /// The members of the metadata document. `scopes` are the names of the scopes that the document
    /// lists.
    pub(super) fn server_metadata<'a>(
        &'a self,
        endpoints: &Endpoints<'_>,
        scopes: &'a [&'a str],
    ) -> Metadata<'a> {
        let issuer = self.settings.issuer();
        let url = |path: &str| format!("{issuer}{path}");
        let any = ["none", "client_secret_basic", "client_secret_post"];
        Metadata {
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
                "client_credentials",
                GrantKind::DEVICE_URN,
                "device_code",
            ],
            scopes_supported: scopes,
            code_challenge_methods_supported: ["S256"],
            authorization_response_iss_parameter_supported: true,
            token_endpoint_auth_methods_supported: any,
            revocation_endpoint_auth_methods_supported: any,
            introspection_endpoint_auth_methods_supported: [
                "client_secret_basic",
                "client_secret_post",
            ],
        }
    }
}
