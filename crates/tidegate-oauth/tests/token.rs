//! Tests of access tokens: their format, and everything that must be rejected.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
use ring::{hmac, rand, signature};
use serde_json::{Value, json};
use tidegate_identity::Secret;
use tidegate_oauth::{Error, Issuer, TokenError};

use crate::fixture::{Fixture, ISSUER, segment};

fn encode(part: &Value) -> String {
    URL_SAFE_NO_PAD.encode(part.to_string())
}

fn fault(issuer: &Issuer, token: &str) -> TokenError {
    match issuer.verify(token) {
        Err(Error::InvalidToken(fault)) => fault,
        other => panic!("{other:?}"),
    }
}

/// The public key with this id, from the key set that the issuer publishes.
fn public_key(issuer: &Issuer, kid: &Value) -> Vec<u8> {
    let set: Value = serde_json::from_str(&issuer.key_set().unwrap()).unwrap();
    let keys = set["keys"].as_array().unwrap();
    let key = keys.iter().find(|key| key["kid"] == *kid).unwrap();
    let part = |name: &str| URL_SAFE_NO_PAD.decode(key[name].as_str().unwrap()).unwrap();
    [vec![4], part("x"), part("y")].concat()
}

#[tokio::test]
async fn the_header_and_the_claims_are_those_of_the_wire() {
    let api = Fixture::start().await;
    let token = api.alice().await.access_token;
    let header = segment(&token, 0);
    assert_eq!(
        (&header["alg"], &header["typ"]),
        (&"ES256".into(), &"at+jwt".into())
    );
    assert!(header["kid"].is_string());
    let payload = segment(&token, 1);
    let members: Vec<_> = payload
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    let expected = "iss sub aud client_id iat exp jti sid scope database uid superUser properties \
                    email response_type user_id";
    assert_eq!(members, expected.split_whitespace().collect::<Vec<_>>());
    assert_eq!(
        (&payload["iss"], &payload["aud"]),
        (&ISSUER.into(), &ISSUER.into())
    );
    assert_eq!(
        payload["exp"].as_i64().unwrap() - payload["iat"].as_i64().unwrap(),
        3600
    );
    assert_eq!(
        (&payload["response_type"], &payload["scope"]),
        (&"token".into(), &"".into())
    );
    assert_eq!(
        (&payload["uid"], &payload["user_id"]),
        (&"alice".into(), &"alice".into())
    );
    assert_eq!(payload["superUser"], false);
}

#[tokio::test]
async fn a_token_verifies_with_the_published_key_alone() {
    let api = Fixture::start().await;
    let token = api.alice().await.access_token;
    let key = public_key(&api.issuer, &segment(&token, 0)["kid"]);
    let (signed, tag) = token.expose().rsplit_once('.').unwrap();
    let tag = URL_SAFE_NO_PAD.decode(tag).unwrap();
    let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, key);
    key.verify(signed.as_bytes(), &tag).unwrap();
    assert!(key.verify(b"something else", &tag).is_err());
}

#[tokio::test]
async fn a_token_lives_an_hour() {
    let api = Fixture::start().await;
    let token = api.alice().await.access_token;
    api.clock.advance(Duration::from_secs(3_599));
    api.issuer.verify(token.expose()).unwrap();
    api.clock.advance(Duration::from_mins(1));
    assert_eq!(
        fault(&api.issuer, token.expose()),
        TokenError::Expired,
        "also from the cache"
    );
}

#[tokio::test]
async fn a_token_of_a_node_whose_clock_is_ahead_is_accepted_within_the_leeway() {
    let api = Fixture::start().await;
    let start = api.ports.clock.now();
    let behind = std::sync::Arc::new(tidegate_identity::ManualClock::new(start));
    let ports = tidegate_oauth::Ports {
        clock: behind,
        ..api.ports.clone()
    };
    let late = crate::fixture::node(&ports).await;
    api.clock.advance(Duration::from_secs(20));
    late.verify(api.alice().await.access_token.expose())
        .unwrap();
    api.clock.advance(Duration::from_mins(2));
    let token = api.alice().await.access_token;
    assert_eq!(fault(&late, token.expose()), TokenError::NotForUs);
}

#[tokio::test]
async fn a_refresh_token_is_no_access_token() {
    let api = Fixture::start().await;
    let token = api.alice().await.refresh_token.unwrap();
    assert_eq!(
        fault(&api.issuer, token.expose()),
        TokenError::UnknownHeader
    );
}

