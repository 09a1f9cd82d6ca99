//! Signing in with an OpenID provider on this machine: which ID tokens are accepted.

use std::error::Error as _;

use serde_json::{Value, json};
use tidegate_identity::{
    ExternalIdentity, IdentityProviders as _, LoginState, OutboundError, Secret, Timestamp,
};
use tidegate_oidc::{ProviderSettings, Providers};

use crate::issuer_fixture::{Document, IssuerServer, NOW, Signer};

/// A provider whose keys are those of `signer`, and this service as its client `us`.
async fn provider(signer: &Signer) -> (IssuerServer, Providers) {
    let server = IssuerServer::start(&[signer]).await;
    let url = &server.url;
    let discovery = json!({"issuer": url, "authorization_endpoint": format!("{url}/auth"),
        "token_endpoint": format!("{url}/token"), "jwks_uri": format!("{url}/keys")});
    let path = "/.well-known/openid-configuration";
    server.set(path, Document::Json(discovery));
    let settings = ProviderSettings::openid("Example", url, "us", "secret");
    let providers = Providers::new(vec![settings]).unwrap();
    (server, providers)
}

fn claims(server: &IssuerServer) -> Value {
    json!({"iss": server.url, "sub": "77", "aud": "us", "exp": 2_000, "iat": 1_000,
        "nonce": "n", "email": "a@example.com", "email_verified": true})
}

/// What a sign-in gives when the provider answers with this ID token.
async fn signed_in(
    (server, providers): &(IssuerServer, Providers),
    id_token: &str,
) -> Result<ExternalIdentity, OutboundError> {
    let tokens = json!({"access_token": "x", "token_type": "Bearer", "id_token": id_token});
    server.set("/token", Document::Json(tokens));
    complete(providers).await
}

async fn complete(providers: &Providers) -> Result<ExternalIdentity, OutboundError> {
    let login = LoginState {
        redirect_uri: "https://us.example/signin/openid/callback".to_owned(),
        state: "s".to_owned(),
        nonce: "n".to_owned(),
        verifier: Secret::new("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"),
        now: Timestamp::from_seconds(i64::try_from(NOW).unwrap()),
    };
    providers.complete("openid", "a code", &login).await
}

fn cause(error: &OutboundError) -> String {
    error.source().unwrap().to_string()
}

/// Why a sign-in with this ID token is refused.
async fn refusal(provider: &(IssuerServer, Providers), id_token: &str) -> String {
    cause(&signed_in(provider, id_token).await.unwrap_err())
}

#[tokio::test]
async fn a_valid_token_gives_the_identity() {
    let signer = Signer::new("a");
    let provider = provider(&signer).await;
    let good = claims(&provider.0);
    let identity = signed_in(&provider, &signer.token(&good)).await.unwrap();
    assert_eq!(identity.subject, "77");
    assert_eq!(identity.issuer, provider.0.url);
    assert_eq!(identity.verified_email.as_deref(), Some("a@example.com"));
    for unverified in [json!(false), json!("false"), Value::Null] {
        let mut claims = good.clone();
        claims["email_verified"] = unverified;
        let identity = signed_in(&provider, &signer.token(&claims)).await.unwrap();
        assert_eq!(identity.verified_email, None);
    }
    let mut several = good;
    several["aud"] = json!(["others", "us"]);
    several["azp"] = json!("us");
    signed_in(&provider, &signer.token(&several)).await.unwrap();
}

#[tokio::test]
async fn tokens_with_other_claims_are_rejected() {
    let signer = Signer::new("a");
    let provider = provider(&signer).await;
    for (member, value, expected) in [
        ("iss", json!("https://evil.example"), "another issuer"),
        ("aud", json!("others"), "another audience"),
        ("aud", json!(["us", "others"]), "another client"),
        ("azp", json!("others"), "another client"),
        ("nonce", json!("other"), "another nonce"),
        ("nonce", Value::Null, "another nonce"),
        ("sub", json!(""), "`sub`"),
        ("exp", json!(1_440), "expired"),
        ("iat", json!(1_561), "not valid yet"),
        ("exp", json!("soon"), "`exp`"),
        ("email", json!(7), "malformed"),
    ] {
        let mut claims = claims(&provider.0);
        claims[member] = value;
        let reason = refusal(&provider, &signer.token(&claims)).await;
        assert!(reason.contains(expected), "{member}: {reason}");
    }
}

#[tokio::test]
async fn a_token_needs_a_signature_by_a_key_of_the_provider() {
    let signer = Signer::new("a");
    let provider = provider(&signer).await;
    let claims = claims(&provider.0);
    let other_key = Signer::new("a").token(&claims);
    let unsigned = signer.sign(&json!({"alg": "none"}), &claims);
    for (token, expected) in [
        (&*other_key, "signature"),
        (&*unsigned, "algorithm"),
        ("a.b.c", "malformed"),
    ] {
        let reason = refusal(&provider, token).await;
        assert!(reason.contains(expected), "{token}: {reason}");
    }
    // A token response without an ID token is refused.
    let tokens = json!({"access_token": "x", "token_type": "Bearer"});
    provider.0.set("/token", Document::Json(tokens));
    let refused = complete(&provider.1).await.unwrap_err();
    assert!(cause(&refused).contains("no ID token"));
}
