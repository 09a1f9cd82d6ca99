//! Tests of the device grant (RFC 8628).

use std::collections::HashSet;
use std::time::Duration;

use serde_json::Value;
use tidegate_identity::{Browser, TenantName};
use tidegate_oauth::{
    DeviceAuthorization, DeviceRequest, GrantKind, GrantSet, NewClient, Parameters, Result,
    TokenResponse,
};

use crate::fixture::{Fixture, HERE, code};

const URN: &str = "urn:ietf:params:oauth:grant-type:device_code";
const SECOND: Duration = Duration::from_secs(1);

pub(crate) async fn begin(api: &Fixture, pairs: &[(&str, &str)]) -> Result<DeviceAuthorization> {
    let request = DeviceRequest::parse(&Parameters::from_pairs(pairs.iter().copied()), None)?;
    api.issuer.authorize_device(request, HERE, "/device").await
}

pub(crate) async fn poll(
    api: &Fixture,
    device: &DeviceAuthorization,
    name: &str,
) -> Result<TokenResponse> {
    let code = device.device_code.expose();
    let pairs = [
        ("grant_type", name),
        ("client_id", "app"),
        ("device_code", code),
    ];
    api.token(&pairs).await
}

async fn decide(api: &Fixture, device: &DeviceAuthorization, allow: bool) -> Result<()> {
    let browser = api.browser("demo", "alice").await;
    decide_in(api, device, allow, &browser).await
}

pub(crate) async fn decide_in(
    api: &Fixture,
    device: &DeviceAuthorization,
    allow: bool,
    browser: &Browser,
) -> Result<()> {
    let waiting = api
        .issuer
        .pending_device(&device.user_code, HERE, None)
        .await?;
    assert_eq!(waiting.client.id, "app");
    api.issuer
        .decide_device(&waiting, browser, allow, HERE)
        .await
}

#[tokio::test]
async fn a_device_gets_codes() {
    let api = Fixture::start().await;
    let device = begin(&api, &[("client_id", "app"), ("scope", "read")])
        .await
        .unwrap();
    let body: Value = serde_json::from_str(&device.to_json()).unwrap();
    let keys: Vec<_> = body
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(
        keys,
        [
            "device_code",
            "user_code",
            "verification_uri",
            "expires_in",
            "interval",
            "verification_uri_complete"
        ]
    );
    assert_eq!(
        (&body["expires_in"], &body["interval"]),
        (&1800.into(), &5.into())
    );
    assert_eq!(body["verification_uri"], "https://id.example/device");
    let complete = format!("https://id.example/device?user_code={}", device.user_code);
    assert_eq!(body["verification_uri_complete"], complete);
    assert_eq!(device.device_code.expose().len(), 43, "256 bits");
}

#[tokio::test]
async fn user_codes_have_eight_unambiguous_characters() {
    let api = Fixture::start().await;
    let mut seen = HashSet::new();
    for _ in 0..200 {
        let device = begin(&api, &[("client_id", "app")]).await.unwrap();
        let letters: String = device.user_code.chars().filter(|c| *c != '-').collect();
        assert_eq!((device.user_code.len(), letters.len()), (9, 8));
        assert!(
            letters.chars().all(|c| "BCDFGHJKLMNPQRSTVWXZ".contains(c)),
            "{letters}"
        );
        seen.insert(letters);
    }
    assert_eq!(seen.len(), 200);
}

#[tokio::test]
async fn only_a_client_with_the_grant_gets_codes() {
    let api = Fixture::start().await;
    assert_eq!(code(begin(&api, &[]).await), "invalid_request");
    assert_eq!(
        code(begin(&api, &[("client_id", "nobody")]).await),
        "invalid_client"
    );
    assert_eq!(
        code(begin(&api, &[("client_id", "server")]).await),
        "invalid_client"
    );
    let secret = [
        ("client_id", "server"),
        ("client_secret", "demo-server-secret"),
    ];
    begin(&api, &secret).await.unwrap();
    let uris = vec!["https://app.example/".to_owned()];
    let narrow = NewClient {
        id: Some("narrow".to_owned()),
        public: true,
        grants: GrantSet::Only(vec![GrantKind::Password]),
        ..NewClient::new(TenantName::parse("demo").unwrap(), "Narrow", uris)
    };
    api.clients.create_client(narrow).await.unwrap();
    assert_eq!(
        code(begin(&api, &[("client_id", "narrow")]).await),
        "unauthorized_client"
    );
}

