//! Tests of the refresh grant and its detection of reuse.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use tidegate_identity::{Secret, UserKey};
use tidegate_oauth::Error;

use crate::fixture::{DAY, Fixture, HOUR, code, segment};

#[tokio::test]
async fn every_refresh_gives_new_tokens() {
    let api = Fixture::start().await;
    let first = api.alice().await;
    let second = api
        .refresh(first.refresh_token.as_ref().unwrap())
        .await
        .unwrap();
    assert_ne!(first.access_token, second.access_token);
    assert_ne!(first.refresh_token, second.refresh_token);
    let [old, new] = [&first, &second].map(|r| api.issuer.verify(r.access_token.expose()).unwrap());
    assert_eq!(old.session, new.session);
    assert_eq!(second.token_type, "Bearer");
}

#[tokio::test]
async fn a_token_may_come_again_while_no_successor_was_used() {
    let api = Fixture::start().await;
    let first = api.alice().await;
    for _ in 0..5 {
        api.refresh(first.refresh_token.as_ref().unwrap())
            .await
            .unwrap();
        api.clock.advance(HOUR);
    }
    let second = api
        .refresh(first.refresh_token.as_ref().unwrap())
        .await
        .unwrap();
    for _ in 0..5 {
        api.refresh(second.refresh_token.as_ref().unwrap())
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn a_token_after_its_successor_was_used_ends_the_session() {
    let api = Fixture::start().await;
    let first = api.alice().await;
    let second = api
        .refresh(first.refresh_token.as_ref().unwrap())
        .await
        .unwrap();
    let third = api
        .refresh(second.refresh_token.as_ref().unwrap())
        .await
        .unwrap();
    assert!(matches!(
        api.refresh(first.refresh_token.as_ref().unwrap()).await,
        Err(Error::InvalidRefreshToken)
    ));
    for token in [
        second.refresh_token.as_ref().unwrap(),
        third.refresh_token.as_ref().unwrap(),
    ] {
        assert_eq!(code(api.refresh(token).await), "invalid_grant");
    }
    assert_eq!(
        code(api.issuer.verify(third.access_token.expose())),
        "invalid_token"
    );
    assert_eq!(
        api.audit()
            .iter()
            .filter(|name| **name == "refresh_reuse")
            .count(),
        1
    );
}

#[tokio::test]
async fn parallel_refreshes_with_one_token_all_succeed_and_their_successors_too() {
    let api = Arc::new(Fixture::start().await);
    let first = api.alice().await;
    let tasks: Vec<_> = (0..16)
        .map(|_| {
            let (api, token) = (api.clone(), first.refresh_token.clone().unwrap());
            tokio::spawn(async move { api.refresh(&token).await })
        })
        .collect();
    let mut successors = Vec::new();
    for task in tasks {
        successors.push(task.await.unwrap().unwrap());
    }
    for successor in &successors {
        api.refresh(successor.refresh_token.as_ref().unwrap())
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn a_session_lives_thirty_days_without_a_refresh() {
    let api = Fixture::start().await;
    let tokens = api.alice().await;
    api.clock.advance(719 * HOUR);
    let tokens = api
        .refresh(tokens.refresh_token.as_ref().unwrap())
        .await
        .unwrap();
    api.clock.advance(31 * DAY);
    assert_eq!(
        code(api.refresh(tokens.refresh_token.as_ref().unwrap()).await),
        "invalid_grant"
    );
}

#[tokio::test]
async fn a_session_lives_ninety_days_however_busy_it_is() {
    let api = Fixture::start().await;
    let mut tokens = api.alice().await;
    for _ in 0..89 {
        api.clock.advance(DAY);
        tokens = api
            .refresh(tokens.refresh_token.as_ref().unwrap())
            .await
            .unwrap();
    }
    api.clock.advance(47 * HOUR / 2);
    tokens = api
        .refresh(tokens.refresh_token.as_ref().unwrap())
        .await
        .unwrap();
    assert_eq!(
        tokens.expires_in, 1800,
        "no access token outlives its session"
    );
    api.clock.advance(HOUR / 2);
    assert_eq!(
        code(api.refresh(tokens.refresh_token.as_ref().unwrap()).await),
        "invalid_grant"
    );
}

#[tokio::test]
async fn a_refresh_token_can_be_looked_into() {
    let api = Fixture::start().await;
    let payload = segment(&api.alice().await.refresh_token.unwrap(), 1);
    assert_eq!(payload["response_type"], "refresh");
    let life = payload["exp"].as_i64().unwrap() - payload["iat"].as_i64().unwrap();
    assert_eq!(life, 30 * 24 * 3600);
}

#[tokio::test]
async fn a_refresh_token_is_bound_to_its_client() {
    let api = Fixture::start().await;
    let tokens = api.alice().await;
    let pairs = [
        ("grant_type", "refresh_token"),
        ("client_id", "server"),
        ("client_secret", "demo-server-secret"),
        (
            "refresh_token",
            tokens.refresh_token.as_ref().unwrap().expose(),
        ),
    ];
    assert_eq!(code(api.token(&pairs).await), "invalid_grant");
    api.refresh(tokens.refresh_token.as_ref().unwrap())
        .await
        .expect("a foreign attempt costs the owner nothing");
}

#[tokio::test]
async fn a_refresh_token_with_other_claims_is_refused() {
    let api = Fixture::start().await;
    let token = api.alice().await.refresh_token.unwrap();
    let parts: Vec<_> = token.expose().split('.').collect();
    for (claim, value) in [
        ("number", 2.into()),
        ("exp", i64::MAX.into()),
        ("uid", "demo".into()),
    ] {
        let mut payload = segment(&token, 1);
        payload[claim] = value;
        let payload = URL_SAFE_NO_PAD.encode(payload.to_string());
        let forged = Secret::new(format!("{}.{payload}.{}", parts[0], parts[2]));
        assert_eq!(code(api.refresh(&forged).await), "invalid_grant", "{claim}");
    }
    api.refresh(&token).await.unwrap();
}

#[tokio::test]
async fn a_touched_refresh_token_is_refused() {
    let api = Fixture::start().await;
    let tokens = api.alice().await;
    let genuine = tokens.refresh_token.as_ref().unwrap().expose();
    let at = genuine.find('.').unwrap() + 10;
    let mut touched = genuine.to_owned();
    let other = if &genuine[at..=at] == "A" { "B" } else { "A" };
    touched.replace_range(at..=at, other);
    for token in [
        touched.as_str(),
        "",
        "a.b.c",
        "x",
        &genuine[..genuine.len() - 1],
    ] {
        let token = tidegate_identity::Secret::new(if token.is_empty() { "-" } else { token });
        assert_eq!(code(api.refresh(&token).await), "invalid_grant");
    }
    assert_eq!(
        code(api.refresh(&tokens.access_token).await),
        "invalid_grant"
    );
}

#[tokio::test]
async fn dropping_the_user_or_setting_the_password_ends_the_sessions() {
    let api = Fixture::start().await;
    let key = UserKey::new("demo", "alice");
    let tokens = api.alice().await;
    let password = tidegate_identity::Secret::new("alice5678");
    api.directory.set_password(&key, &password).await.unwrap();
    assert_eq!(
        code(api.refresh(tokens.refresh_token.as_ref().unwrap()).await),
        "invalid_grant"
    );
    let tokens = api.password("alice", "alice5678").await.unwrap();
    api.directory.drop_user(&key).await.unwrap();
    assert_eq!(
        code(api.refresh(tokens.refresh_token.as_ref().unwrap()).await),
        "invalid_grant"
    );
    api.issuer.refresh_denylist().await.unwrap();
    assert_eq!(
        code(api.issuer.verify(tokens.access_token.expose())),
        "invalid_token"
    );
}

#[tokio::test]
async fn a_refreshed_token_has_the_properties_of_today() {
    let api = Fixture::start().await;
    let tokens = api.alice().await;
    let change = tidegate_identity::UserChange {
        email: Some(None),
        properties: Some(serde_json::from_str(r#"{"team":"kelp"}"#).unwrap()),
        ..Default::default()
    };
    api.directory
        .change_user(&UserKey::new("demo", "alice"), change)
        .await
        .unwrap();
    let tokens = api
        .refresh(tokens.refresh_token.as_ref().unwrap())
        .await
        .unwrap();
    let payload = segment(&tokens.access_token, 1);
    assert_eq!(
        (&payload["properties"]["team"], &payload["email"]),
        (&"kelp".into(), &().into())
    );
}

#[tokio::test]
async fn a_token_of_another_issuer_with_the_same_master_key_is_refused() {
    let api = Fixture::start().await;
    let tokens = api.alice().await;
    let settings = tidegate_oauth::Settings::new("https://elsewhere.example").unwrap();
    let elsewhere =
        tidegate_oauth::Issuer::start(api.ports.clone(), crate::fixture::MASTER.clone(), settings)
            .await
            .unwrap();
    let pairs = [
        ("grant_type", "refresh_token"),
        ("client_id", "app"),
        (
            "refresh_token",
            tokens.refresh_token.as_ref().unwrap().expose(),
        ),
    ];
    let request = || {
        let parameters = tidegate_oauth::Parameters::from_pairs(pairs);
        tidegate_oauth::TokenRequest::parse(&parameters, None).unwrap()
    };
    let refused = elsewhere.token(request(), crate::fixture::HERE).await;
    assert!(matches!(refused, Err(Error::InvalidRefreshToken)));
    api.issuer
        .token(request(), crate::fixture::HERE)
        .await
        .expect("its own issuer takes it");
}
