//! Tests of revocation (RFC 7009) and introspection (RFC 7662).

use serde_json::json;
use tidegate_identity::Secret;
use tidegate_oauth::{Error, ErrorKind};

use crate::fixture::{Fixture, HERE, HOUR, about, code};

#[tokio::test]
async fn revoking_either_token_ends_the_session() {
    let api = Fixture::start().await;
    for which in 0..2 {
        let tokens = api.alice().await;
        let token = if which == 0 {
            tokens.refresh_token.as_ref().unwrap()
        } else {
            &tokens.access_token
        };
        api.revoke(token).await.unwrap();
        assert_eq!(
            code(api.refresh(tokens.refresh_token.as_ref().unwrap()).await),
            "invalid_grant"
        );
        assert_eq!(
            code(api.issuer.verify(tokens.access_token.expose())),
            "invalid_token"
        );
        assert_eq!(
            api.introspect(&tokens.access_token).await,
            json!({"active": false})
        );
    }
    let log = api.store.audit_log();
    let ends: Vec<_> = log
        .iter()
        .filter(|e| e.kind.name() == "session_ended")
        .collect();
    assert_eq!(ends.len(), 2);
    assert_eq!(ends[0].kind.detail(), Some("revoked"));
    assert_eq!(ends[0].user.as_deref(), Some("alice"));
}

#[tokio::test]
async fn revoking_an_invalid_token_succeeds() {
    let api = Fixture::start().await;
    let tokens = api.alice().await;
    api.revoke(&Secret::new("no token at all")).await.unwrap();
    api.revoke(tokens.refresh_token.as_ref().unwrap())
        .await
        .unwrap();
    api.revoke(tokens.refresh_token.as_ref().unwrap())
        .await
        .unwrap();
}

#[tokio::test]
async fn an_expired_access_token_still_signs_out() {
    let api = Fixture::start().await;
    let tokens = api.alice().await;
    api.clock.advance(2 * HOUR);
    api.revoke(&tokens.access_token).await.unwrap();
    assert_eq!(
        code(api.refresh(tokens.refresh_token.as_ref().unwrap()).await),
        "invalid_grant"
    );
}

#[tokio::test]
async fn a_client_revokes_its_own_tokens_only() {
    let api = Fixture::start().await;
    let tokens = api.alice().await;
    let unknown = api
        .issuer
        .revoke(
            about("nobody", tokens.refresh_token.as_ref().unwrap()),
            HERE,
        )
        .await;
    assert!(matches!(unknown, Err(Error::UnknownClient)));
    let unproved = api
        .issuer
        .revoke(
            about("server", tokens.refresh_token.as_ref().unwrap()),
            HERE,
        )
        .await;
    assert!(matches!(unproved, Err(Error::ClientNotAuthenticated)));
    let pairs = [
        ("client_id", "server"),
        ("client_secret", "demo-server-secret"),
        ("token", tokens.refresh_token.as_ref().unwrap().expose()),
    ];
    let parameters = tidegate_oauth::Parameters::from_pairs(pairs);
    let request = tidegate_oauth::TokenManagementRequest::parse(&parameters, None).unwrap();
    assert!(matches!(
        api.issuer.revoke(request, HERE).await,
        Err(Error::ForeignToken)
    ));
    api.refresh(tokens.refresh_token.as_ref().unwrap())
        .await
        .unwrap();
}

#[tokio::test]
async fn introspection_describes_valid_tokens() {
    let api = Fixture::start().await;
    let tokens = api.alice().await;
    let access = api.introspect(&tokens.access_token).await;
    assert_eq!(
        (&access["active"], &access["token_type"]),
        (&true.into(), &"Bearer".into())
    );
    assert_eq!(
        (&access["username"], &access["sub"]),
        (&"alice".into(), &"demo/alice".into())
    );
    assert_eq!(
        (&access["client_id"], &access["database"]),
        (&"app".into(), &"demo".into())
    );
    assert_eq!(access["user_id"], "alice");
    assert_eq!(
        access["exp"].as_i64().unwrap() - access["iat"].as_i64().unwrap(),
        3600
    );
    let refresh = api.introspect(tokens.refresh_token.as_ref().unwrap()).await;
    assert_eq!(
        (&refresh["active"], &refresh["sid"]),
        (&true.into(), &access["sid"])
    );
}

#[tokio::test]
async fn introspection_reports_invalid_tokens_as_inactive() {
    let api = Fixture::start().await;
    let first = api.alice().await;
    let second = api
        .refresh(first.refresh_token.as_ref().unwrap())
        .await
        .unwrap();
    api.refresh(second.refresh_token.as_ref().unwrap())
        .await
        .unwrap();
    let inactive = json!({"active": false});
    assert_eq!(
        api.introspect(first.refresh_token.as_ref().unwrap()).await,
        inactive,
        "superseded"
    );
    assert_eq!(api.introspect(&Secret::new("no token")).await, inactive);
    api.clock.advance(2 * HOUR);
    assert_eq!(
        api.introspect(&second.access_token).await,
        inactive,
        "expired"
    );
}

#[tokio::test]
async fn introspection_reports_other_tenants_tokens_as_inactive() {
    let api = Fixture::start().await;
    let tokens = api.alice().await;
    let pairs = [
        ("client_id", "alien"),
        ("client_secret", "alien-secret"),
        ("token", tokens.access_token.expose()),
    ];
    let parameters = tidegate_oauth::Parameters::from_pairs(pairs);
    let request = tidegate_oauth::TokenManagementRequest::parse(&parameters, None).unwrap();
    let response = api.issuer.introspect(request, HERE).await.unwrap();
    assert_eq!(response.to_json(), r#"{"active":false}"#);
}

#[tokio::test]
async fn introspection_sees_revocations_of_other_nodes_at_once() {
    let api = Fixture::start().await;
    let other = crate::fixture::node(&api.ports).await;
    let tokens = api.alice().await;
    other
        .revoke(about("app", tokens.refresh_token.as_ref().unwrap()), HERE)
        .await
        .unwrap();
    assert_eq!(
        api.introspect(&tokens.access_token).await,
        json!({"active": false})
    );
}

#[tokio::test]
async fn introspection_needs_a_client_with_a_secret() {
    let api = Fixture::start().await;
    let tokens = api.alice().await;
    for (client, expected) in [
        ("app", "the client is public"),
        ("server", "the client secret"),
    ] {
        let response = api
            .issuer
            .introspect(about(client, &tokens.access_token), HERE)
            .await;
        let error = response.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Client, "{client}");
        let text = error.description();
        assert!(text.contains(expected), "{client}: {text}");
    }
}
