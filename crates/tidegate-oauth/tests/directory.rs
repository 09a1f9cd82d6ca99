//! Tests of the records of clients and users.

use tidegate_identity::{
    Error as IdentityError, NewOwner, NewUser, Secret, TenantName, UserKey, UserName,
};
use tidegate_oauth::{ClientChange, Error, ErrorKind, NewClient, Parameters, TokenRequest};

use crate::fixture::{Fixture, HERE, HOUR, code};

fn demo() -> TenantName {
    TenantName::parse("demo").unwrap()
}

fn client() -> NewClient {
    NewClient::new(demo(), "Another", vec!["https://app.example/cb".to_owned()])
}

#[tokio::test]
async fn a_taken_name_is_reported() {
    let api = Fixture::start().await;
    for name in ["alice", "demo"] {
        let user = NewUser::new(demo(), UserName::parse(name).unwrap());
        let error = Error::from(api.directory.create_user(user).await.unwrap_err());
        assert_eq!(
            (error.code(), error.kind()),
            ("ALREADY_EXISTS", ErrorKind::Conflict),
            "{name}"
        );
    }
    let owner = NewOwner {
        database: demo(),
        role: None,
        password: None,
    };
    assert_eq!(
        code(api.directory.create_owner(owner).await),
        "ALREADY_EXISTS"
    );
    let reserving = api.clients.clone().reserving(&["console".to_owned()]);
    for id in ["alien", "console"] {
        let taken = NewClient {
            id: Some(id.to_owned()),
            ..client()
        };
        let error = reserving.create_client(taken).await.unwrap_err();
        assert_eq!(error.code(), "ALREADY_EXISTS", "{id}");
        let text = error.description();
        assert!(text.contains("with this `id`"), "{id}: {text}");
    }
}

#[tokio::test]
async fn there_is_one_default_user_at_most_and_never_the_owner() {
    let api = Fixture::start().await;
    let second = UserName::parse("second").unwrap();
    let second = NewUser {
        default_user: true,
        ..NewUser::new(demo(), second)
    };
    let error = api.directory.create_user(second).await.unwrap_err();
    assert!(matches!(error, IdentityError::DefaultUserTaken));
    let change = tidegate_identity::UserChange {
        default_user: Some(true),
        ..Default::default()
    };
    let owner = UserKey::owner("other");
    assert_eq!(
        code(api.directory.change_user(&owner, change).await),
        "INPUT_VALIDATION_ERROR"
    );
}

#[tokio::test]
async fn bad_members_of_a_client_are_named() {
    let api = Fixture::start().await;
    let text = |text: &str| Some(text.to_owned());
    let identified = |id: &str| NewClient {
        id: text(id),
        ..client()
    };
    let cases = [
        ("id", identified("a b")),
        ("id", identified("")),
        ("id", identified("..")),
        (
            "name",
            NewClient {
                name: " ".to_owned(),
                ..client()
            },
        ),
        (
            "homepage",
            NewClient {
                homepage: text(""),
                ..client()
            },
        ),
        (
            "redirect_uri",
            NewClient {
                redirect_uris: Vec::new(),
                ..client()
            },
        ),
        (
            "redirect_uri",
            NewClient {
                redirect_uris: vec!["javascript:x".to_owned()],
                ..client()
            },
        ),
        (
            "secret",
            NewClient {
                secret: Some(Secret::new("x")),
                public: true,
                ..client()
            },
        ),
    ];
    for (expected, client) in cases {
        match api.clients.create_client(client).await {
            Err(Error::Identity(
                IdentityError::InvalidField { field, .. }
                | IdentityError::InvalidElement { field, .. },
            )) => {
                assert_eq!(field, expected);
            }
            other => panic!("{expected} gave {other:?}"),
        }
    }
}

