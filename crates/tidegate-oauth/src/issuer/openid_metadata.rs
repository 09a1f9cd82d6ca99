//! The metadata document of the issuer as an OpenID provider (OpenID Connect Discovery 1.0, section
//! 3).

use serde::Serialize;

use super::metadata::{Endpoints, Metadata};
use super::{Issuer, Prompt};
use crate::json;

/// The scopes of OpenID Connect, then the scopes that narrow a token.
const SCOPES: [&str; 9] = [
    "openid",
    "profile",
    "email",
    "offline_access",
    "read",
    "write",
    "methods",
    "sql",
    "admin",
];

const CLAIMS: [&str; 13] = [
    "iss",
    "sub",
    "aud",
    "exp",
    "iat",
    "auth_time",
    "nonce",
    "at_hash",
    "user_id",
    "name",
    "preferred_username",
    "email",
    "email_verified",
];

/// The members of the authorization server metadata, and the members that OpenID Connect adds.
#[derive(Serialize)]
struct OpenIdMetadata<'a> {
    #[serde(flatten)]
    server: Metadata<'a>,
    userinfo_endpoint: String,
    end_session_endpoint: String,
    subject_types_supported: [&'a str; 1],
    id_token_signing_alg_values_supported: [&'a str; 1],
    claims_supported: &'a [&'a str],
    prompt_values_supported: [&'a str; 4],
    claims_parameter_supported: bool,
    request_parameter_supported: bool,
    request_uri_parameter_supported: bool,
}

impl Issuer {
    /// The metadata document of the OpenID provider as JSON text. It has the members of
    /// [`metadata`](Self::metadata) with the same values, but also names the scopes of OpenID
    /// Connect.
    pub fn openid_metadata(&self, endpoints: &Endpoints<'_>) -> String {
        let issuer = self.settings.issuer();
        json::text(&OpenIdMetadata {
            server: self.server_metadata(endpoints, &SCOPES),
            userinfo_endpoint: format!("{issuer}{}", endpoints.user_info),
            end_session_endpoint: format!("{issuer}{}", endpoints.end_session),
            subject_types_supported: ["public"],
            id_token_signing_alg_values_supported: ["ES256"],
            claims_supported: &CLAIMS,
            prompt_values_supported: Prompt::names(),
            claims_parameter_supported: false,
            request_parameter_supported: false,
            request_uri_parameter_supported: false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::SCOPES;
    use crate::Scopes;

    #[test]
    fn every_scope_of_the_document_can_be_asked_for() {
        let all = Scopes::parse(&SCOPES.join(" ")).unwrap();
        assert_eq!(all.names().count(), SCOPES.len());
        assert!(SCOPES.ends_with(Scopes::narrowing()));
    }
}
