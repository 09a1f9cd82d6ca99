//! Tests of which tokens are accepted.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use tidegate_issuers::{TokenError, unverified};

use crate::fixture::{Document, IssuerServer, NOW, Signer, at, verify};

#[tokio::test]
async fn a_valid_token_gives_user_roles_and_claims() {
    let signer = Signer::new("a");
    let server = IssuerServer::start(&[&signer]).await;
    let issuer = server.issuer(json!({"role_claim": "roles", "clock_skew": 0}));
    let mut claims = server.claims();
    claims["roles"] = json!(["editor", "viewer"]);
    let token = signer.token(&claims);
    let verified = verify(&issuer, &token).await.unwrap();
    assert_eq!((verified.subject.as_str(), &verified.user), ("ada", &None));
    assert_eq!(verified.roles, ["editor", "viewer"]);
    assert_eq!(verified.expires_at, 2_000);
    assert_eq!(Value::Object(verified.claims.clone()), claims);
    assert_eq!(unverified(&token).unwrap().issuer, server.url);

    // A verified token is checked again without a signature check.
    assert_eq!(issuer.recheck(&verified, at(NOW)), Ok(true));
    for (now, error) in [(2_000, TokenError::Expired), (999, TokenError::NotYetValid)] {
        assert_eq!(issuer.recheck(&verified, at(now)), Err(error.clone()));
        assert_eq!(issuer.verify(&token, at(now)).await, Err(error));
    }
    assert_eq!(server.requests(), 2, "the discovery document and the keys");
}

#[tokio::test]
async fn tokens_of_each_algorithm_verify_with_the_keys_of_their_kind() {
    let golden: Value = serde_json::from_str(include_str!("golden_tokens.json")).unwrap();
    let server = IssuerServer::start(&[]).await;
    server.set("/keys", Document::Json(json!({"keys": golden["keys"]})));
    let tokens = golden["tokens"].as_object().unwrap();
    assert_eq!(tokens.len(), 9);
    for (algorithm, token) in tokens {
        // The tokens were signed for an issuer with this URL.
        let more = json!({"issuer": "http://127.0.0.1:1", "algorithms": [algorithm],
            "jwks_url": format!("{}/keys", server.url)});
        let issuer = server.issuer(more);
        let verified = verify(&issuer, token.as_str().unwrap()).await;
        assert_eq!(verified.unwrap().subject, "ada", "{algorithm}");

        let (signed, signature) = token.as_str().unwrap().rsplit_once('.').unwrap();
        let mut bytes = URL_SAFE_NO_PAD.decode(signature).unwrap();
        bytes[7] ^= 1;
        let forged = format!("{signed}.{}", URL_SAFE_NO_PAD.encode(bytes));
        let error = verify(&issuer, &forged).await.unwrap_err();
        assert_eq!(error, TokenError::Signature, "{algorithm}");

        for (other, token) in tokens.iter().filter(|(other, _)| *other != algorithm) {
            let error = verify(&issuer, token.as_str().unwrap()).await.unwrap_err();
            assert_eq!(error, TokenError::Algorithm, "{other} for {algorithm}");
        }
    }
}

#[tokio::test]
async fn tokens_with_other_claims_are_rejected() {
    let signer = Signer::new("a");
    let server = IssuerServer::start(&[&signer]).await;
    let issuer = server.issuer(json!({"role_claim": "role", "user_claim": "name"}));
    let claim = |claim: &str, expected| TokenError::Claim {
        claim: claim.to_owned(),
        expected,
    };
    let (time, text) = (
        "a time in seconds since 1970, before the year 10000,",
        "a text of 1 to 255 bytes without control characters, or a whole number of at most 64 bits,",
    );
    let role = "a text or an array of at most 256 texts, each of 1 to 255 bytes";
    let audience = TokenError::Audience("aud".parse().unwrap());
    for (member, value, expected) in [
        ("iss", json!("https://evil.example"), TokenError::Issuer),
        ("iss", json!(format!("{}/", server.url)), TokenError::Issuer),
        ("iss", Value::Null, TokenError::Issuer),
        ("aud", json!("other"), audience.clone()),
        ("aud", json!(["other", "API"]), audience.clone()),
        ("aud", Value::Null, audience.clone()),
        ("exp", json!(NOW - 60), TokenError::Expired),
        ("exp", json!(-1), TokenError::Expired),
        ("exp", Value::Null, claim("exp", time)),
        ("exp", json!("9999999999"), claim("exp", time)),
        ("exp", json!(1e300), claim("exp", time)),
        ("exp", json!(u64::MAX), claim("exp", time)),
        // The time is in milliseconds.
        ("exp", json!(1_800_000_000_000_u64), claim("exp", time)),
        ("nbf", json!(-1e300), claim("nbf", time)),
        ("iat", json!(1e300), claim("iat", time)),
        ("nbf", json!(NOW + 61), TokenError::NotYetValid),
        ("nbf", json!({}), claim("nbf", time)),
        ("iat", json!(NOW + 61), TokenError::NotYetValid),
        ("sub", json!(""), claim("sub", text)),
        ("sub", json!("a\0b"), claim("sub", text)),
        ("sub", json!("a".repeat(256)), claim("sub", text)),
        ("sub", json!(["ada"]), claim("sub", text)),
        ("sub", Value::Null, claim("sub", text)),
        (
            "sub",
            json!(123_456_789_012_345_678_901_f64),
            claim("sub", text),
        ),
        ("sub", json!(77.0), claim("sub", text)),
        ("name", json!(-1e300), claim("name", text)),
        ("name", json!("a\nb"), claim("name", text)),
        ("role", json!(["a", "b\0"]), claim("role", role)),
        ("role", json!(["a", 1]), claim("role", role)),
        ("role", json!(vec!["a"; 257]), claim("role", role)),
        ("role", json!({"name": "a"}), claim("role", role)),
    ] {
        let mut claims = server.claims();
        claims[member] = value.clone();
        let error = verify(&issuer, &signer.token(&claims)).await.unwrap_err();
        assert_eq!(error, expected, "{member} {value}");
    }
}

