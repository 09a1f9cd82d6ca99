//! Tests of the password grant for users with a second factor.

use tidegate_identity::{
    Browser, IdentityStore as _, RequestContext, SecondFactor, Secret, TenantName, UserKey,
};
use tidegate_oauth::NewClient;

use crate::fixture::{Fixture, code};

/// A browser of alice, who has set up a second factor and verified it there.
async fn enrolled(api: &Fixture) -> Browser {
    let key = UserKey::new("demo", "alice");
    let factor = SecondFactor {
        sealed_secret: Vec::new(),
        used_step: 0,
        recovery_codes: 0,
    };
    let inserted = api.store.insert_second_factor(&key, &factor, &[]).await;
    assert!(inserted.unwrap());
    let user = api.directory.user(&key).await.unwrap();
    let identity = api.issuer.identity();
    let context = RequestContext::default();
    let cookie = identity.open_browser_session(&user, &context, true).await;
    identity.browser(&cookie.unwrap()).await.unwrap().unwrap()
}

#[tokio::test]
async fn a_password_alone_is_not_enough_for_a_client_with_two_factor() {
    let api = Fixture::start().await;
    let strict = NewClient {
        id: Some("strict".to_owned()),
        public: true,
        two_factor: true,
        ..NewClient::new(
            TenantName::parse("demo").unwrap(),
            "Strict",
            vec!["https://app.example/".to_owned()],
        )
    };
    api.clients.create_client(strict).await.unwrap();
    let pairs = [
        ("grant_type", "password"),
        ("client_id", "strict"),
        ("database", "demo"),
        ("username", "alice"),
        ("password", "alice1234"),
    ];
    assert_eq!(code(api.token(&pairs).await), "unauthorized_client");
}

#[tokio::test]
async fn a_password_alone_is_not_enough_for_a_user_with_a_second_factor() {
    let api = Fixture::start().await;
    let password = async |password| api.password("alice", password).await;
    password("alice1234").await.unwrap();
    let browser = enrolled(&api).await;
    let refused = password("alice1234").await.unwrap_err();
    assert_eq!(refused.code(), "invalid_grant");
    assert!(refused.description().contains("has a second factor"));
    let wrong = password("alice4321").await.unwrap_err();
    assert!(
        !wrong.description().contains("has a second factor"),
        "only a client that has the password learns of it"
    );
    let context = RequestContext::default();
    let proof = Secret::new("alice1234");
    let removed = api
        .issuer
        .identity()
        .remove_second_factor(&browser, &proof, &context);
    removed.await.unwrap();
    password("alice1234").await.unwrap();
}
