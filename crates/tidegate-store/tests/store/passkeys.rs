//! Tests of passkeys: each belongs to one user, and its record changes only from what was read.

use std::sync::Arc;

use tidegate_identity::{CredentialKind, Passkey, RemovalOutcome, User, UserKey};
use tidegate_oauth::IssuerStore;
use tidegate_testkit::eventually;

use super::browsers::factor;
use super::codes::hash;
use super::identities::identity;
use super::members::member;
use super::samples::{NOW, user};
use crate::fixture::Fixture;

super::cases!(
    a_passkey_belongs_to_one_user_and_is_deleted_with_it,
    a_user_has_a_maximum_number_of_passkeys,
    a_record_is_replaced_only_if_it_is_unchanged,
    the_last_way_to_sign_in_stays,
    a_member_has_passkeys,
    credentials_are_deleted_by_kind_and_user,
);

fn passkey(id: &str) -> Passkey {
    Passkey {
        id: id.to_owned(),
        name: "Firefox on Linux".to_owned(),
        record: "{\"counter\":0}".to_owned(),
        created_at: NOW,
        used_at: None,
    }
}

async fn a_passkey_belongs_to_one_user_and_is_deleted_with_it(store: Arc<dyn IssuerStore>) {
    let (alice, bob) = (user("shop", "alice"), user("shop", "bob"));
    for user in [&alice, &bob] {
        store.insert_user(user).await.unwrap();
    }
    let (one, two) = (passkey("one"), passkey("two"));
    assert!(store.insert_passkey(&alice.key, &two).await.unwrap());
    assert!(store.insert_passkey(&alice.key, &one).await.unwrap());
    assert!(!store.insert_passkey(&bob.key, &one).await.unwrap());
    let own = store.passkeys_of_user(&alice.key).await.unwrap();
    assert_eq!(own, [one.clone(), two.clone()]);
    assert!(store.passkeys_of_user(&bob.key).await.unwrap().is_empty());
    let found = store.passkey("one").await.unwrap();
    assert_eq!(found, Some((alice.key.clone(), one)));
    assert_eq!(store.passkey("three").await.unwrap(), None);
    for (key, renamed) in [(&bob.key, false), (&alice.key, true)] {
        let done = store.rename_passkey(key, "one", "Key ring").await.unwrap();
        assert_eq!(done, renamed);
    }
    let found = store.passkey("one").await.unwrap();
    assert_eq!(found.map(|(_, one)| one.name).as_deref(), Some("Key ring"));
    for (key, outcome) in [
        (&bob.key, RemovalOutcome::Missing),
        (&alice.key, RemovalOutcome::Done),
        (&alice.key, RemovalOutcome::Missing),
    ] {
        assert_eq!(store.delete_passkey(key, "two").await.unwrap(), outcome);
    }
    assert!(store.delete_user(&alice.key, NOW).await.unwrap());
    store.insert_user(&alice).await.unwrap();
    assert_eq!(store.passkey("one").await.unwrap(), None);
}

/// Adds all passkeys that a user may have but one.
async fn add_all_but_one(store: &dyn IssuerStore, key: &UserKey) {
    for number in 1..Passkey::MAX_COUNT {
        let known = passkey(&number.to_string());
        assert!(store.insert_passkey(key, &known).await.unwrap());
    }
}

async fn a_user_has_a_maximum_number_of_passkeys(store: Arc<dyn IssuerStore>) {
    let (alice, bob) = (user("shop", "alice"), user("shop", "bob"));
    for user in [&alice, &bob] {
        store.insert_user(user).await.unwrap();
    }
    add_all_but_one(&*store, &alice.key).await;
    for (key, id, added) in [
        (&alice.key, "one", true),
        (&alice.key, "two", false),
        (&bob.key, "two", true),
    ] {
        let inserted = store.insert_passkey(key, &passkey(id)).await.unwrap();
        assert_eq!(inserted, added, "{id} of {key}");
    }
    let own = store.passkeys_of_user(&alice.key).await.unwrap();
    assert_eq!(own.len(), Passkey::MAX_COUNT);
}

/// The test locks the user's row. Each addition needs this row before it ends, because its row
/// refers to the user. So both are under way at the same time when the test releases the row.
#[tokio::test]
async fn passkeys_that_are_added_at_the_same_time_are_counted() {
    let fixture = Fixture::migrated("passkeys_at_the_same_time").await;
    let (store, alice) = (fixture.store(), user("shop", "alice"));
    store.insert_user(&alice).await.unwrap();
    add_all_but_one(&*store, &alice.key).await;
    let lock = "begin; select from tidegate.users where name = 'alice' for update";
    fixture.beside.batch_execute(lock).await.unwrap();
    let release = async {
        eventually("both additions wait", async || {
            let clear = "select pg_stat_clear_snapshot()";
            fixture.beside.batch_execute(clear).await.unwrap();
            let waiting = "select count(*) from pg_stat_activity \
                where datname = current_database() and wait_event_type = 'Lock'";
            let found = fixture.beside.query_one(waiting, &[]).await.unwrap();
            found.get::<_, i64>(0) == 2
        })
        .await;
        fixture.beside.batch_execute("commit").await.unwrap();
    };
    let (one, two) = (passkey("one"), passkey("two"));
    let (first, second, ()) = tokio::join!(
        store.insert_passkey(&alice.key, &one),
        store.insert_passkey(&alice.key, &two),
        release,
    );
    assert_ne!(first.unwrap(), second.unwrap(), "one of the two is added");
    let own = store.passkeys_of_user(&alice.key).await.unwrap();
    assert_eq!(own.len(), Passkey::MAX_COUNT);
}