#[tokio::test]
async fn other_algorithms_keys_and_headers_are_refused() {
    let api = Fixture::start().await;
    let token = api.alice().await.access_token;
    let (header, payload) = (segment(&token, 0), segment(&token, 1));
    let parts: Vec<_> = token.expose().split('.').collect();
    let kid = header["kid"].clone();
    let public = public_key(&api.issuer, &kid);
    let jwk = json!({"kty":"EC","crv":"P-256","x":"AA","y":"AA"});
    let headers = [
        json!({"alg":"none","typ":"at+jwt","kid":kid}),
        json!({"alg":"None","typ":"at+jwt","kid":kid}),
        json!({"alg":"HS256","typ":"at+jwt","kid":kid}),
        json!({"alg":"ES384","typ":"at+jwt","kid":kid}),
        json!({"alg":"RS256","typ":"at+jwt","kid":kid}),
        json!({"alg":"ES256","typ":"JWT","kid":kid}),
        json!({"alg":"ES256","typ":"rt+jwt","kid":kid}),
        json!({"alg":"ES256","typ":"at+jwt"}),
        json!({"alg":"ES256","typ":"at+jwt","kid":"unknown"}),
        json!({"alg":"ES256","typ":"at+jwt","kid":"../../../../dev/null"}),
        json!({"alg":"ES256","typ":"at+jwt","kid":"' or 1=1 --"}),
        json!({"alg":"ES256","typ":"at+jwt","kid":kid,"crit":["exp"]}),
        json!({"alg":"ES256","typ":"at+jwt","kid":kid,"jwk":jwk}),
        json!({"alg":"ES256","typ":"at+jwt","kid":kid,"jku":"https://evil.example/"}),
        json!({"alg":"ES256","typ":"at+jwt","kid":kid,"x5u":"https://evil.example/"}),
        json!({"typ":"at+jwt","alg":"ES256","kid":kid}),
    ];
    for header in headers {
        let signed = format!("{}.{}", encode(&header), encode(&payload));
        let mac = hmac::sign(
            &hmac::Key::new(hmac::HMAC_SHA256, &public),
            signed.as_bytes(),
        );
        for tag in [
            String::new(),
            parts[2].to_owned(),
            URL_SAFE_NO_PAD.encode(mac),
        ] {
            let forged = format!("{signed}.{tag}");
            assert_eq!(
                fault(&api.issuer, &forged),
                TokenError::UnknownHeader,
                "{header}"
            );
        }
    }
}

#[tokio::test]
async fn touched_claims_and_signatures_are_refused() {
    let api = Fixture::start().await;
    let token = api.alice().await.access_token;
    api.issuer.verify(token.expose()).unwrap();
    let parts: Vec<_> = token.expose().split('.').collect();
    let mut payload = segment(&token, 1);
    payload["superUser"] = true.into();
    let zeros = URL_SAFE_NO_PAD.encode([0; 64]);
    let evil = evil_signature(&format!("{}.{}", parts[0], encode(&payload)));
    for tag in [parts[2], "", "AAAA", zeros.as_str(), evil.as_str()] {
        let forged = format!("{}.{}.{tag}", parts[0], encode(&payload));
        assert_eq!(fault(&api.issuer, &forged), TokenError::BadSignature);
    }
    let forged = format!("{}.{}.{zeros}", parts[0], parts[1]);
    assert_eq!(fault(&api.issuer, &forged), TokenError::BadSignature);
}

/// A valid ES256 signature made with a key that is not the issuer's.
fn evil_signature(signed: &str) -> String {
    let algorithm = &signature::ECDSA_P256_SHA256_FIXED_SIGNING;
    #[expect(clippy::disallowed_methods, reason = "a test makes a key of its own")]
    let random = rand::SystemRandom::new();
    let document = signature::EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
    let pair = signature::EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random).unwrap();
    URL_SAFE_NO_PAD.encode(pair.sign(&random, signed.as_bytes()).unwrap())
}

