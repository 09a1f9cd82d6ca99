//! Tests of the records of users.

use tidegate_identity::{
    Error, NewOwner, NewUser, Secret, TenantName, UserKey, UserKind, UserName,
};

use crate::fixture::{Fixture, demo, fault};

#[tokio::test]
async fn the_role_is_the_tenant_and_the_name_and_fits_an_identifier() {
    let api = Fixture::start().await;
    let database = TenantName::adopted(&"d".repeat(40)).unwrap();
    let fits = NewUser::new(database.clone(), UserName::parse(&"u".repeat(22)).unwrap());
    let fitting = api.directory.create_user(fits).await.unwrap();
    assert_eq!(fitting.subject().len(), 63);
    let long = NewUser::new(database, UserName::parse(&"u".repeat(23)).unwrap());
    assert_eq!(fault(api.directory.create_user(long).await), "InvalidField");
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
        (owner.role.as_deref(), owner.key.is_owner()),
        (Some("chinook_owner"), true)
    );
}

#[tokio::test]
async fn a_user_with_a_role_cannot_have_the_id_of_a_member_as_its_name() {
    let api = Fixture::start().await;
    let new = |name: &str| NewUser::new(demo(), UserName::parse(name).unwrap());
    let member = NewUser {
        kind: UserKind::Member,
        id: Some("ann".to_owned()),
        user_groups: vec!["people".to_owned()],
        ..new("mia")
    };
    api.directory.create_user(member).await.unwrap();
    for (name, expected) in [("ann", "IdTaken"), ("mia", "Taken")] {
        let created = api.directory.create_user(new(name)).await;
        assert_eq!(fault(created), expected, "{name}");
    }
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
    let addresses = [
        "nobody",
        "a b@c",
        "a@b.example,c@d.example",
        "a..b@c.example",
        "a@c.",
    ];
    let addresses = addresses.map(|email| {
        let email = Some(email.to_owned());
        ("email", NewUser { email, ..new() })
    });
    for (expected, user) in cases.into_iter().chain(addresses) {
        match api.directory.create_user(user).await {
            Err(Error::InvalidField { field, .. }) => assert_eq!(field, expected),
            other => panic!("{expected} gave {other:?}"),
        }
    }
    assert_eq!(
        api.directory.users_with_role("demo").await.unwrap().len(),
        2,
        "nothing was created"
    );
}

#[tokio::test]
async fn dropping_a_user_signs_its_browsers_out() {
    let fixture = Fixture::start().await;
    let key = UserKey::new("demo", "alice");
    let context = tidegate_identity::RequestContext::default();
    let password = Secret::new("alice1234");
    let cookie = fixture
        .service
        .sign_in(key.clone(), &password, None, &context);
    let cookie = cookie.await.unwrap();
    assert!(fixture.service.browser(&cookie).await.unwrap().is_some());
    fixture.directory.drop_user(&key).await.unwrap();
    assert!(fixture.service.browser(&cookie).await.unwrap().is_none());
}
