use std::sync::Arc;

use tidegate_oauth::{IssuerStore, KeyState};

use super::samples::{NOW, key};

super::cases!(
    a_key_comes_back_as_it_was,
    a_state_has_one_key,
    of_nodes_that_make_a_key_at_once_one_wins,
    promoting_moves_both_keys_or_none,
    only_a_retired_key_is_deleted,
);

async fn a_key_comes_back_as_it_was(store: Arc<dyn IssuerStore>) {
    let (active, next) = (key("a", "active"), key("b", "next"));
    assert!(store.insert_signing_key(&active).await.unwrap());
    assert!(store.insert_signing_key(&next).await.unwrap());
    assert_eq!(store.signing_keys().await.unwrap(), [active, next]);
}

async fn a_state_has_one_key(store: Arc<dyn IssuerStore>) {
    for state in ["active", "next"] {
        assert!(store.insert_signing_key(&key(state, state)).await.unwrap());
        assert!(
            !store
                .insert_signing_key(&key("another", state))
                .await
                .unwrap()
        );
    }
    assert_eq!(store.signing_keys().await.unwrap().len(), 2);
}

async fn of_nodes_that_make_a_key_at_once_one_wins(store: Arc<dyn IssuerStore>) {
    let tasks: Vec<_> = (0..20)
        .map(|number| {
            let store = store.clone();
            let key = key(&format!("k{number}"), "active");
            tokio::spawn(async move { store.insert_signing_key(&key).await.unwrap() })
        })
        .collect();
    let mut added = 0;
    for task in tasks {
        added += usize::from(task.await.unwrap());
    }
    assert_eq!(added, 1);
    assert_eq!(store.signing_keys().await.unwrap().len(), 1);
}

async fn promoting_moves_both_keys_or_none(store: Arc<dyn IssuerStore>) {
    let (active, next) = (key("a", "active"), key("b", "next"));
    store.insert_signing_key(&active).await.unwrap();
    assert!(
        !store.promote_signing_key("b", "a", NOW).await.unwrap(),
        "there is no next"
    );
    assert_eq!(
        store.signing_keys().await.unwrap(),
        [active],
        "nothing has moved"
    );
    store.insert_signing_key(&next).await.unwrap();
    let tasks: Vec<_> = (0..5)
        .map(|_| {
            let store = store.clone();
            tokio::spawn(async move { store.promote_signing_key("b", "a", NOW).await.unwrap() })
        })
        .collect();
    let mut promoted = 0;
    for task in tasks {
        promoted += usize::from(task.await.unwrap());
    }
    assert_eq!(promoted, 1);
    let states: Vec<_> = store
        .signing_keys()
        .await
        .unwrap()
        .iter()
        .map(|k| k.state)
        .collect();
    assert_eq!(
        states,
        [
            KeyState::Retired { since: NOW },
            KeyState::Active { since: NOW }
        ]
    );
}

async fn only_a_retired_key_is_deleted(store: Arc<dyn IssuerStore>) {
    store.insert_signing_key(&key("a", "active")).await.unwrap();
    store.insert_signing_key(&key("b", "next")).await.unwrap();
    assert!(!store.delete_signing_key("a").await.unwrap());
    assert!(!store.delete_signing_key("b").await.unwrap());
    assert!(store.promote_signing_key("b", "a", NOW).await.unwrap());
    assert!(store.delete_signing_key("a").await.unwrap());
    assert!(!store.delete_signing_key("a").await.unwrap());
    assert_eq!(store.signing_keys().await.unwrap().len(), 1);
}