#[tokio::test]
async fn a_made_secret_has_256_bits_and_is_shown_once() {
    let api = Fixture::start().await;
    let created = api.clients.create_client(client()).await.unwrap();
    assert_eq!(created.client.id.len(), 22);
    let secret = created.secret.unwrap();
    let random = secret.expose().strip_prefix("tgc_").unwrap();
    assert_eq!(random.len(), 43);
    let public = NewClient {
        public: true,
        ..client()
    };
    assert!(
        api.clients
            .create_client(public)
            .await
            .unwrap()
            .secret
            .is_none()
    );
    let stored = api
        .clients
        .client("demo", &created.client.id)
        .await
        .unwrap();
    assert!(!format!("{stored:?}").contains(secret.expose()));
}

#[tokio::test]
async fn a_rotated_secret_works_for_another_day() {
    let api = Fixture::start().await;
    let sign_in = async |secret: &Secret| {
        let pairs = [
            ("grant_type", "password"),
            ("client_id", "server"),
            ("client_secret", secret.expose()),
            ("username", "demo"),
            ("password", "demo1234"),
        ];
        let request = TokenRequest::parse(&Parameters::from_pairs(pairs), None).unwrap();
        api.issuer.token(request, HERE).await.is_ok()
    };
    let rotate = async |id: &str| {
        let change = ClientChange {
            rotate_secret: true,
            ..ClientChange::default()
        };
        api.clients.change_client("demo", id, change).await
    };
    let first = Secret::new("demo-server-secret");
    let second = rotate("server").await.unwrap().secret.unwrap();
    api.clock.advance(23 * HOUR);
    assert!(sign_in(&first).await && sign_in(&second).await);
    api.clock.advance(HOUR);
    assert!(!sign_in(&first).await && sign_in(&second).await);
    let third = rotate("server").await.unwrap().secret.unwrap();
    let fourth = rotate("server").await.unwrap().secret.unwrap();
    assert!(!sign_in(&second).await, "only two are active at once");
    assert!(sign_in(&third).await && sign_in(&fourth).await);
    assert_eq!(code(rotate("app").await), "INPUT_VALIDATION_ERROR");
}

#[tokio::test]
async fn another_tenants_client_is_not_found() {
    let api = Fixture::start().await;
    assert_eq!(code(api.clients.client("demo", "alien").await), "NOT_FOUND");
    assert_eq!(
        code(api.clients.drop_client("demo", "alien").await),
        "NOT_FOUND"
    );
    let change = ClientChange::default();
    let changed = api.clients.change_client("demo", "alien", change).await;
    assert_eq!(code(changed), "NOT_FOUND");
}

#[tokio::test]
async fn dropping_a_client_ends_its_sessions() {
    let api = Fixture::start().await;
    let tokens = api.alice().await;
    api.clients.drop_client("demo", "app").await.unwrap();
    api.issuer.refresh_denylist().await.unwrap();
    assert_eq!(
        code(api.issuer.verify(tokens.access_token.expose())),
        "invalid_token"
    );
    assert_eq!(
        code(api.refresh(tokens.refresh_token.as_ref().unwrap()).await),
        "invalid_client"
    );
    assert_eq!(
        code(api.clients.drop_client("demo", "app").await),
        "NOT_FOUND"
    );
}

#[tokio::test]
async fn the_owner_is_dropped_only_with_the_tenant() {
    let api = Fixture::start().await;
    let tokens = api.alice().await;
    let owner = UserKey::owner("demo");
    assert_eq!(
        code(api.directory.drop_user(&owner).await),
        "INPUT_VALIDATION_ERROR"
    );
    api.directory.drop_tenant("demo").await.unwrap();
    api.issuer.refresh_denylist().await.unwrap();
    assert_eq!(
        code(api.issuer.verify(tokens.access_token.expose())),
        "invalid_token"
    );
    assert!(
        api.directory
            .users_with_role("demo")
            .await
            .unwrap()
            .is_empty()
    );
    assert!(api.clients.clients("demo").await.unwrap().is_empty());
    assert_eq!(
        api.directory.users_with_role("other").await.unwrap().len(),
        1
    );
}