#[tokio::test]
async fn garbage_is_refused_with_a_reason() {
    let api = Fixture::start().await;
    let long = "a".repeat(8 * 1024 + 1);
    let cases = [
        ("", TokenError::Malformed),
        ("a", TokenError::Malformed),
        ("a.b", TokenError::Malformed),
        ("a.b.c.d", TokenError::Malformed),
        ("..", TokenError::UnknownHeader),
        ("\u{0}.\u{0}.\u{0}", TokenError::UnknownHeader),
        (long.as_str(), TokenError::TooLong),
    ];
    for (token, expected) in cases {
        assert_eq!(fault(&api.issuer, token), expected, "{token:.20}");
    }
}

#[tokio::test]
async fn a_token_of_another_issuer_with_the_same_keys_is_refused() {
    let api = Fixture::start().await;
    let settings = tidegate_oauth::Settings::new("https://elsewhere.example").unwrap();
    let master = crate::fixture::MASTER.clone();
    let elsewhere = Issuer::start(api.ports.clone(), master, settings)
        .await
        .unwrap();
    let tokens = api.alice().await;
    assert_eq!(
        fault(&elsewhere, tokens.access_token.expose()),
        TokenError::NotForUs
    );
}

#[tokio::test]
async fn the_longest_properties_still_make_a_token_that_passes() {
    let api = Fixture::start().await;
    let text = "\u{1}".repeat(500);
    let properties = json!({ "text": text }).as_object().cloned();
    let change = tidegate_identity::UserChange {
        properties: Some(properties),
        ..Default::default()
    };
    let key = tidegate_identity::UserKey::new("demo", "alice");
    api.directory.change_user(&key, change).await.unwrap();
    let token = api.alice().await.access_token;
    assert!(token.expose().len() < 8 * 1024);
    let claims = api.issuer.verify(token.expose()).unwrap();
    assert_eq!(claims.properties.as_ref().unwrap()["text"], text.as_str());
}

#[tokio::test]
async fn debug_output_contains_no_secret() {
    let api = Fixture::start().await;
    let response = api.alice().await;
    let owner = api
        .directory
        .user(&tidegate_identity::UserKey::owner("demo"))
        .await
        .unwrap();
    let clients = api.clients.clients("demo").await.unwrap();
    let pairs = [("password", "alice1234"), ("client_id", "app")];
    let texts = [
        format!("{response:?}"),
        format!("{:?} {:?}", api.issuer, *crate::fixture::MASTER),
        format!("{owner:?} {clients:?}"),
        format!("{:?}", tidegate_oauth::Parameters::from_pairs(pairs)),
        format!(
            "{:?}",
            tidegate_oauth::BasicCredentials::new("server", "alice1234")
        ),
        format!("{:?}", Secret::new("alice1234")),
    ];
    let master = crate::fixture::MASTER.to_base64url();
    let hidden = [
        response.access_token.expose(),
        "alice1234",
        "argon2",
        "demo-server",
        master.as_str(),
    ];
    for text in texts {
        for secret in hidden {
            assert!(!text.contains(secret), "{text}");
        }
    }
}

#[tokio::test]
async fn the_claims_tell_whose_token_it_is_and_of_which_session() {
    let api = Fixture::start().await;
    let first = api.alice().await;
    let claims = segment(&first.access_token, 1);
    for (name, value) in [
        ("sub", "demo/alice"),
        ("client_id", "app"),
        ("database", "demo"),
    ] {
        assert_eq!(claims[name], value, "{name}");
    }
    let next = api
        .refresh(first.refresh_token.as_ref().unwrap())
        .await
        .unwrap();
    let next = segment(&next.access_token, 1);
    let other = segment(&api.alice().await.access_token, 1);
    assert!(claims["sid"].is_string() && claims["jti"].is_string());
    assert_eq!(next["sid"], claims["sid"], "a session keeps its id");
    assert_ne!(other["sid"], claims["sid"], "another sign-in is another");
    for token in [&next, &other] {
        assert_ne!(token["jti"], claims["jti"], "each token has its own");
    }
}

#[tokio::test]
async fn an_owners_token_says_so() {
    let api = Fixture::start().await;
    let pairs = [
        ("grant_type", "password"),
        ("client_id", "app"),
        ("username", "demo"),
        ("password", "demo1234"),
    ];
    let claims = segment(&api.token(&pairs).await.unwrap().access_token, 1);
    assert_eq!(claims["superUser"], true);
    for name in ["sub", "uid", "database"] {
        assert_eq!(claims[name], "demo", "{name}");
    }
}
