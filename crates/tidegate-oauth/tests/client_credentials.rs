//! Tests of the client credentials grant (RFC 6749, section 4.4).

use tidegate_identity::{Secret, TenantName, UserChange, UserKey};
use tidegate_oauth::{ClientChange, Error, GrantKind, GrantSet, NewClient, Result, TokenResponse};

use crate::devices;
use crate::fixture::Fixture;

/// Registers the confidential client `cron`, which acts as alice.
async fn register(api: &Fixture) {
    let demo = TenantName::parse("demo").unwrap();
    let cron = NewClient {
        id: Some("cron".to_owned()),
        secret: Some(Secret::new("cron-secret")),
        service_user: Some("alice".to_owned()),
        ..NewClient::new(demo, "Cron", vec!["https://app.example/cb".to_owned()])
    };
    api.clients.create_client(cron).await.unwrap();
}

/// Requests a token as `cron`; `more` are further parameters.
async fn ask(api: &Fixture, more: &[(&str, &str)]) -> Result<TokenResponse> {
    let own = [
        ("grant_type", "client_credentials"),
        ("client_id", "cron"),
        ("client_secret", "cron-secret"),
    ];
    api.token(&[&own[..], more].concat()).await
}

#[tokio::test]
async fn the_error_of_a_disabled_service_user_says_so() {
    let api = Fixture::start().await;
    register(&api).await;
    ask(&api, &[]).await.unwrap();
    let change = UserChange {
        disabled: Some(true),
        ..UserChange::default()
    };
    let alice = UserKey::new("demo", "alice");
    api.directory.change_user(&alice, change).await.unwrap();
    let error = ask(&api, &[]).await.unwrap_err();
    assert_eq!(error.code(), "unauthorized_client");
    let text = error.description();
    assert!(text.ends_with("is disabled"), "{text}");
}

#[tokio::test]
async fn a_client_that_loses_the_grant_loses_its_tokens() {
    for (change, is_ended) in [
        (
            ClientChange {
                service_user: Some(None),
                ..ClientChange::default()
            },
            true,
        ),
        (
            ClientChange {
                service_user: Some(Some("demo".to_owned())),
                ..ClientChange::default()
            },
            true,
        ),
        (
            ClientChange {
                grants: Some(GrantSet::Only(vec![GrantKind::Password])),
                ..ClientChange::default()
            },
            true,
        ),
        (
            ClientChange {
                name: Some("Nightly".to_owned()),
                ..ClientChange::default()
            },
            false,
        ),
    ] {
        let api = Fixture::start().await;
        register(&api).await;
        let token = ask(&api, &[]).await.unwrap().access_token;
        api.clients
            .change_client("demo", "cron", change.clone())
            .await
            .unwrap();
        api.issuer.refresh_denylist().await.unwrap();
        let accepted = api.issuer.verify(token.expose());
        assert_eq!(accepted.is_err(), is_ended, "{change:?}");
    }
}

#[tokio::test]
async fn no_grant_ignores_the_database_of_another_tenant() {
    let api = Fixture::start().await;
    register(&api).await;
    let refresh = api.alice().await.refresh_token.unwrap();
    let refresh = [
        ("grant_type", "refresh_token"),
        ("client_id", "app"),
        ("refresh_token", refresh.expose()),
    ];
    for (database, is_own) in [("demo", true), ("other", false), ("nowhere", false)] {
        let more = [("database", database)];
        let device = [&[("client_id", "app")][..], &more].concat();
        for (name, response) in [
            ("client_credentials", ask(&api, &more).await.map(drop)),
            (
                "refresh_token",
                api.token(&[&refresh[..], &more].concat()).await.map(drop),
            ),
            ("device", devices::begin(&api, &device).await.map(drop)),
        ] {
            let is_expected = match response {
                Ok(()) => is_own,
                Err(Error::ForeignDatabase) => !is_own,
                Err(_) => false,
            };
            assert!(is_expected, "{name} for {database}");
        }
    }
}
