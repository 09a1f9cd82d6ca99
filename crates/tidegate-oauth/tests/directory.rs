//! The records of clients and users.

use tidegate_oauth::{
    Error, ErrorKind, NewClient, NewOwner, NewUser, Parameters, Secret, TenantName, TokenRequest,
    UserKey, UserName,
};

use crate::fixture::{Fixture, HERE, HOUR, code};

fn demo() -> TenantName {
    TenantName::parse("demo").unwrap()
}

fn client() -> NewClient {
    NewClient::new(demo(), "Another", vec!["https://app.example/cb".to_owned()])
}

#[test]
fn names_of_tenants_follow_the_rule() {
    for good in ["a", "_", "a1_b", "pg", &"a".repeat(30)] {
        assert_eq!(TenantName::parse(good).unwrap().as_str(), good);
    }
    for bad in [
        "",
        "1a",
        "A",
        "a-b",
        "pg_x",
        "ä",
        "a b",
        "a/b",
        &"a".repeat(31),
    ] {
        assert_eq!(
            code(TenantName::parse(bad)),
            "INPUT_VALIDATION_ERROR",
            "{bad}"
        );
    }
    assert_eq!(
        TenantName::adopted("My Database").unwrap().as_str(),
        "My Database"
    );
    for bad in ["", "a/b", "a\0b", &"a".repeat(64)] {
        assert_eq!(
            code(TenantName::adopted(bad)),
            "INPUT_VALIDATION_ERROR",
            "{bad}"
        );
    }
}

#[test]
fn names_of_users_follow_the_rule() {
    for good in [
        "a",
        "Alice",
        "a.b@c.d",
        "x+y-z_1",
        "...",
        ".a",
        &"a".repeat(32),
    ] {
        assert_eq!(UserName::parse(good).unwrap().as_str(), good);
    }
    let long = "a".repeat(33);
    // Clients remove the dot segments `.` and `..` from URLs.
    for bad in [
        "", ".", "..", "a b", "a/b", "ä", "a'b", "a\"b", "<b>", &long,
    ] {
        assert_eq!(
            code(UserName::parse(bad)),
            "INPUT_VALIDATION_ERROR",
            "{bad}"
        );
    }
}

#[tokio::test]
async fn the_role_is_the_tenant_and_the_name_and_fits_an_identifier() {
    let api = Fixture::start().await;
    let database = TenantName::adopted(&"d".repeat(40)).unwrap();
    let fits = NewUser::new(database.clone(), UserName::parse(&"u".repeat(22)).unwrap());
    assert_eq!(
        api.directory.create_user(fits).await.unwrap().role.len(),
        63
    );
    let long = NewUser::new(database, UserName::parse(&"u".repeat(23)).unwrap());
    assert_eq!(
        code(api.directory.create_user(long).await),
        "INPUT_VALIDATION_ERROR"
    );
}

