use std::sync::Arc;

use tidegate_identity::{EndReason, User, UserKey, WriteOutcome};
use tidegate_oauth::IssuerStore;

use super::samples::{NOW, client, session, user};

super::cases!(
    a_user_comes_back_as_it_was,
    a_name_or_role_is_taken_once,
    a_tenant_has_one_default_user,
    of_parallel_default_users_one_is_kept,
    an_update_replaces_what_it_may,
    a_password_upgrade_does_not_undo_a_change,
    dropping_a_user_ends_its_sessions,
    the_id_of_a_dropped_user_is_kept_until_its_tenant_is_dropped,
    dropping_a_tenant_deletes_everything,
    unusual_names_find_no_user,
    users_are_found_by_email_whatever_its_case,
    a_similar_name_is_found_in_the_tenant,
);

async fn a_user_comes_back_as_it_was(store: Arc<dyn IssuerStore>) {
    let plain = User {
        password_hash: None,
        email: None,
        properties: None,
        user_groups: vec!["staff".to_owned(), "night".to_owned()],
        ..user("shop", "shop")
    };
    let alice = user("shop", "alice");
    for user in [&plain, &alice, &user("other", "alice")] {
        assert_eq!(store.insert_user(user).await.unwrap(), WriteOutcome::Done);
    }
    assert_eq!(store.user(&plain.key).await.unwrap(), Some(plain.clone()));
    assert_eq!(store.user(&alice.key).await.unwrap(), Some(alice.clone()));
    assert_eq!(store.users_with_role("shop").await.unwrap(), [alice, plain]);
    assert_eq!(store.users_with_role("nowhere").await.unwrap(), []);
    assert_eq!(store.default_user("shop").await.unwrap(), None);
}