async fn a_record_is_replaced_only_if_it_is_unchanged(store: Arc<dyn IssuerStore>) {
    let alice = user("shop", "alice");
    store.insert_user(&alice).await.unwrap();
    let read = passkey("one");
    assert!(store.insert_passkey(&alice.key, &read).await.unwrap());
    let next = "{\"counter\":1}";
    assert!(store.use_passkey(&read, next, NOW).await.unwrap());
    assert!(!store.use_passkey(&read, next, NOW).await.unwrap());
    let (_, after) = store.passkey("one").await.unwrap().unwrap();
    assert_eq!((&*after.record, after.used_at), (next, Some(NOW)));
    let deleted = store.delete_passkey(&alice.key, "one").await.unwrap();
    assert_eq!(deleted, RemovalOutcome::Done);
    assert!(!store.use_passkey(&after, next, NOW).await.unwrap());
}

async fn the_last_way_to_sign_in_stays(store: Arc<dyn IssuerStore>) {
    let alice = User {
        password_hash: None,
        ..user("shop", "alice")
    };
    store.insert_user(&alice).await.unwrap();
    for id in ["one", "two"] {
        assert!(
            store
                .insert_passkey(&alice.key, &passkey(id))
                .await
                .unwrap()
        );
    }
    let (one, two) = tokio::join!(
        store.delete_passkey(&alice.key, "one"),
        store.delete_passkey(&alice.key, "two"),
    );
    let outcomes = [one.unwrap(), two.unwrap()];
    assert!(outcomes.contains(&RemovalOutcome::Done), "{outcomes:?}");
    assert!(
        outcomes.contains(&RemovalOutcome::LastCredential),
        "{outcomes:?}"
    );
    let [left] = &store.passkeys_of_user(&alice.key).await.unwrap()[..] else {
        panic!("one passkey stays");
    };
    let linked = identity("7");
    assert!(store.insert_identity(&alice.key, &linked).await.unwrap());
    // A passkey is a way to sign in too.
    let unlinked = store.delete_identity(&alice.key, &linked.issuer, &linked.subject);
    assert_eq!(unlinked.await.unwrap(), RemovalOutcome::Done);
    assert!(store.insert_identity(&alice.key, &linked).await.unwrap());
    let deleted = store.delete_passkey(&alice.key, &left.id).await.unwrap();
    assert_eq!(deleted, RemovalOutcome::Done);
}

/// A member shares the table of users, so its passkeys have the same key.
async fn a_member_has_passkeys(store: Arc<dyn IssuerStore>) {
    let one = member("shop", "one", "readers");
    assert_eq!(
        store
            .insert_members(std::slice::from_ref(&one))
            .await
            .unwrap(),
        None
    );
    let own = passkey("one");
    assert!(store.insert_passkey(&one.key, &own).await.unwrap());
    let found = store.passkey("one").await.unwrap();
    assert_eq!(found, Some((one.key.clone(), own)));
    assert!(store.delete_user(&one.key, NOW).await.unwrap());
    assert_eq!(store.passkey("one").await.unwrap(), None);
}

async fn credentials_are_deleted_by_kind_and_user(store: Arc<dyn IssuerStore>) {
    let (alice, bob) = (user("shop", "alice"), user("shop", "bob"));
    for (user, id) in [(&alice, "one"), (&bob, "two")] {
        store.insert_user(user).await.unwrap();
        assert!(store.insert_passkey(&user.key, &passkey(id)).await.unwrap());
        let linked = identity(id);
        assert!(store.insert_identity(&user.key, &linked).await.unwrap());
        let (factor, codes) = (factor(), [hash(1)]);
        let added = store.insert_second_factor(&user.key, &factor, &codes);
        assert!(added.await.unwrap());
    }
    let issuer = identity("one").issuer;
    for (kind, deleted) in [
        (CredentialKind::Passkeys, "Firefox on Linux"),
        (CredentialKind::LinkedAccounts, &issuer),
        (CredentialKind::SecondFactor, ""),
    ] {
        for expected in [vec![deleted.to_owned()], vec![]] {
            let found = store.delete_credentials(&alice.key, kind).await.unwrap();
            assert_eq!(found, expected, "{kind:?}");
        }
    }
    assert!(store.passkeys_of_user(&alice.key).await.unwrap().is_empty());
    assert!(
        store
            .identities_of_user(&alice.key)
            .await
            .unwrap()
            .is_empty()
    );
    assert_eq!(store.second_factor(&alice.key).await.unwrap(), None);
    assert!(!store.use_recovery_code(&alice.key, hash(1)).await.unwrap());
    assert_eq!(store.passkeys_of_user(&bob.key).await.unwrap().len(), 1);
    assert_eq!(store.identities_of_user(&bob.key).await.unwrap().len(), 1);
    assert!(store.use_recovery_code(&bob.key, hash(1)).await.unwrap());
}