#[tokio::test]
async fn other_forms_of_claims_are_accepted() {
    let signer = Signer::new("a");
    let server = IssuerServer::start(&[&signer]).await;
    let issuer = server.issuer(json!({"role_claim": "role", "user_claim": "name"}));
    for (member, value) in [
        ("exp", json!(NOW - 59)),
        ("exp", json!(1_700.5)),
        ("nbf", json!(NOW + 60)),
        ("aud", json!(["other", "api"])),
        ("sub", json!(77)),
        ("sub", json!(u64::MAX)),
        ("other", json!(123_456_789_012_345_678_901_f64)),
        ("role", json!("editor")),
    ] {
        let mut claims = server.claims();
        claims[member] = value.clone();
        verify(&issuer, &signer.token(&claims)).await.unwrap();
    }
    for value in [json!([]), Value::Null] {
        let mut claims = server.claims();
        claims["role"] = value;
        let verified = verify(&issuer, &signer.token(&claims)).await.unwrap();
        assert_eq!((verified.user, verified.roles), (None, Vec::new()));
    }
}

#[tokio::test]
async fn a_duplicate_member_is_rejected() {
    let signer = Signer::new("a");
    let server = IssuerServer::start(&[&signer]).await;
    let issuer = server.issuer(json!({}));
    let header = r#"{"alg": "ES256", "kid": "a"}"#;
    let claims = server.claims().to_string();
    verify(&issuer, &signer.sign_text(header, &claims))
        .await
        .unwrap();
    let with = |object: &str, member: &str| object.replacen('{', &format!("{{{member},"), 1);
    for (header, claims, part) in [
        (with(header, r#""alg": "none""#), claims.clone(), "header"),
        (
            with(header, r#""typ": "a", "typ": "b""#),
            claims.clone(),
            "header",
        ),
        (
            header.to_owned(),
            with(&claims, r#""sub": "eve""#),
            "payload",
        ),
        // Both names are `sub`.
        (
            header.to_owned(),
            with(&claims, r#""\u0073ub": "eve""#),
            "payload",
        ),
    ] {
        let token = signer.sign_text(&header, &claims);
        let error = verify(&issuer, &token).await.unwrap_err();
        let expected = format!("its {part} has a duplicate member");
        assert!(
            error.to_string().ends_with(&expected),
            "{header} {claims}: {error}"
        );
    }
}

#[tokio::test]
async fn headers_choose_neither_algorithm_nor_key() {
    let (signer, attacker) = (Signer::new("a"), Signer::new("a"));
    let server = IssuerServer::start(&[&signer]).await;
    let issuer = server.issuer(json!({}));
    let claims = server.claims();
    let unsigned = |header: &Value| {
        let token = signer.sign(header, &claims);
        format!("{}.", token.rsplit_once('.').unwrap().0)
    };
    for algorithm in ["none", "None", "HS256", "HS384", "", "ES512"] {
        let token = unsigned(&json!({"alg": algorithm, "kid": "a"}));
        let error = verify(&issuer, &token).await.unwrap_err();
        assert_eq!(error, TokenError::Algorithm, "{algorithm}");
    }
    let stripped = unsigned(&json!({"alg": "ES256", "kid": "a"}));
    assert_eq!(
        verify(&issuer, &stripped).await.unwrap_err(),
        TokenError::Signature
    );
    for (member, value) in [
        ("jwk", attacker.jwk()),
        ("jku", json!(format!("{}/attacker", server.url))),
        ("x5u", json!(format!("{}/attacker", server.url))),
    ] {
        let mut header = json!({"alg": "ES256", "kid": "a"});
        header[member] = value;
        let token = attacker.sign(&header, &claims);
        assert_eq!(
            verify(&issuer, &token).await.unwrap_err(),
            TokenError::Signature,
            "{member}"
        );
    }
    // A key with the right id is used only with algorithms of its kind.
    let confused = signer.sign(&json!({"alg": "RS256", "kid": "a"}), &claims);
    assert_eq!(
        verify(&issuer, &confused).await.unwrap_err(),
        TokenError::UnknownKey
    );
    let critical = signer.sign(
        &json!({"alg": "ES256", "kid": "a", "crit": ["exp"]}),
        &claims,
    );
    assert!(matches!(
        verify(&issuer, &critical).await.unwrap_err(),
        TokenError::Malformed(_)
    ));
    assert_eq!(server.requests(), 2, "no address of a header was requested");
}

#[tokio::test]
async fn what_is_no_token_is_rejected_without_a_request() {
    let signer = Signer::new("a");
    let server = IssuerServer::start(&[&signer]).await;
    let issuer = server.issuer(json!({}));
    let valid = signer.token(&server.claims());
    let (header, rest) = valid.split_once('.').unwrap();
    for malformed in [
        "",
        ".",
        "..",
        "a.b.c",
        header,
        &format!("{valid}.extra"),
        &format!("{header}=.{rest}"),
        &format!(" {valid}"),
    ] {
        let error = verify(&issuer, malformed).await.unwrap_err();
        assert!(
            matches!(error, TokenError::Malformed(_)),
            "{malformed}: {error}"
        );
    }
    let long = format!("{valid}{}", "a".repeat(16 * 1024));
    assert!(matches!(
        verify(&issuer, &long).await.unwrap_err(),
        TokenError::TooLong { .. }
    ));
    assert_eq!(server.requests(), 0);
}