async fn users_are_found_by_email_whatever_its_case(store: Arc<dyn IssuerStore>) {
    for (name, email) in [
        ("a", "A@example.org"),
        ("b", "a@EXAMPLE.org"),
        ("c", "c@example.org"),
    ] {
        let user = User {
            email: Some(email.to_owned()),
            ..user("shop", name)
        };
        store.insert_user(&user).await.unwrap();
    }
    store.insert_user(&user("other", "a")).await.unwrap();
    let found = store
        .users_with_email("shop", "a@example.ORG")
        .await
        .unwrap();
    let names: Vec<_> = found.iter().map(|user| user.key.name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(store.users_with_email("shop", "%").await.unwrap(), []);
}

async fn a_name_or_role_is_taken_once(store: Arc<dyn IssuerStore>) {
    let alice = user("shop", "alice");
    assert_eq!(store.insert_user(&alice).await.unwrap(), WriteOutcome::Done);
    let same_name = User {
        role: Some("free".to_owned()),
        ..alice.clone()
    };
    assert_eq!(
        store.insert_user(&same_name).await.unwrap(),
        WriteOutcome::Taken
    );
    let same_role = User {
        role: alice.role.clone(),
        ..user("other", "bob")
    };
    assert_eq!(
        store.insert_user(&same_role).await.unwrap(),
        WriteOutcome::Taken
    );
    assert_eq!(store.user(&alice.key).await.unwrap(), Some(alice));
}

async fn a_tenant_has_one_default_user(store: Arc<dyn IssuerStore>) {
    let guest = User {
        default_user: true,
        ..user("shop", "guest")
    };
    assert_eq!(store.insert_user(&guest).await.unwrap(), WriteOutcome::Done);
    let second = User {
        default_user: true,
        ..user("shop", "second")
    };
    assert_eq!(
        store.insert_user(&second).await.unwrap(),
        WriteOutcome::DefaultUserTaken
    );
    let elsewhere = User {
        default_user: true,
        ..user("other", "guest")
    };
    assert_eq!(
        store.insert_user(&elsewhere).await.unwrap(),
        WriteOutcome::Done
    );
    assert_eq!(
        store.insert_user(&user("shop", "second")).await.unwrap(),
        WriteOutcome::Done
    );
    assert_eq!(
        store
            .update_user(&user("shop", "second"), &second)
            .await
            .unwrap(),
        WriteOutcome::DefaultUserTaken
    );
    assert_eq!(
        store.default_user("shop").await.unwrap(),
        Some(guest.clone())
    );
    let demoted = User {
        default_user: false,
        ..guest.clone()
    };
    let read = user("shop", "second");
    let update = async |read, user| store.update_user(read, user).await.unwrap();
    assert_eq!(update(&guest, &demoted).await, WriteOutcome::Done);
    assert_eq!(update(&read, &second).await, WriteOutcome::Done);
    assert_eq!(store.default_user("shop").await.unwrap(), Some(second));
}

async fn of_parallel_default_users_one_is_kept(store: Arc<dyn IssuerStore>) {
    let tasks: Vec<_> = (0..20)
        .map(|number| {
            let store = store.clone();
            let guest = User {
                default_user: true,
                ..user("shop", &format!("guest{number}"))
            };
            tokio::spawn(async move { store.insert_user(&guest).await.unwrap() })
        })
        .collect();
    let mut done = 0;
    for task in tasks {
        match task.await.unwrap() {
            WriteOutcome::Done => done += 1,
            other => assert_eq!(other, WriteOutcome::DefaultUserTaken),
        }
    }
    assert_eq!(done, 1);
    assert_eq!(store.users_with_role("shop").await.unwrap().len(), 1);
}

async fn an_update_replaces_what_it_may(store: Arc<dyn IssuerStore>) {
    let alice = user("shop", "alice");
    let update = async |read, user| store.update_user(read, user).await.unwrap();
    assert_eq!(update(&alice, &alice).await, WriteOutcome::Missing);
    store.insert_user(&alice).await.unwrap();
    let change = User {
        email: None,
        confirmed_email: None,
        properties: None,
        user_groups: vec!["staff".to_owned(), "night".to_owned()],
        role: Some("another".to_owned()),
        id: Some("its id".to_owned()),
        disabled: true,
        password_hash: None,
        ..alice.clone()
    };
    assert_eq!(update(&alice, &change).await, WriteOutcome::Done);
    // The update is refused, so that the concurrent change is not undone.
    assert_eq!(update(&alice, &alice).await, WriteOutcome::Missing);
    let expected = User {
        password_hash: alice.password_hash,
        ..change
    };
    assert_eq!(store.user(&alice.key).await.unwrap(), Some(expected));
}

async fn a_password_upgrade_does_not_undo_a_change(store: Arc<dyn IssuerStore>) {
    let alice = user("shop", "alice");
    assert!(
        !store
            .set_password_hash(&alice.key, None, "new")
            .await
            .unwrap()
    );
    store.insert_user(&alice).await.unwrap();
    let before = alice.password_hash.as_deref();
    assert!(
        store
            .set_password_hash(&alice.key, before, "upgraded")
            .await
            .unwrap()
    );
    assert!(
        !store
            .set_password_hash(&alice.key, before, "late")
            .await
            .unwrap()
    );
    assert!(
        store
            .set_password_hash(&alice.key, None, "set")
            .await
            .unwrap()
    );
    let kept = store.user(&alice.key).await.unwrap().unwrap();
    assert_eq!(kept.password_hash.as_deref(), Some("set"));
}

async fn dropping_a_user_ends_its_sessions(store: Arc<dyn IssuerStore>) {
    let alice = user("shop", "alice");
    store.insert_user(&alice).await.unwrap();
    let (hers, his) = (
        session(1, "shop", "alice", "app"),
        session(2, "shop", "bob", "app"),
    );
    store.insert_session(&hers).await.unwrap();
    store.insert_session(&his).await.unwrap();
    assert!(store.delete_user(&alice.key, NOW).await.unwrap());
    assert!(!store.delete_user(&alice.key, NOW).await.unwrap());
    assert_eq!(store.user(&alice.key).await.unwrap(), None);
    let end = store
        .session(hers.id)
        .await
        .unwrap()
        .unwrap()
        .ended
        .unwrap();
    assert_eq!((end.at, end.reason), (NOW, EndReason::UserDropped));
    assert_eq!(store.session(his.id).await.unwrap(), Some(his));
}

async fn the_id_of_a_dropped_user_is_kept_until_its_tenant_is_dropped(store: Arc<dyn IssuerStore>) {
    let has = async |name| store.has_similar_user("shop", name).await.unwrap();
    let alice = user("shop", "alice");
    let bob = User {
        id: Some("7".to_owned()),
        ..user("shop", "bob")
    };
    assert!(!has("alice").await);
    for user in [&alice, &alice, &bob] {
        store.reserve_id(user).await.unwrap();
    }
    assert!(has("alice").await && has("7").await);
    assert!(!has("Alice").await && !has("bob").await);
    let other = store.has_similar_user("other", "alice").await;
    assert!(!other.unwrap());
    store.delete_tenant("shop", NOW).await.unwrap();
    assert!(!has("alice").await && !has("7").await);
}

async fn dropping_a_tenant_deletes_everything(store: Arc<dyn IssuerStore>) {
    for tenant in ["shop", "other"] {
        store.insert_user(&user(tenant, "alice")).await.unwrap();
        store.insert_client(&client(tenant, tenant)).await.unwrap();
    }
    let (gone, stays) = (
        session(1, "shop", "x", "app"),
        session(2, "other", "x", "app"),
    );
    store.insert_session(&gone).await.unwrap();
    store.insert_session(&stays).await.unwrap();
    store.delete_tenant("shop", NOW).await.unwrap();
    store.delete_tenant("nowhere", NOW).await.unwrap();
    assert_eq!(store.users_with_role("shop").await.unwrap(), []);
    assert_eq!(store.clients("shop").await.unwrap(), []);
    let end = store
        .session(gone.id)
        .await
        .unwrap()
        .unwrap()
        .ended
        .unwrap();
    assert_eq!(end.reason, EndReason::TenantDropped);
    assert_eq!(store.session(stays.id).await.unwrap(), Some(stays));
    assert_eq!(store.users_with_role("other").await.unwrap().len(), 1);
    assert_eq!(store.clients("other").await.unwrap().len(), 1);
}

async fn a_similar_name_is_found_in_the_tenant(store: Arc<dyn IssuerStore>) {
    store.insert_user(&user("shop", "Alice")).await.unwrap();
    for (database, name, similar) in [
        ("shop", "Alice", true),
        ("shop", "aLICE", true),
        ("shop", "alicia", false),
        ("other", "alice", false),
    ] {
        let found = store.has_similar_user(database, name).await.unwrap();
        assert_eq!(found, similar, "{database}/{name}");
    }
}

async fn unusual_names_find_no_user(store: Arc<dyn IssuerStore>) {
    for name in [
        "",
        "a\0b",
        "'; drop table tidegate.users; --",
        "\u{10ffff}",
        &"x".repeat(70_000),
    ] {
        assert_eq!(store.user(&UserKey::new(name, name)).await.unwrap(), None);
        assert_eq!(store.client(name).await.unwrap(), None);
        assert_eq!(store.default_user(name).await.unwrap(), None);
    }
}
