//! Tests of the password grant.

use serde_json::Value;
use tidegate_identity::TenantName;
use tidegate_oauth::{
    BasicCredentials, Error, ErrorKind, GrantKind, GrantSet, NewClient, Parameters, TokenRequest,
};

use crate::fixture::{Fixture, HERE, code, segment};

#[tokio::test]
async fn a_right_password_gives_tokens_in_the_shape_of_the_wire() {
    let api = Fixture::start().await;
    let response = api.alice().await;
    let body: Value = serde_json::from_str(&response.to_json()).unwrap();
    let members: Vec<_> = body
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(
        members,
        [
            "access_token",
            "token_type",
            "expires_in",
            "refresh_token",
            "scope"
        ]
    );
    assert_eq!(
        (&body["token_type"], &body["expires_in"]),
        (&"Bearer".into(), &3600.into())
    );
    assert_eq!(body["scope"], "");
    let claims = api.issuer.verify(response.access_token.expose()).unwrap();
    assert_eq!(
        (claims.database.as_str(), claims.user.as_str()),
        ("demo", "alice")
    );
    assert_eq!(claims.subject, "demo/alice");
    assert!(!claims.owner && !claims.shared);
}

#[tokio::test]
async fn the_owner_may_leave_the_database_out() {
    let api = Fixture::start().await;
    let pairs = [
        ("grant_type", "password"),
        ("client_id", "app"),
        ("username", "demo"),
        ("password", "demo1234"),
    ];
    let response = api.token(&pairs).await.unwrap();
    let claims = api.issuer.verify(response.access_token.expose()).unwrap();
    assert!(claims.owner);
    assert_eq!(claims.subject, "demo");
}

#[tokio::test]
async fn a_sub_user_must_name_the_database() {
    let api = Fixture::start().await;
    let pairs = [
        ("grant_type", "password"),
        ("client_id", "app"),
        ("username", "alice"),
        ("password", "alice1234"),
    ];
    assert_eq!(code(api.token(&pairs).await), "unauthorized_client");
}

#[tokio::test]
async fn a_client_gives_no_tokens_of_another_tenant() {
    let api = Fixture::start().await;
    let pairs = [
        ("grant_type", "password"),
        ("client_id", "app"),
        ("username", "other"),
        ("password", "other1234"),
    ];
    assert!(matches!(
        api.token(&pairs).await,
        Err(Error::ForeignDatabase)
    ));
}

#[tokio::test]
async fn a_wrong_name_and_a_wrong_password_look_the_same() {
    let api = Fixture::start().await;
    let name = api.password("nobody", "alice1234").await.unwrap_err();
    let password = api.password("alice", "wrong-password").await.unwrap_err();
    assert_eq!(name.code(), "invalid_grant");
    assert_eq!(name.kind(), ErrorKind::InvalidRequest);
    assert_eq!(
        (name.code(), name.description()),
        (password.code(), password.description())
    );
}

#[tokio::test]
async fn an_unknown_user_costs_a_hash_like_a_known_one() {
    let api = Fixture::start().await;
    for user in ["nobody", "alice", "guest"] {
        let before = api.ports.hasher.completed();
        api.password(user, "wrong-password").await.unwrap_err();
        assert_eq!(api.ports.hasher.completed(), before + 1, "{user}");
    }
}

#[tokio::test]
async fn a_password_of_impossible_length_is_wrong_and_costs_the_same() {
    let api = Fixture::start().await;
    for password in ["short", "x".repeat(257).as_str()] {
        let before = api.ports.hasher.completed();
        assert_eq!(code(api.password("alice", password).await), "invalid_grant");
        assert_eq!(api.ports.hasher.completed(), before + 1);
    }
}

#[tokio::test]
async fn a_user_without_a_password_cannot_sign_in() {
    let api = Fixture::start().await;
    assert_eq!(
        code(api.password("guest", "guest1234").await),
        "invalid_grant"
    );
}

#[tokio::test]
async fn names_keep_their_case_and_their_tenant() {
    let api = Fixture::start().await;
    for user in ["Alice", "ALICE", "other", "demo/alice", "alice "] {
        assert_eq!(
            code(api.password(user, "alice1234").await),
            "invalid_grant",
            "{user}"
        );
    }
}

