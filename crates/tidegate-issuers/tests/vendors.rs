//! Tests of tokens as well-known issuers make them, with the settings for these issuers.

use serde_json::{Value, json};

use crate::fixture::{IssuerServer, Signer, verify};

struct Vendor {
    name: &'static str,
    settings: Value,
    claims: Value,
    user: Option<&'static str>,
    roles: &'static [&'static str],
}

/// Issuers whose tokens name the audience and roles.
fn identity_servers() -> Vec<Vendor> {
    vec![
        Vendor {
            name: "Keycloak",
            settings: json!({"audience": ["shop-api"], "role_claim": "realm_access.roles",
                "user_claim": "preferred_username"}),
            claims: json!({"aud": ["shop-api", "account"], "azp": "shop-web", "typ": "Bearer",
                "sub": "f0a7c9ce-6d6f-4b8e-9c3a-1d1f0c7a2b11", "preferred_username": "ada",
                "realm_access": {"roles": ["offline_access", "editor"]},
                "resource_access": {"account": {"roles": ["view-profile"]}}, "scope": "openid"}),
            user: Some("ada"),
            roles: &["offline_access", "editor"],
        },
        Vendor {
            name: "Auth0",
            settings: json!({"audience": ["https://api.shop.example.com"],
                "role_claim": "[\"https://shop.example.com/roles\"]"}),
            claims: json!({"aud": ["https://api.shop.example.com", "https://t.example/userinfo"],
                "sub": "auth0|6512bd43d9caa6e02c990b0a", "azp": "client",
                "https://shop.example.com/roles": ["editor"], "scope": "openid profile"}),
            user: None,
            roles: &["editor"],
        },
        Vendor {
            name: "Entra ID",
            settings: json!({"audience": ["api://shop"], "role_claim": "roles",
                "user_claim": "oid"}),
            claims: json!({"aud": "api://shop", "oid": "00000000-0000-0000-66f3-3332eca7ea81",
                "tid": "9122040d-6c67-4c5b-b112-36a304b66dad", "ver": "2.0", "sub": "pairwise",
                "roles": ["Editor"], "scp": "access_as_user"}),
            user: Some("00000000-0000-0000-66f3-3332eca7ea81"),
            roles: &["Editor"],
        },
    ]
}

/// Issuers whose tokens have no `aud`, or the same audience for all applications.
fn platforms() -> Vec<Vendor> {
    vec![
        Vendor {
            name: "Cognito, an access token: without aud",
            settings: json!({"audience": ["1example23456789"], "audience_claim": "client_id",
                "role_claim": "cognito:groups", "user_claim": "username"}),
            claims: json!({"aud": null, "client_id": "1example23456789", "token_use": "access",
                "sub": "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee", "username": "ada",
                "cognito:groups": ["editor"], "version": 2}),
            user: Some("ada"),
            roles: &["editor"],
        },
        Vendor {
            name: "Clerk, a session token: without aud",
            settings: json!({"audience": ["https://shop.example.com"], "audience_claim": "azp",
                "role_claim": "o.rol", "default_role": "visitor"}),
            claims: json!({"aud": null, "azp": "https://shop.example.com", "sub": "user_2abc",
                "sid": "sess_2abc", "v": 2, "o": {"id": "org_2abc", "rol": "admin"}}),
            user: None,
            roles: &["admin"],
        },
        Vendor {
            name: "Firebase",
            settings: json!({"audience": ["shop-1234"], "default_role": "member"}),
            claims: json!({"aud": "shop-1234", "sub": "qZ9oX", "user_id": "qZ9oX",
                "auth_time": 1_000, "firebase": {"sign_in_provider": "password",
                "identities": {"email": ["ada@example.com"]}}}),
            user: None,
            roles: &[],
        },
        Vendor {
            name: "Supabase",
            settings: json!({"audience": ["authenticated"], "role_claim": "role"}),
            claims: json!({"aud": "authenticated", "role": "authenticated", "aal": "aal1",
                "sub": "8f14e45f-ceea-467f-a8d1-5c6b1c1d7c77", "is_anonymous": false,
                "app_metadata": {"provider": "email"}, "user_metadata": {}}),
            user: None,
            roles: &["authenticated"],
        },
    ]
}

#[tokio::test]
async fn tokens_of_well_known_issuers_give_users_and_roles() {
    for vendor in identity_servers().into_iter().chain(platforms()) {
        let signer = Signer::new("a");
        let server = IssuerServer::start(&[&signer]).await;
        let issuer = server.issuer(vendor.settings);
        let mut claims = server.claims();
        let Value::Object(more) = vendor.claims else {
            panic!("an object was expected");
        };
        claims.as_object_mut().unwrap().extend(more);
        let verified = verify(&issuer, &signer.token(&claims)).await;
        let verified = verified.unwrap_or_else(|error| panic!("{}: {error}", vendor.name));
        assert_eq!(verified.user.as_deref(), vendor.user, "{}", vendor.name);
        assert_eq!(verified.roles, vendor.roles, "{}", vendor.name);
    }
}
