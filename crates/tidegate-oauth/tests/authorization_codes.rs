//! Tests of the authorization code grant: requests, codes, PKCE.

use std::sync::Arc;
use std::time::Duration;

use tidegate_identity::{Browser, Secret, UserKey};
use tidegate_oauth::{AuthorizationError, Parameters, Result, TokenResponse};

use crate::fixture::{Fixture, HERE, HOUR, ISSUER, code};

/// RFC 7636, appendix B.
const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
const CALLBACK: &str = "http://127.0.0.1:5173/callback";

const REQUEST: [(&str, &str); 7] = [
    ("response_type", "code"),
    ("client_id", "app"),
    ("redirect_uri", CALLBACK),
    ("scope", "read"),
    ("state", "a b&c"),
    ("code_challenge", CHALLENGE),
    ("code_challenge_method", "S256"),
];

/// The request with one parameter changed, or removed for `None`.
fn with(name: &str, value: Option<&str>) -> Parameters {
    let others = REQUEST.into_iter().filter(|(known, _)| *known != name);
    let mut pairs: Vec<_> = others.collect();
    pairs.extend(value.map(|value| (name, value)));
    Parameters::from_pairs(pairs)
}

fn parameter(location: &str, name: &str) -> String {
    let (_, query) = location.split_once('?').unwrap();
    let found = query
        .split('&')
        .find_map(|pair| pair.strip_prefix(&format!("{name}=")));
    found.unwrap_or_default().to_owned()
}

async fn new_code(api: &Fixture) -> String {
    new_code_in(api, &api.browser("demo", "alice").await).await
}

pub(crate) async fn new_code_in(api: &Fixture, browser: &Browser) -> String {
    let request = api.issuer.authorization_request(&with("", None)).await;
    let location = api.issuer.grant_code(&request.unwrap(), browser).await;
    assert!(
        location.starts_with(&format!("{CALLBACK}?code=")),
        "{location}"
    );
    assert_eq!(parameter(&location, "state"), "a%20b%26c");
    assert_eq!(parameter(&location, "iss"), "https%3A%2F%2Fid.example");
    let code = parameter(&location, "code");
    assert_eq!(code.len(), 43, "256 bits");
    code
}

pub(crate) async fn redeem(
    api: &Fixture,
    changes: &[(&str, &str)],
    code: &str,
) -> Result<TokenResponse> {
    let mut pairs = vec![
        ("grant_type", "authorization_code"),
        ("client_id", "app"),
        ("code", code),
        ("redirect_uri", CALLBACK),
        ("code_verifier", VERIFIER),
    ];
    for (name, value) in changes {
        pairs.retain(|(known, _)| known != name);
        pairs.push((name, value));
    }
    api.token(&pairs).await
}

#[tokio::test]
async fn a_code_gives_tokens_once() {
    let api = Fixture::start().await;
    let code = new_code(&api).await;
    let tokens = redeem(&api, &[], &code).await.unwrap();
    let claims = api.issuer.verify(tokens.access_token.expose()).unwrap();
    assert_eq!(
        (&*claims.subject, &*claims.client_id),
        ("demo/alice", "app")
    );
    api.refresh(tokens.refresh_token.as_ref().unwrap())
        .await
        .unwrap();
    assert_eq!(self::code(redeem(&api, &[], &code).await), "invalid_grant");
    let dead = api.issuer.verify(tokens.access_token.expose());
    assert_eq!(
        self::code(dead),
        "invalid_token",
        "a second use ends what the first gave"
    );
    assert_eq!(
        self::code(api.refresh(tokens.refresh_token.as_ref().unwrap()).await),
        "invalid_grant"
    );
    assert!(api.audit().contains(&"code_reuse"));
}

#[tokio::test]
async fn a_code_lives_for_a_minute() {
    let api = Fixture::start().await;
    let (young, old) = (new_code(&api).await, new_code(&api).await);
    api.clock.advance(Duration::from_millis(59_999));
    redeem(&api, &[], &young).await.unwrap();
    api.clock.advance(Duration::from_millis(1));
    assert_eq!(code(redeem(&api, &[], &old).await), "invalid_grant");
}

