//! Tests of linked accounts: each belongs to one user of a tenant, and the last credential cannot
//! be removed.

use std::sync::Arc;

use tidegate_identity::{LinkedIdentity, RemovalOutcome, User};
use tidegate_oauth::IssuerStore;

use super::samples::{NOW, user};

super::cases!(
    a_linked_account_belongs_to_one_user_of_a_tenant,
    a_users_accounts_are_listed_as_they_were_linked,
    the_last_credential_cannot_be_removed,
    of_two_parallel_unlinks_without_a_password_one_fails,
);

pub(super) fn identity(subject: &str) -> LinkedIdentity {
    LinkedIdentity {
        provider: Some("one".to_owned()),
        issuer: "https://id.example".to_owned(),
        subject: subject.to_owned(),
        name: Some(format!("{subject} there")),
        linked_at: Some(NOW),
    }
}

async fn a_linked_account_belongs_to_one_user_of_a_tenant(store: Arc<dyn IssuerStore>) {
    let (alice, bob) = (user("shop", "alice"), user("shop", "bob"));
    let elsewhere = user("other", "alice");
    for user in [&alice, &bob, &elsewhere] {
        store.insert_user(user).await.unwrap();
    }
    let linked = identity("7");
    let id = (&*linked.issuer, &*linked.subject);
    assert!(store.insert_identity(&alice.key, &linked).await.unwrap());
    assert!(!store.insert_identity(&bob.key, &linked).await.unwrap());
    let there = store.insert_identity(&elsewhere.key, &linked);
    assert!(there.await.unwrap());
    let of = |issuer, subject| store.user_of_identity("shop", issuer, subject);
    assert_eq!(of(id.0, id.1).await.unwrap(), Some(alice.clone()));
    assert_eq!(of(id.0, "8").await.unwrap(), None);
    assert_eq!(of("https://evil.example", id.1).await.unwrap(), None);
    // The linked account is deleted with its user, and does not return with a new user of the same
    // name.
    assert!(store.delete_user(&alice.key, NOW).await.unwrap());
    store.insert_user(&alice).await.unwrap();
    assert_eq!(of(id.0, id.1).await.unwrap(), None);
    store.delete_tenant("other", NOW).await.unwrap();
    store.insert_user(&elsewhere).await.unwrap();
    let again = store.user_of_identity("other", id.0, id.1).await.unwrap();
    assert_eq!(again, None);
}

async fn a_users_accounts_are_listed_as_they_were_linked(store: Arc<dyn IssuerStore>) {
    let (alice, bob) = (user("shop", "alice"), user("shop", "bob"));
    for user in [&alice, &bob] {
        store.insert_user(user).await.unwrap();
    }
    let bare = LinkedIdentity {
        provider: None,
        name: None,
        linked_at: None,
        ..identity("2")
    };
    for (user, linked) in [
        (&alice, &bare),
        (&alice, &identity("1")),
        (&bob, &identity("3")),
    ] {
        assert!(store.insert_identity(&user.key, linked).await.unwrap());
    }
    let listed = store.identities_of_user(&alice.key).await.unwrap();
    assert_eq!(listed, [identity("1"), bare]);
}

async fn the_last_credential_cannot_be_removed(store: Arc<dyn IssuerStore>) {
    let with = User {
        password_hash: Some("$argon2id$v=19$m=8,t=1,p=1$c2FsdHNhbHQ$aGFzaA".to_owned()),
        ..user("shop", "with")
    };
    let without = User {
        password_hash: None,
        ..user("shop", "without")
    };
    for user in [&with, &without] {
        store.insert_user(user).await.unwrap();
        let own = identity(&user.key.name);
        store.insert_identity(&user.key, &own).await.unwrap();
    }
    let issuer = "https://id.example";
    let delete = async |user: &User, subject: &str| {
        let gone = store.delete_identity(&user.key, issuer, subject);
        gone.await.unwrap()
    };
    assert_eq!(delete(&with, "without").await, RemovalOutcome::Missing);
    assert_eq!(delete(&with, "with").await, RemovalOutcome::Done);
    assert_eq!(delete(&with, "with").await, RemovalOutcome::Missing);
    assert_eq!(
        delete(&without, "without").await,
        RemovalOutcome::LastCredential
    );
    let kept = store.user_of_identity("shop", issuer, "without").await;
    assert_eq!(kept.unwrap(), Some(without.clone()));
    let second = identity("second");
    store.insert_identity(&without.key, &second).await.unwrap();
    assert_eq!(delete(&without, "without").await, RemovalOutcome::Done);
    assert_eq!(
        delete(&without, "second").await,
        RemovalOutcome::LastCredential
    );
}

async fn of_two_parallel_unlinks_without_a_password_one_fails(store: Arc<dyn IssuerStore>) {
    for round in 0..20 {
        let name = format!("user{round}");
        let nora = User {
            password_hash: None,
            ..user("shop", &name)
        };
        store.insert_user(&nora).await.unwrap();
        let subjects = [format!("{name}a"), format!("{name}b")];
        for subject in &subjects {
            let linked = identity(subject);
            store.insert_identity(&nora.key, &linked).await.unwrap();
        }
        let gone = subjects.map(|subject| {
            let (store, key) = (store.clone(), nora.key.clone());
            tokio::spawn(async move {
                let gone = store.delete_identity(&key, "https://id.example", &subject);
                gone.await.unwrap()
            })
        });
        let [first, second] = gone;
        let mut outcomes = [first.await.unwrap(), second.await.unwrap()];
        outcomes.sort_by_key(|outcome| *outcome != RemovalOutcome::Done);
        assert_eq!(
            outcomes,
            [RemovalOutcome::Done, RemovalOutcome::LastCredential]
        );
    }
}
