//! Members, who have no role, and pages of users.

use std::sync::Arc;

use tidegate_identity::{User, UserKind, UserQuery, WriteOutcome};
use tidegate_oauth::IssuerStore;

use super::samples::user;

super::cases!(
    members_are_added_all_or_none,
    an_id_is_that_of_one_user_of_the_tenant,
    pages_are_in_the_order_of_bytes,
    a_page_has_only_what_is_asked_for,
    groups_with_members_are_listed_once,
    a_conversion_replaces_role_and_id,
);

fn member(database: &str, name: &str, group: &str) -> User {
    User {
        role: None,
        id: Some(format!("id of {name}")),
        user_groups: vec![group.to_owned()],
        ..user(database, name)
    }
}

fn everything() -> UserQuery {
    UserQuery {
        kind: None,
        group: None,
        after: None,
        limit: 100,
    }
}

async fn names(store: &Arc<dyn IssuerStore>, query: UserQuery) -> Vec<String> {
    let page = store.user_page("shop", &query).await.unwrap();
    page.into_iter().map(|user| user.key.name).collect()
}

async fn members_are_added_all_or_none(store: Arc<dyn IssuerStore>) {
    let bare = User {
        password_hash: None,
        email: None,
        properties: None,
        ..member("shop", "bare", "staff")
    };
    let full = member("shop", "full", "staff");
    let both = [bare.clone(), full.clone()];
    assert_eq!(store.insert_members(&[]).await.unwrap(), None);
    assert_eq!(store.insert_members(&both).await.unwrap(), None);
    assert_eq!(store.user_page("shop", &everything()).await.unwrap(), both);
    assert_eq!(store.users_with_role("shop").await.unwrap(), []);
    let taken = [member("shop", "new", "staff"), bare];
    assert_eq!(store.insert_members(&taken).await.unwrap(), Some(1));
    assert_eq!(store.user(&taken[0].key).await.unwrap(), None);
}

async fn an_id_is_that_of_one_user_of_the_tenant(store: Arc<dyn IssuerStore>) {
    let alice = user("shop", "alice");
    store.insert_user(&alice).await.unwrap();
    // The id of a user with a role is its name.
    let with_id = |name: &str, id: &str| User {
        id: Some(id.to_owned()),
        ..member("shop", name, "staff")
    };
    let same = with_id("bob", "alice");
    assert_eq!(store.insert_user(&same).await.unwrap(), WriteOutcome::Taken);
    let members = [with_id("carol", "7"), same];
    assert_eq!(store.insert_members(&members).await.unwrap(), Some(1));
    assert_eq!(store.insert_members(&members[..1]).await.unwrap(), None);
    let known = |user: Option<User>| user.map(|user| user.key.name);
    for (id, name) in [
        ("7", Some("carol")),
        ("alice", Some("alice")),
        ("carol", None),
    ] {
        let found = store.user_with_id("shop", id).await.unwrap();
        assert_eq!(known(found).as_deref(), name);
    }
    assert_eq!(store.user_with_id("other", "7").await.unwrap(), None);
    let named_as_id = user("shop", "7");
    assert_eq!(
        store.insert_user(&named_as_id).await.unwrap(),
        WriteOutcome::Taken
    );
    let elsewhere = user("other", "7");
    assert_eq!(
        store.insert_user(&elsewhere).await.unwrap(),
        WriteOutcome::Done
    );
}

async fn pages_are_in_the_order_of_bytes(store: Arc<dyn IssuerStore>) {
    for name in ["b", "B", "ä", "a.c"] {
        store.insert_user(&user("shop", name)).await.unwrap();
    }
    let members = ["a", "a_c", "C"].map(|name| member("shop", name, "staff"));
    store.insert_members(&members).await.unwrap();
    let sorted = ["B", "C", "a", "a.c", "a_c", "b", "ä"];
    assert_eq!(names(&store, everything()).await, sorted);
    let mut query = UserQuery {
        limit: 3,
        ..everything()
    };
    let mut paged = Vec::new();
    loop {
        let page = names(&store, query.clone()).await;
        let Some(last) = page.last() else { break };
        query.after = Some(last.clone());
        paged.extend(page);
    }
    assert_eq!(paged, sorted);
}

async fn a_page_has_only_what_is_asked_for(store: Arc<dyn IssuerStore>) {
    let clerk = User {
        user_groups: vec!["night".to_owned(), "staff".to_owned()],
        ..user("shop", "clerk")
    };
    store.insert_user(&clerk).await.unwrap();
    store.insert_user(&user("shop", "plain")).await.unwrap();
    let members = [
        member("shop", "guard", "night"),
        member("shop", "buyer", "customers"),
    ];
    store.insert_members(&members).await.unwrap();
    let cases = [
        (Some(UserKind::Member), None, vec!["buyer", "guard"]),
        (Some(UserKind::Role), None, vec!["clerk", "plain"]),
        (None, Some("night"), vec!["clerk", "guard"]),
        (Some(UserKind::Member), Some("night"), vec!["guard"]),
        (Some(UserKind::Role), Some("staff"), vec!["clerk"]),
        (None, Some("nobody"), vec![]),
    ];
    for (kind, group, expected) in cases {
        let query = UserQuery {
            kind,
            group: group.map(str::to_owned),
            ..everything()
        };
        assert_eq!(names(&store, query).await, expected, "{kind:?} {group:?}");
    }
}

async fn groups_with_members_are_listed_once(store: Arc<dyn IssuerStore>) {
    assert!(store.member_groups("shop").await.unwrap().is_empty());
    let clerk = User {
        user_groups: vec!["clerks".to_owned()],
        ..user("shop", "clerk")
    };
    store.insert_user(&clerk).await.unwrap();
    let members = [("a", "night"), ("b", "Day"), ("c", "night")];
    let members = members.map(|(name, group)| member("shop", name, group));
    store.insert_members(&members).await.unwrap();
    assert_eq!(store.member_groups("shop").await.unwrap(), ["Day", "night"]);
    assert!(store.member_groups("other").await.unwrap().is_empty());
}

async fn a_conversion_replaces_role_and_id(store: Arc<dyn IssuerStore>) {
    let alice = user("shop", "alice");
    store.insert_user(&alice).await.unwrap();
    let converted = User {
        id: Some("alice".to_owned()),
        ..member("shop", "alice", "staff")
    };
    let replace = async |before, after| store.update_user(before, after).await.unwrap();
    assert_eq!(replace(&alice, &converted).await, WriteOutcome::Done);
    assert_eq!(replace(&alice, &converted).await, WriteOutcome::Missing);
    let found = store.user(&alice.key).await.unwrap();
    assert_eq!(found, Some(converted.clone()));
    // The role is free again.
    let heir = User {
        role: alice.role.clone(),
        ..user("shop", "heir")
    };
    assert_eq!(store.insert_user(&heir).await.unwrap(), WriteOutcome::Done);
    assert_eq!(replace(&converted, &alice).await, WriteOutcome::Taken);
}