#[tokio::test]
async fn a_failed_redemption_does_not_consume_the_code() {
    let api = Fixture::start().await;
    let good = new_code(&api).await;
    let server = [
        ("client_id", "server"),
        ("client_secret", "demo-server-secret"),
    ];
    let other_port = [("redirect_uri", "http://127.0.0.1:5174/callback")];
    let plain = [("code_verifier", CHALLENGE)];
    for wrong in [
        &server[..],
        &other_port,
        &plain,
        &[("code_verifier", "short")],
    ] {
        assert_eq!(
            code(redeem(&api, wrong, &good).await),
            "invalid_grant",
            "{wrong:?}"
        );
    }
    for missing in ["code_verifier", "redirect_uri", "code"] {
        assert_eq!(
            code(redeem(&api, &[(missing, "")], &good).await),
            "invalid_request"
        );
    }
    for unknown in ["x", &good[1..], &"A".repeat(100_000)] {
        assert_eq!(code(redeem(&api, &[], unknown).await), "invalid_grant");
    }
    redeem(&api, &[], &good)
        .await
        .expect("the right party still can");
}

#[tokio::test]
async fn of_ten_parallel_redemptions_one_succeeds() {
    let api = Arc::new(Fixture::start().await);
    let code = new_code(&api).await;
    let tasks: Vec<_> = (0..10)
        .map(|_| {
            let (api, code) = (api.clone(), code.clone());
            tokio::spawn(async move { redeem(&api, &[], &code).await.is_ok() })
        })
        .collect();
    let mut successes = 0;
    for task in tasks {
        successes += usize::from(task.await.unwrap());
    }
    assert_eq!(successes, 1);
}

#[tokio::test]
async fn an_unregistered_redirect_uri_is_never_used() {
    let api = Fixture::start().await;
    for (name, value) in [
        ("client_id", None),
        ("client_id", Some("nobody")),
        ("redirect_uri", None),
        ("redirect_uri", Some("https://evil.example/callback")),
        ("redirect_uri", Some("http://127.0.0.1:5173/callback/")),
        (
            "redirect_uri",
            Some("http://127.0.0.1:5173@evil.example/callback"),
        ),
        ("redirect_uri", Some("javascript:alert(1)")),
    ] {
        let refusal = api.issuer.authorization_request(&with(name, value)).await;
        assert!(
            matches!(refusal, Err(AuthorizationError::Display(_))),
            "{name} {value:?}"
        );
    }
    let mut twice = REQUEST.to_vec();
    twice.push(("redirect_uri", CALLBACK));
    let refusal = api
        .issuer
        .authorization_request(&Parameters::from_pairs(twice))
        .await;
    assert!(matches!(refusal, Err(AuthorizationError::Display(_))));
    let native = with("redirect_uri", Some("http://127.0.0.1:49152/callback"));
    api.issuer.authorization_request(&native).await.unwrap();
}

#[tokio::test]
async fn every_other_error_is_redirected_to_the_client() {
    let api = Fixture::start().await;
    let long = "a".repeat(44);
    for (name, value, error) in [
        ("response_type", None, "invalid_request"),
        ("response_type", Some("token"), "unsupported_response_type"),
        ("response_mode", Some("fragment"), "invalid_request"),
        ("code_challenge", None, "invalid_request"),
        ("code_challenge", Some("short"), "invalid_request"),
        ("code_challenge", Some(&*long), "invalid_request"),
        ("code_challenge_method", None, "invalid_request"),
        ("code_challenge_method", Some("plain"), "invalid_request"),
    ] {
        let refusal = api.issuer.authorization_request(&with(name, value)).await;
        let Err(AuthorizationError::Redirect(location)) = refusal else {
            panic!("{name} {value:?}: {refusal:?}");
        };
        assert!(
            location.starts_with(&format!("{CALLBACK}?error={error}&")),
            "{location}"
        );
        assert!(!parameter(&location, "error_description").is_empty());
        assert_eq!(parameter(&location, "state"), "a%20b%26c");
        assert_eq!(parameter(&location, "iss"), "https%3A%2F%2Fid.example");
    }
    let mut twice = REQUEST.to_vec();
    twice.push(("state", "other"));
    let refusal = api
        .issuer
        .authorization_request(&Parameters::from_pairs(twice))
        .await;
    let Err(AuthorizationError::Redirect(location)) = refusal else {
        panic!("{refusal:?}");
    };
    assert_eq!(parameter(&location, "error"), "invalid_request");
    assert_eq!(parameter(&location, "state"), "", "it is ambiguous");
}

