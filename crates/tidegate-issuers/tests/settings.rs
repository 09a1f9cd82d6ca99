//! Tests of the settings of issuers.

use serde_json::{Value, json};
use tidegate_issuers::{Issuer, IssuerSettings, Network, SettingsError};

use crate::fixture::read;

fn with(member: &str, value: Value) -> Value {
    let mut settings = json!({"issuer": "https://id.example.com", "audience": ["api"]});
    settings[member] = value;
    settings
}

fn rejected(settings: Value) -> SettingsError {
    Issuer::new(read(settings), Network::PublicOnly).unwrap_err()
}

#[test]
fn addresses_must_be_encrypted_and_public() {
    for url in [
        "http://id.example.com",
        "ftp://id.example.com",
        "id.example.com",
        "https://user@id.example.com",
        "https://id.example.com/#a",
        "http://127.0.0.1:8080",
        "file:///etc/passwd",
    ] {
        for member in ["issuer", "jwks_url"] {
            let error = rejected(with(member, json!(url)));
            assert!(matches!(error, SettingsError::Url { member: found, .. } if found == member));
        }
    }
    for url in [
        "https://10.0.0.1",
        "https://[::1]/",
        "https://169.254.169.254/x",
    ] {
        let error = rejected(with("jwks_url", json!(url)));
        assert!(
            matches!(error, SettingsError::PrivateAddress { .. }),
            "{url}: {error}"
        );
        let settings = read(with("jwks_url", json!(url)));
        Issuer::new(settings, Network::AllowPrivate).unwrap();
    }
    let error = rejected(with("issuer", json!("https://id.example.com?a")));
    assert!(matches!(error, SettingsError::Url { .. }));
}

#[test]
fn lists_and_clock_skew_have_limits() {
    for (member, value, found) in [
        ("audience", json!([]), 0),
        ("audience", json!(vec!["a"; 21]), 21),
        ("algorithms", json!([]), 0),
        ("claims", json!([]), 0),
        ("claims", json!(vec!["a"; 101]), 101),
    ] {
        let error = rejected(with(member, value));
        assert!(
            matches!(error, SettingsError::Count { member: at, found: n, .. } if (at, n) == (member, found)),
            "{error}"
        );
    }
    for (audience, index) in [(json!([""]), 0), (json!(["api", ""]), 1)] {
        let error = rejected(with("audience", audience));
        assert_eq!(error, SettingsError::EmptyAudience { index });
    }
    let error = rejected(with("clock_skew", json!(301)));
    assert_eq!(
        error,
        SettingsError::ClockSkew {
            found: 301,
            most: 300
        }
    );
}

#[test]
fn policies_get_the_listed_claims_only() {
    let listed = |paths: Value, claims: Value| {
        let settings = read(with("claims", paths));
        Issuer::new(settings.clone(), Network::PublicOnly).unwrap();
        Value::Object(settings.policy_claims(claims.as_object().unwrap()))
    };
    let claims = json!({"org": "acme", "realm_access": {"roles": ["a"], "other": 1},
        "resource_access": {"shop": {"roles": ["b"]}, "account": {"roles": ["c"]}},
        "https://shop.example.com/roles": ["d"], "none": null});
    for (paths, expected) in [
        (json!(null), claims.clone()),
        (
            json!(["org", "none", "missing"]),
            json!({"org": "acme", "none": null}),
        ),
        (
            json!(["realm_access.roles", "resource_access.shop", "org.name"]),
            json!({"realm_access": {"roles": ["a"]},
                "resource_access": {"shop": {"roles": ["b"]}}}),
        ),
        (
            json!(["realm_access", "realm_access.roles"]),
            json!({"realm_access": {"roles": ["a"], "other": 1}}),
        ),
        (
            json!(["realm_access.roles", "realm_access"]),
            json!({"realm_access": {"roles": ["a"], "other": 1}}),
        ),
        (
            json!(["[\"https://shop.example.com/roles\"]"]),
            json!({"https://shop.example.com/roles": ["d"]}),
        ),
    ] {
        assert_eq!(listed(paths.clone(), claims.clone()), expected, "{paths}");
    }
    let error = rejected(with("claims", json!(["org", "realm_access.roles[0]"])));
    assert!(
        error
            .to_string()
            .contains("`claims[1]`: realm_access.roles[0] has an index"),
        "{error}"
    );
}

#[test]
fn only_algorithms_with_public_keys_can_be_configured() {
    for algorithm in ["none", "HS256", "HS512", "rs256", "ES256K", ""] {
        let settings = with("algorithms", json!([algorithm]));
        let error = serde_json::from_value::<IssuerSettings>(settings).unwrap_err();
        assert!(error.to_string().contains("unknown variant"), "{error}");
    }
    let error = serde_json::from_value::<IssuerSettings>(with("role_claim", json!("a[")));
    assert!(error.unwrap_err().to_string().contains("an index"));
}

#[test]
fn settings_of_a_later_release_are_kept_and_have_no_effect() {
    let stored = with("keys", json!([1, {"a": null}]));
    let settings = read(stored.clone());
    assert_eq!(settings.unknown.keys().collect::<Vec<_>>(), ["keys"]);
    Issuer::new(settings.clone(), Network::PublicOnly).unwrap();
    let written = serde_json::to_value(&settings).unwrap();
    assert_eq!(written["keys"], stored["keys"]);
    assert_eq!(written.get("unknown"), None);
}

/// Nodes of the releases before `create_members` refuse settings that they do not know.
#[test]
fn settings_of_later_releases_are_stored_only_if_they_are_set() {
    let mut settings: IssuerSettings =
        serde_json::from_value(json!({"issuer": "https://id.example.com", "audience": ["api"]}))
            .unwrap();
    let stored = serde_json::to_value(&settings).unwrap();
    assert_eq!(stored.get("create_members"), None);
    assert_eq!(stored.get("claims"), None);
    settings.create_members = true;
    let stored = serde_json::to_value(&settings).unwrap();
    assert_eq!(stored["create_members"], true);
}