#[tokio::test]
async fn a_taken_name_is_reported() {
    let api = Fixture::start().await;
    for name in ["alice", "demo"] {
        let user = NewUser::new(demo(), UserName::parse(name).unwrap());
        let error = api.directory.create_user(user).await.unwrap_err();
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
    let taken = NewClient {
        id: Some("alien".to_owned()),
        ..client()
    };
    assert_eq!(
        code(api.directory.create_client(taken).await),
        "ALREADY_EXISTS"
    );
}

#[tokio::test]
async fn an_adopted_tenant_may_have_an_owner_role_of_another_name() {
    let api = Fixture::start().await;
    let owner = NewOwner {
        database: TenantName::adopted("Chinook").unwrap(),
        role: Some("chinook_owner".to_owned()),
        password: None,
    };
    let owner = api.directory.create_owner(owner).await.unwrap();
    assert_eq!(
        (owner.role.as_str(), owner.key.is_owner()),
        ("chinook_owner", true)
    );
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
    assert!(matches!(error, Error::DefaultUserTaken));
    let change = tidegate_oauth::UserChange {
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
async fn bad_members_of_a_user_are_named() {
    let api = Fixture::start().await;
    let new = || NewUser::new(demo(), UserName::parse("bob").unwrap());
    let big = serde_json::json!({ "text": "x".repeat(4000) })
        .as_object()
        .cloned();
    let cases = [
        (
            "password",
            NewUser {
                password: Some(Secret::new("short")),
                ..new()
            },
        ),
        (
            "password",
            NewUser {
                password: Some(Secret::new("x".repeat(257))),
                ..new()
            },
        ),
        (
            "email",
            NewUser {
                email: Some("nobody".to_owned()),
                ..new()
            },
        ),
        (
            "email",
            NewUser {
                email: Some("a b@c".to_owned()),
                ..new()
            },
        ),
        (
            "properties",
            NewUser {
                properties: big,
                ..new()
            },
        ),
        (
            "user_group",
            NewUser {
                user_groups: vec![String::new()],
                ..new()
            },
        ),
    ];
    for (expected, user) in cases {
        match api.directory.create_user(user).await {
            Err(Error::InvalidMember { member, .. }) => assert_eq!(member, expected),
            other => panic!("{expected} gave {other:?}"),
        }
    }
    assert_eq!(
        api.directory.users("demo").await.unwrap().len(),
        3,
        "nothing was created"
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
        match api.directory.create_client(client).await {
            Err(Error::InvalidMember { member, .. }) => assert_eq!(member, expected),
            other => panic!("{expected} gave {other:?}"),
        }
    }
}

#[tokio::test]
async fn a_made_secret_has_256_bits_and_is_shown_once() {
    let api = Fixture::start().await;
    let created = api.directory.create_client(client()).await.unwrap();
    assert_eq!(created.client.id.len(), 22);
    let secret = created.secret.unwrap();
    assert_eq!(secret.expose().len(), 43);
    let public = NewClient {
        public: true,
        ..client()
    };
    assert!(
        api.directory
            .create_client(public)
            .await
            .unwrap()
            .secret
            .is_none()
    );
    let stored = api
        .directory
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
    let first = Secret::new("demo-server-secret");
    let second = api
        .directory
        .rotate_client_secret("demo", "server")
        .await
        .unwrap();
    api.clock.advance(23 * HOUR);
    assert!(sign_in(&first).await && sign_in(&second).await);
    api.clock.advance(HOUR);
    assert!(!sign_in(&first).await && sign_in(&second).await);
    let third = api
        .directory
        .rotate_client_secret("demo", "server")
        .await
        .unwrap();
    let fourth = api
        .directory
        .rotate_client_secret("demo", "server")
        .await
        .unwrap();
    assert!(!sign_in(&second).await, "only two are active at once");
    assert!(sign_in(&third).await && sign_in(&fourth).await);
    let public = api.directory.rotate_client_secret("demo", "app").await;
    assert_eq!(code(public), "INPUT_VALIDATION_ERROR");
}

#[tokio::test]
async fn another_tenants_client_is_not_found() {
    let api = Fixture::start().await;
    assert_eq!(
        code(api.directory.client("demo", "alien").await),
        "NOT_FOUND"
    );
    assert_eq!(
        code(api.directory.drop_client("demo", "alien").await),
        "NOT_FOUND"
    );
    assert_eq!(
        code(api.directory.rotate_client_secret("demo", "alien").await),
        "NOT_FOUND"
    );
}

#[tokio::test]
async fn dropping_a_client_ends_its_sessions() {
    let api = Fixture::start().await;
    let tokens = api.alice().await;
    api.directory.drop_client("demo", "app").await.unwrap();
    api.issuer.refresh_denylist().await.unwrap();
    assert_eq!(
        code(api.issuer.verify(tokens.access_token.expose())),
        "invalid_token"
    );
    assert_eq!(
        code(api.refresh(&tokens.refresh_token).await),
        "invalid_client"
    );
    assert_eq!(
        code(api.directory.drop_client("demo", "app").await),
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
    assert!(api.directory.users("demo").await.unwrap().is_empty());
    assert!(api.directory.clients("demo").await.unwrap().is_empty());
    assert_eq!(api.directory.users("other").await.unwrap().len(), 1);
}