#[tokio::test]
async fn a_denied_request_sends_access_denied() {
    let api = Fixture::start().await;
    let request = api
        .issuer
        .authorization_request(&with("", None))
        .await
        .unwrap();
    let alice = api
        .directory
        .user(&UserKey::new("demo", "alice"))
        .await
        .unwrap();
    let location = api.issuer.deny_code(&request, &alice, HERE).await;
    assert_eq!(parameter(&location, "error"), "access_denied");
    assert_eq!(parameter(&location, "state"), "a%20b%26c");
    let outsider = api.browser("other", "other").await;
    let location = api.issuer.allow_code(&request, &outsider, HERE).await;
    assert_eq!(parameter(&location, "error"), "unauthorized_client");
    assert!(!location.contains("code="), "{location}");
}

#[tokio::test]
async fn the_audit_log_has_a_consent_only_of_a_person_who_was_asked() {
    let api = Fixture::start().await;
    let browser = api.browser("demo", "alice").await;
    let request = api.issuer.authorization_request(&with("", None)).await;
    let request = request.unwrap();
    api.issuer.grant_code(&request, &browser).await;
    assert!(!api.audit().contains(&"consent_given"));
    api.issuer.allow_code(&request, &browser, HERE).await;
    assert!(api.audit().contains(&"consent_given"));
}

#[tokio::test]
async fn a_code_of_a_deleted_user_is_invalid() {
    let api = Fixture::start().await;
    let code = new_code(&api).await;
    api.directory
        .drop_user(&UserKey::new("demo", "alice"))
        .await
        .unwrap();
    assert_eq!(self::code(redeem(&api, &[], &code).await), "invalid_grant");
}

#[tokio::test]
async fn signed_in_browsers_and_forms() {
    use tidegate_identity::RequestContext;
    let api = Fixture::start().await;
    let identity = api.issuer.identity();
    let (key, context) = (UserKey::new("demo", "alice"), RequestContext::default());
    let password = Secret::new("alice1234");
    let sign_in = || identity.sign_in(key.clone(), &password, None, &context);
    let (one, two) = (sign_in().await.unwrap(), sign_in().await.unwrap());
    assert_ne!(one, two, "every sign-in has a cookie of its own");
    let token = identity.form_token(&one);
    assert!(identity.is_form_token(&one, &token));
    assert!(
        !identity.is_form_token(&two, &token),
        "bound to its browser"
    );
    for forged in ["", "x", &token[1..]] {
        assert!(!identity.is_form_token(&one, forged));
    }
    let browser = identity.browser(&one).await.unwrap().unwrap();
    assert_eq!(browser.user.key, key);
    identity.sign_out(&browser, &context).await.unwrap();
    assert!(identity.browser(&one).await.unwrap().is_none());
    assert!(identity.browser(&two).await.unwrap().is_some());
    let before = api.ports.hasher.completed();
    let nobody = UserKey::new("demo", "nobody");
    let outsider = identity.sign_in(nobody, &password, None, &context).await;
    assert_eq!(code(outsider), "invalid_grant");
    let work = api.ports.hasher.completed() - before;
    assert_eq!(work, 1, "a name that is not there costs a hash too");
    let wrong = identity
        .sign_in(key.clone(), &Secret::new("alice4321"), None, &context)
        .await;
    assert_eq!(code(wrong), "invalid_grant");
    api.clock.advance(23 * HOUR);
    assert!(
        identity.browser(&two).await.unwrap().is_some(),
        "that was a use"
    );
    api.clock.advance(23 * HOUR);
    assert!(identity.browser(&two).await.unwrap().is_some());
    api.clock.advance(24 * HOUR);
    assert!(
        identity.browser(&two).await.unwrap().is_none(),
        "idle for a day"
    );
    let three = sign_in().await.unwrap();
    api.directory
        .set_password(&key, &Secret::new("alice5678"))
        .await
        .unwrap();
    assert!(
        identity.browser(&three).await.unwrap().is_none(),
        "another password"
    );
    assert_eq!(ISSUER, api.issuer.address());
}
