//! Tests of how keys are loaded, cached and replaced.

use std::time::Duration;

use serde_json::json;
use tidegate_issuers::{FetchError, Issuer, Network, TokenError};

use crate::fixture::{Document, IssuerServer, NOW, Signer, at, read, verify};

fn unavailable(error: TokenError) -> FetchError {
    match error {
        TokenError::Unavailable(error) => error,
        other => panic!("{other}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_new_key_is_found_by_its_id_at_most_once_in_ten_seconds() {
    let (old, new) = (Signer::new("old"), Signer::new("new"));
    let server = IssuerServer::start(&[&old]).await;
    let issuer = server.issuer(json!({}));
    let claims = server.claims();
    verify(&issuer, &old.token(&claims)).await.unwrap();
    assert_eq!(issuer.failure(), None);
    server.set_keys(&[&new]);
    let token = new.token(&claims);
    for _ in 0..3 {
        assert_eq!(
            verify(&issuer, &token).await.unwrap_err(),
            TokenError::UnknownKey
        );
    }
    assert_eq!(server.requests(), 2);
    tokio::time::advance(Duration::from_secs(10)).await;
    verify(&issuer, &token).await.unwrap();
    assert_eq!(server.requests(), 4);
    // The key was removed, so the tokens that it had verified are rejected.
    let error = verify(&issuer, &old.token(&claims)).await.unwrap_err();
    assert_eq!(error, TokenError::UnknownKey);
}

#[tokio::test(start_paused = true)]
async fn a_verified_token_must_be_verified_again_once_its_key_is_gone() {
    let (old, new) = (Signer::new("old"), Signer::new("new"));
    let server = IssuerServer::start(&[&old]).await;
    let issuer = server.issuer(json!({}));
    let token = old.token(&server.claims());
    let verified = verify(&issuer, &token).await.unwrap();
    server.set_keys(&[&new]);
    tokio::time::advance(Duration::from_mins(10)).await;
    // The first check still uses the cached keys, and starts the request for new ones.
    while issuer.recheck(&verified, at(NOW)).unwrap() {
        tokio::task::yield_now().await;
    }
    assert_eq!(server.requests(), 4);
    assert_eq!(
        verify(&issuer, &token).await.unwrap_err(),
        TokenError::UnknownKey
    );
}

#[tokio::test(start_paused = true)]
async fn known_keys_outlast_an_outage_of_the_issuer_for_a_day() {
    let signer = Signer::new("a");
    let server = IssuerServer::start(&[&signer]).await;
    let issuer = server.issuer(json!({}));
    verify(&issuer, &signer.token(&server.claims()))
        .await
        .unwrap();
    server.remove("/keys");
    tokio::time::advance(Duration::from_hours(23)).await;
    let mut claims = server.claims();
    claims["sub"] = json!("grace");
    verify(&issuer, &signer.token(&claims)).await.unwrap();
    tokio::time::advance(Duration::from_hours(1)).await;
    let error = verify(&issuer, &signer.token(&claims)).await.unwrap_err();
    assert!(matches!(unavailable(error), FetchError::Request { .. }));
}

#[tokio::test]
async fn documents_that_cannot_be_used_are_reported() {
    let signer = Signer::new("a");
    let foreign = json!({"issuer": "https://other.example", "jwks_uri": "https://other.example/k"});
    let symmetric = json!({"keys": [{"kty": "oct", "kid": "a", "k": "c2VjcmV0"}]});
    let mut encryption = signer.jwk();
    encryption["use"] = json!("enc");
    for (path, document, expected) in [
        ("/keys", Document::Endless, "has more than 524288 bytes"),
        (
            "/keys",
            Document::Json(json!([])),
            "a JSON Web Key Set was expected",
        ),
        (
            "/keys",
            Document::Json(symmetric),
            "at least one usable key was expected",
        ),
        (
            "/keys",
            Document::Json(json!({"keys": [encryption]})),
            "at least one usable key",
        ),
        (
            "/.well-known/openid-configuration",
            Document::Json(foreign),
            "of this issuer",
        ),
    ] {
        let server = IssuerServer::start(&[&signer]).await;
        server.set(path, document);
        let issuer = server.issuer(json!({}));
        let error = verify(&issuer, &signer.token(&server.claims()))
            .await
            .unwrap_err();
        let text = unavailable(error).to_string();
        assert!(text.contains(expected), "{text}");
        let kind = issuer.failure().unwrap().kind();
        assert!(!kind.contains(&server.url), "{kind}");
    }
}

/// The documents at the other address are valid, so a followed redirect would give keys.
#[tokio::test]
async fn redirects_are_not_followed() {
    let signer = Signer::new("a");
    // Without a discovery document, the metadata of OAuth are requested. The server has none, and
    // the error is that of the discovery document.
    for path in ["/keys", "/.well-known/openid-configuration"] {
        let server = IssuerServer::start(&[&signer]).await;
        server.redirect(path);
        let issuer = server.issuer(json!({}));
        let error = verify(&issuer, &signer.token(&server.claims()))
            .await
            .unwrap_err();
        let text = unavailable(error).to_string();
        let expected = format!("{path}: the response is 302 Found");
        assert!(text.contains(&expected), "{text}");
        assert_eq!(server.requests(), 2, "{path}: the redirect was followed");
        let kind = issuer.failure().unwrap().kind();
        assert!(
            !kind.contains(&server.url) && !kind.contains("302"),
            "{kind}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn an_issuer_that_does_not_respond_costs_five_seconds() {
    let signer = Signer::new("a");
    let server = IssuerServer::start(&[&signer]).await;
    server.set("/keys", Document::Silence);
    let issuer = server.issuer(json!({"jwks_url": format!("{}/keys", server.url)}));
    let before = tokio::time::Instant::now();
    let error = verify(&issuer, &signer.token(&server.claims()))
        .await
        .unwrap_err();
    assert!(matches!(unavailable(error), FetchError::Request { .. }));
    assert!(before.elapsed() < Duration::from_secs(6));
    // Callers after the first one do not wait again.
    let before = tokio::time::Instant::now();
    verify(&issuer, &signer.token(&server.claims()))
        .await
        .unwrap_err();
    assert!(before.elapsed() < Duration::from_secs(1));
}

#[tokio::test]
async fn keys_are_found_by_the_discovery_document_of_oauth_too() {
    let signer = Signer::new("a");
    let server = IssuerServer::start(&[&signer]).await;
    server.remove("/.well-known/openid-configuration");
    let issuer_url = format!("{}/tenant", server.url);
    let metadata = json!({"issuer": issuer_url, "jwks_uri": format!("{}/keys", server.url)});
    server.set(
        "/.well-known/oauth-authorization-server/tenant",
        Document::Json(metadata),
    );
    let issuer = server.issuer(json!({"issuer": issuer_url}));
    let mut claims = server.claims();
    claims["iss"] = json!(issuer_url);
    verify(&issuer, &signer.token(&claims)).await.unwrap();
}

#[tokio::test]
async fn names_and_documents_lead_to_no_private_address() {
    let signer = Signer::new("a");
    let server = IssuerServer::start(&[&signer]).await;
    let settings = json!({"issuer": "https://localhost:1", "audience": ["api"]});
    let issuer = Issuer::new(read(settings), Network::PublicOnly).unwrap();
    let mut claims = server.claims();
    claims["iss"] = json!("https://localhost:1");
    let error = verify(&issuer, &signer.token(&claims)).await.unwrap_err();
    assert!(
        unavailable(error)
            .to_string()
            .contains("only private addresses")
    );
    let discovery = json!({"issuer": server.url, "jwks_uri": "http://10.0.0.1/keys"});
    server.set(
        "/.well-known/openid-configuration",
        Document::Json(discovery),
    );
    let issuer = server.issuer(json!({}));
    let error = verify(&issuer, &signer.token(&server.claims()))
        .await
        .unwrap_err();
    assert!(unavailable(error).to_string().contains("https URL"));
}

#[tokio::test]
async fn a_key_serves_only_what_it_says() {
    let signer = Signer::new("a");
    for (member, value) in [("alg", "RS256"), ("alg", "HS256"), ("key_ops", "encrypt")] {
        let server = IssuerServer::start(&[]).await;
        let mut jwk = signer.jwk();
        jwk[member] = if member == "alg" {
            json!(value)
        } else {
            json!([value])
        };
        server.set(
            "/keys",
            Document::Json(json!({"keys": [jwk, Signer::new("b").jwk()]})),
        );
        let issuer = server.issuer(json!({}));
        let error = verify(&issuer, &signer.token(&server.claims()))
            .await
            .unwrap_err();
        assert_eq!(error, TokenError::UnknownKey, "{member} {value}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_token_without_a_key_id_is_checked_with_all_keys() {
    let (first, second) = (Signer::new("1"), Signer::new("2"));
    let server = IssuerServer::start(&[&first]).await;
    let issuer = server.issuer(json!({}));
    let header = json!({"alg": "ES256"});
    verify(&issuer, &first.sign(&header, &server.claims()))
        .await
        .unwrap();
    server.set_keys(&[&first, &second]);
    let token = second.sign(&header, &server.claims());
    assert_eq!(
        verify(&issuer, &token).await.unwrap_err(),
        TokenError::Signature
    );
    tokio::time::advance(Duration::from_secs(10)).await;
    verify(&issuer, &token).await.unwrap();
}