#[tokio::test]
async fn a_malformed_request_is_reported_before_an_unknown_grant() {
    let api = Fixture::start().await;
    let wrong = [
        (vec![("grant_type", "password")], "invalid_request"),
        (vec![("grant_type", "telepathy")], "invalid_request"),
        (
            vec![("grant_type", "telepathy"), ("client_id", "nobody")],
            "unsupported_grant_type",
        ),
        (
            vec![("grant_type", "password"), ("client_id", "nobody")],
            "invalid_request",
        ),
        (
            vec![("grant_type", "guest"), ("client_id", "app")],
            "unsupported_grant_type",
        ),
    ];
    for (pairs, expected) in wrong {
        assert_eq!(code(api.token(&pairs).await), expected, "{pairs:?}");
    }
}

#[tokio::test]
async fn client_errors_are_reported_before_user_errors() {
    let api = Fixture::start().await;
    let kiosk = NewClient {
        id: Some("kiosk".to_owned()),
        grants: GrantSet::Only(vec![GrantKind::Guest]),
        ..NewClient::new(
            TenantName::parse("demo").unwrap(),
            "Kiosk",
            vec!["https://kiosk.example/".to_owned()],
        )
    };
    api.clients.create_client(kiosk).await.unwrap();
    let cases = [
        (
            vec![("client_id", "kiosk")],
            "unauthorized_client",
            ErrorKind::InvalidRequest,
        ),
        (
            vec![("client_id", "nobody")],
            "invalid_client",
            ErrorKind::Client,
        ),
        (
            vec![("client_id", "server")],
            "invalid_client",
            ErrorKind::Client,
        ),
        (
            vec![("client_id", "server"), ("client_secret", "no")],
            "invalid_client",
            ErrorKind::Client,
        ),
        (
            vec![("client_id", "app")],
            "invalid_grant",
            ErrorKind::InvalidRequest,
        ),
    ];
    let user = [
        ("username", "demo"),
        ("password", "wrong-password"),
        ("grant_type", "password"),
    ];
    for (client, expected, fault) in cases {
        let pairs: Vec<_> = user.iter().copied().chain(client).collect();
        let error = api.token(&pairs).await.unwrap_err();
        assert_eq!((error.code(), error.kind()), (expected, fault), "{pairs:?}");
    }
}

#[tokio::test]
async fn a_confidential_client_proves_itself_in_the_body_or_by_basic() {
    let api = Fixture::start().await;
    let user = [
        ("grant_type", "password"),
        ("username", "demo"),
        ("password", "demo1234"),
    ];
    let body: Vec<_> = user
        .iter()
        .copied()
        .chain([
            ("client_id", "server"),
            ("client_secret", "demo-server-secret"),
        ])
        .collect();
    api.token(&body).await.unwrap();
    for secret in ["demo-server-secret", "demo%2Dserver%2Dsecret"] {
        let basic = BasicCredentials::new("server", secret);
        let request = TokenRequest::parse(&Parameters::from_pairs(user), Some(&basic)).unwrap();
        api.issuer.token(request, HERE).await.unwrap();
    }
}

#[tokio::test]
async fn a_public_client_may_send_an_empty_secret() {
    let api = Fixture::start().await;
    let user = [
        ("grant_type", "password"),
        ("username", "demo"),
        ("password", "demo1234"),
    ];
    let basic = BasicCredentials::new("app", "");
    let request = TokenRequest::parse(&Parameters::from_pairs(user), Some(&basic)).unwrap();
    api.issuer.token(request, HERE).await.unwrap();
}

#[tokio::test]
async fn properties_and_mail_go_into_the_token() {
    let api = Fixture::start().await;
    let payload = segment(&api.alice().await.access_token, 1);
    assert_eq!(payload["properties"]["team"], "reef");
    assert_eq!(payload["email"], "alice@example.org");
}

#[tokio::test]
async fn sign_ins_and_failures_are_in_the_audit_log() {
    let api = Fixture::start().await;
    api.alice().await;
    api.password("alice", "wrong-password").await.unwrap_err();
    let log = api.store.audit_log();
    let [.., opened, failed] = log.as_slice() else {
        panic!("{log:?}")
    };
    assert_eq!(
        (opened.kind.name(), opened.kind.detail()),
        ("session_opened", Some("password"))
    );
    assert_eq!(
        (failed.kind.name(), failed.user.as_deref()),
        ("sign_in_failed", Some("alice"))
    );
    assert_eq!(failed.address, HERE);
}