#[tokio::test]
async fn both_names_of_the_grant_lead_to_tokens() {
    let api = Fixture::start().await;
    for name in ["device_code", URN] {
        let device = begin(&api, &[("client_id", "app")]).await.unwrap();
        assert_eq!(
            code(poll(&api, &device, name).await),
            "authorization_pending"
        );
        decide(&api, &device, true).await.unwrap();
        let tokens = poll(&api, &device, name).await.unwrap();
        let claims = api.issuer.verify(tokens.access_token.expose()).unwrap();
        assert_eq!(claims.subject, "demo/alice");
        assert_eq!(
            code(poll(&api, &device, name).await),
            "invalid_grant",
            "consumed"
        );
        api.refresh(tokens.refresh_token.as_ref().unwrap())
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn polling_too_fast_gets_slow_down() {
    let api = Fixture::start().await;
    let device = begin(&api, &[("client_id", "app")]).await.unwrap();
    let poll = async || code(poll(&api, &device, URN).await);
    assert_eq!(
        poll().await,
        "authorization_pending",
        "never for the first poll"
    );
    assert_eq!(poll().await, "slow_down");
    api.clock.advance(9 * SECOND);
    assert_eq!(poll().await, "slow_down", "the interval is 10 s now");
    api.clock.advance(14 * SECOND + SECOND / 2);
    assert_eq!(
        poll().await,
        "authorization_pending",
        "half a second of grace"
    );
    api.clock.advance(15 * SECOND);
    assert_eq!(poll().await, "authorization_pending", "the interval stays");
}

#[tokio::test]
async fn a_denied_or_expired_device_gets_the_error() {
    let api = Fixture::start().await;
    let denied = begin(&api, &[("client_id", "app")]).await.unwrap();
    decide(&api, &denied, false).await.unwrap();
    assert_eq!(code(poll(&api, &denied, URN).await), "access_denied");
    assert_eq!(
        code(decide(&api, &denied, true).await),
        "invalid_request",
        "it is decided"
    );
    let late = begin(&api, &[("client_id", "app")]).await.unwrap();
    let approved = begin(&api, &[("client_id", "app")]).await.unwrap();
    decide(&api, &approved, true).await.unwrap();
    api.clock.advance(1799 * SECOND);
    assert_eq!(code(poll(&api, &late, URN).await), "authorization_pending");
    api.clock.advance(SECOND);
    assert_eq!(code(poll(&api, &late, URN).await), "expired_token");
    assert_eq!(code(poll(&api, &approved, URN).await), "expired_token");
    assert_eq!(code(decide(&api, &late, true).await), "invalid_request");
    api.clock.advance(Duration::from_hours(48));
    api.issuer.maintain().await.unwrap();
    assert_eq!(
        code(poll(&api, &late, URN).await),
        "invalid_grant",
        "it is forgotten"
    );
}

#[tokio::test]
async fn a_device_code_belongs_to_its_client() {
    let api = Fixture::start().await;
    let device = begin(&api, &[("client_id", "app")]).await.unwrap();
    decide(&api, &device, true).await.unwrap();
    let foreign = [
        ("grant_type", "device_code"),
        ("client_id", "server"),
        ("client_secret", "demo-server-secret"),
        ("device_code", device.device_code.expose()),
    ];
    assert_eq!(code(api.token(&foreign).await), "invalid_grant");
    let missing = [("grant_type", "device_code"), ("client_id", "app")];
    assert_eq!(code(api.token(&missing).await), "invalid_request");
    poll(&api, &device, URN).await.unwrap();
}

#[tokio::test]
async fn user_codes_cannot_be_guessed_for_long() {
    let api = Fixture::start().await;
    let device = begin(&api, &[("client_id", "app")]).await.unwrap();
    let typed = device.user_code.to_lowercase().replace('-', " ");
    for _ in 0..30 {
        api.issuer
            .pending_device(&typed, HERE, None)
            .await
            .expect("right codes cost nothing");
    }
    for n in 0..10 {
        let wrong = if n % 2 == 0 {
            "BBBB-BBBB"
        } else {
            "no code at all"
        };
        assert_eq!(
            code(api.issuer.pending_device(wrong, HERE, None).await),
            "invalid_request"
        );
    }
    let next = api
        .issuer
        .pending_device(&device.user_code, HERE, None)
        .await;
    assert_eq!(code(next), "temporarily_unavailable");
    api.clock.advance(61 * SECOND);
    api.issuer.pending_device(&typed, HERE, None).await.unwrap();
}

#[tokio::test]
async fn a_user_of_another_tenant_cannot_decide() {
    let api = Fixture::start().await;
    let device = begin(&api, &[("client_id", "app")]).await.unwrap();
    let outsider = api.browser("other", "other").await;
    let waiting = api
        .issuer
        .pending_device(&device.user_code, HERE, None)
        .await
        .unwrap();
    let decided = api
        .issuer
        .decide_device(&waiting, &outsider, true, HERE)
        .await;
    assert_eq!(code(decided), "unauthorized_client");
}
