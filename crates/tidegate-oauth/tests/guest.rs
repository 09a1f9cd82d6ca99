//! Tests of the guest grant.

use tidegate_identity::{Error as IdentityError, UserChange, UserKey};
use tidegate_oauth::{Error, ErrorKind, Issuer, Settings};

use crate::fixture::{Fixture, HOUR, ISSUER, MASTER, code, segment};

#[tokio::test]
async fn a_guest_gets_a_token_of_the_default_user() {
    let api = Fixture::start().await;
    let response = api
        .guest(&[("database", "demo"), ("client_id", "app")])
        .await
        .unwrap();
    assert_eq!((response.token_type, response.expires_in), ("bearer", 3600));
    let claims = api.issuer.verify(response.access_token.expose()).unwrap();
    assert_eq!(
        (claims.user.as_str(), claims.subject.as_str()),
        ("guest", "demo/guest")
    );
    assert!(claims.shared, "anonymous callers share the role");
    let refreshed = api
        .refresh(response.refresh_token.as_ref().unwrap())
        .await
        .unwrap();
    assert!(
        api.issuer
            .verify(refreshed.access_token.expose())
            .unwrap()
            .shared
    );
    assert_eq!(segment(&refreshed.access_token, 1)["shared"], true);
}

#[tokio::test]
async fn failures_have_the_names_of_the_specification() {
    let api = Fixture::start().await;
    let server = ("client_id", "server");
    let cases = [
        (
            vec![("client_id", "app")],
            "invalid_request",
            ErrorKind::InvalidRequest,
        ),
        (
            vec![("database", "demo")],
            "invalid_request",
            ErrorKind::InvalidRequest,
        ),
        (
            vec![("database", "demo"), ("client_id", "nobody")],
            "invalid_grant",
            ErrorKind::Client,
        ),
        (
            vec![("database", "demo"), server],
            "invalid_client",
            ErrorKind::Client,
        ),
        (
            vec![("database", "demo"), server, ("client_secret", "no")],
            "invalid_client",
            ErrorKind::Client,
        ),
        (
            vec![("database", "nowhere"), ("client_id", "app")],
            "NO_DEFAULT_USER_FOUND",
            ErrorKind::NotFound,
        ),
        (
            vec![("database", "other"), ("client_id", "app")],
            "unauthorized_client",
            ErrorKind::InvalidRequest,
        ),
    ];
    for (pairs, expected, fault) in cases {
        let error = api.guest(&pairs).await.unwrap_err();
        assert_eq!((error.code(), error.kind()), (expected, fault), "{pairs:?}");
    }
}

#[tokio::test]
async fn a_confidential_client_gets_guests_with_its_secret() {
    let api = Fixture::start().await;
    let pairs = [
        ("database", "demo"),
        ("client_id", "server"),
        ("client_secret", "demo-server-secret"),
    ];
    api.guest(&pairs).await.unwrap();
}

#[tokio::test]
async fn a_tenant_without_a_default_user_has_no_guests() {
    let api = Fixture::start().await;
    let pairs = [
        ("database", "other"),
        ("client_id", "alien"),
        ("client_secret", "alien-secret"),
    ];
    assert!(matches!(api.guest(&pairs).await, Err(Error::NoDefaultUser)));
}

#[tokio::test]
async fn a_change_of_the_default_user_ends_its_sessions() {
    let api = Fixture::start().await;
    let guest = api
        .guest(&[("database", "demo"), ("client_id", "app")])
        .await
        .unwrap();
    let alice = api.alice().await;
    let set = |default_user| UserChange {
        default_user: Some(default_user),
        ..Default::default()
    };
    let (guest_key, alice_key) = (UserKey::new("demo", "guest"), UserKey::new("demo", "alice"));
    let taken = api.directory.change_user(&alice_key, set(true)).await;
    assert!(matches!(taken, Err(IdentityError::DefaultUserTaken)));
    api.directory
        .change_user(&guest_key, set(false))
        .await
        .unwrap();
    api.directory
        .change_user(&alice_key, set(true))
        .await
        .unwrap();
    api.issuer.refresh_denylist().await.unwrap();
    for tokens in [guest, alice] {
        assert_eq!(
            code(api.issuer.verify(tokens.access_token.expose())),
            "invalid_token"
        );
        assert_eq!(
            code(api.refresh(tokens.refresh_token.as_ref().unwrap()).await),
            "invalid_grant"
        );
    }
    let alice = api.alice().await;
    assert!(
        api.issuer
            .verify(alice.access_token.expose())
            .unwrap()
            .shared
    );
}

#[tokio::test]
async fn guest_sessions_are_limited_by_address() {
    let api = Fixture::start().await;
    let pairs = [("database", "demo"), ("client_id", "app")];
    for _ in 0..1_000 {
        api.guest(&pairs).await.unwrap();
    }
    let refused = api.guest(&pairs).await.unwrap_err();
    assert_eq!(
        (refused.kind(), refused.retry_after()),
        (ErrorKind::Throttled, Some(60))
    );
}

#[tokio::test]
async fn of_too_many_guest_sessions_the_idle_are_deleted() {
    let api = Fixture::start().await;
    let mut settings = Settings::new(ISSUER).unwrap();
    settings.limits.guest_sessions = 2;
    let keeper = Issuer::start(api.ports.clone(), MASTER.clone(), settings);
    let keeper = keeper.await.unwrap();
    let pairs = [("database", "demo"), ("client_id", "app")];
    let mut guests = Vec::new();
    for _ in 0..4 {
        guests.push(api.guest(&pairs).await.unwrap().refresh_token.unwrap());
    }
    api.clock.advance(24 * HOUR);
    keeper.maintain().await.unwrap();
    let busy = api
        .refresh(&guests[0])
        .await
        .unwrap()
        .refresh_token
        .unwrap();
    api.clock.advance(HOUR);
    let second = api
        .refresh(&guests[1])
        .await
        .unwrap()
        .refresh_token
        .unwrap();
    let third = api
        .refresh(&guests[2])
        .await
        .unwrap()
        .refresh_token
        .unwrap();
    api.clock.advance(12 * HOUR);
    keeper.maintain().await.unwrap();
    assert_eq!(code(api.refresh(&guests[3]).await), "invalid_grant");
    for token in [&busy, &second, &third] {
        api.refresh(token).await.unwrap();
    }
    // Two sessions are within the limit, so they live as long as sessions of other grants.
    let alice = api.alice().await;
    api.clock.advance(29 * 24 * HOUR);
    keeper.maintain().await.unwrap();
    let kept = [&second, &third, &busy];
    let mut left = 0;
    for token in kept {
        left += usize::from(api.refresh(token).await.is_ok());
    }
    assert_eq!(left, 2);
    api.refresh(alice.refresh_token.as_ref().unwrap())
        .await
        .unwrap();
}
