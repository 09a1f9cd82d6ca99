//! Tests of the metadata document (RFC 8414).

use serde_json::Value;
use tidegate_oauth::{Endpoints, Settings};

use crate::fixture::{Fixture, ISSUER};

#[tokio::test]
async fn the_document_lists_what_is_implemented() {
    let api = Fixture::start().await;
    let document = api.issuer.metadata(&Endpoints {
        authorization: "/auth",
        token: "/api/v4/oauth",
        device_authorization: "/api/v4/oauth/device",
        revocation: "/api/v4/oauth/revoke",
        introspection: "/api/v4/oauth/introspect",
        key_set: "/.well-known/jwks.json",
        user_info: "/api/v4/oauth/userinfo",
        end_session: "/signout",
    });
    let document: Value = serde_json::from_str(&document).unwrap();
    assert_eq!(document["issuer"], ISSUER);
    assert_eq!(
        document["token_endpoint"],
        "https://id.example/api/v4/oauth"
    );
    assert_eq!(
        document["jwks_uri"],
        "https://id.example/.well-known/jwks.json"
    );
    assert_eq!(
        document["grant_types_supported"],
        serde_json::json!([
            "authorization_code",
            "refresh_token",
            "password",
            "client_credentials",
            "urn:ietf:params:oauth:grant-type:device_code",
            "device_code"
        ])
    );
    for (name, value) in [
        ("response_types_supported", serde_json::json!(["code"])),
        ("response_modes_supported", serde_json::json!(["query"])),
        (
            "code_challenge_methods_supported",
            serde_json::json!(["S256"]),
        ),
        (
            "authorization_response_iss_parameter_supported",
            true.into(),
        ),
        ("authorization_endpoint", "https://id.example/auth".into()),
        (
            "device_authorization_endpoint",
            "https://id.example/api/v4/oauth/device".into(),
        ),
    ] {
        assert_eq!(document[name], value, "{name}");
    }
}

#[test]
fn an_issuer_is_an_address() {
    for good in [
        "https://id.example",
        "http://127.0.0.1:8080/",
        "https://example.org/tenants",
    ] {
        let settings = Settings::new(good).unwrap();
        assert!(!settings.issuer().ends_with('/'));
    }
    for bad in [
        "",
        "id.example",
        "ftp://x",
        "https://",
        "https:///x",
        "https://a?b",
        "http://a#b",
    ] {
        let error = Settings::new(bad).unwrap_err();
        assert_eq!(
            error.to_string(),
            "malformed issuer, expected an http or https address"
        );
    }
}
