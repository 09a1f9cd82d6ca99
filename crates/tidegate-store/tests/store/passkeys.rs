//! Tests of passkeys: each belongs to one user, and its record changes only from what was read.

use std::sync::Arc;

use tidegate_identity::Passkey;
use tidegate_oauth::IssuerStore;

use super::samples::{NOW, user};

super::cases!(
    a_passkey_belongs_to_one_user_and_is_deleted_with_it,
    a_record_is_replaced_only_if_it_is_unchanged,
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
    assert!(!store.delete_passkey(&bob.key, "two").await.unwrap());
    assert!(store.delete_passkey(&alice.key, "two").await.unwrap());
    assert!(!store.delete_passkey(&alice.key, "two").await.unwrap());
    assert!(store.delete_user(&alice.key, NOW).await.unwrap());
    store.insert_user(&alice).await.unwrap();
    assert_eq!(store.passkey("one").await.unwrap(), None);
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
    assert!(store.delete_passkey(&alice.key, "one").await.unwrap());
    assert!(!store.use_passkey(&after, next, NOW).await.unwrap());
}
