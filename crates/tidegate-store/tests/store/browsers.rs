//! Tests browser sessions, second factors, and the sessions of a user.

use std::sync::Arc;

use tidegate_identity::{BrowserSession, SecondFactor, UserKey};
use tidegate_oauth::{IssuerStore, Session};

use super::codes::{after, alice, browser, hash};
use super::samples::{NOW, session, user};

super::cases!(
    browser_sessions_come_and_go,
    a_second_factor_step_is_used_once,
    recovery_codes_are_used_once,
    records_of_a_user_are_deleted_with_the_user,
    a_users_live_sessions_are_listed,
    a_clients_session_is_found_among_many_others,
);

pub(super) fn factor() -> SecondFactor {
    SecondFactor {
        sealed_secret: vec![0, 1, 255],
        used_step: 10,
        recovery_codes: 2,
    }
}

async fn browser_sessions_come_and_go(store: Arc<dyn IssuerStore>) {
    store.insert_user(&user("shop", "alice")).await.unwrap();
    let (one, two) = (
        browser(1),
        BrowserSession {
            address: None,
            ..browser(2)
        },
    );
    for session in [&one, &two] {
        store.insert_browser_session(session).await.unwrap();
    }
    assert_eq!(
        store.browser_session(one.id).await.unwrap(),
        Some(one.clone())
    );
    store
        .touch_browser_session(two.id, after(5), after(105))
        .await
        .unwrap();
    let two = BrowserSession {
        seen_at: after(5),
        expires_at: after(105),
        ..two
    };
    let list = async |now| store.browser_sessions_of_user(&alice(), now).await.unwrap();
    assert_eq!(
        list(NOW).await,
        [two.clone(), one.clone()],
        "the last used first"
    );
    assert_eq!(list(after(100)).await, [two]);
    assert!(store.delete_browser_session(one.id).await.unwrap());
    assert!(!store.delete_browser_session(one.id).await.unwrap());
    assert_eq!(store.browser_session(one.id).await.unwrap(), None);
}

async fn a_second_factor_step_is_used_once(store: Arc<dyn IssuerStore>) {
    store.insert_user(&user("shop", "alice")).await.unwrap();
    let key = alice();
    assert_eq!(store.second_factor(&key).await.unwrap(), None);
    let codes = [hash(1), hash(2)];
    assert!(
        store
            .insert_second_factor(&key, &factor(), &codes)
            .await
            .unwrap()
    );
    assert!(
        !store
            .insert_second_factor(&key, &factor(), &codes)
            .await
            .unwrap()
    );
    assert_eq!(store.second_factor(&key).await.unwrap(), Some(factor()));
    assert!(!store.use_second_factor_step(&key, 10).await.unwrap());
    let tasks: Vec<_> = (0..10)
        .map(|_| {
            let store = store.clone();
            tokio::spawn(async move { store.use_second_factor_step(&alice(), 11).await.unwrap() })
        })
        .collect();
    let mut used = 0;
    for task in tasks {
        used += usize::from(task.await.unwrap());
    }
    assert_eq!(used, 1);
    assert!(!store.use_second_factor_step(&key, 9).await.unwrap());
    assert!(store.delete_second_factor(&key).await.unwrap());
    assert!(!store.delete_second_factor(&key).await.unwrap());
    assert!(
        store
            .insert_second_factor(&key, &factor(), &codes)
            .await
            .unwrap()
    );
}

async fn recovery_codes_are_used_once(store: Arc<dyn IssuerStore>) {
    store.insert_user(&user("shop", "alice")).await.unwrap();
    let key = alice();
    let codes = [hash(1), hash(2)];
    store
        .insert_second_factor(&key, &factor(), &codes)
        .await
        .unwrap();
    assert!(store.use_recovery_code(&key, hash(2)).await.unwrap());
    assert!(!store.use_recovery_code(&key, hash(2)).await.unwrap());
    assert!(
        !store
            .use_recovery_code(&UserKey::new("shop", "bob"), hash(1))
            .await
            .unwrap()
    );
    let left = store.second_factor(&key).await.unwrap().unwrap();
    assert_eq!(left.recovery_codes, 1);
}

async fn records_of_a_user_are_deleted_with_the_user(store: Arc<dyn IssuerStore>) {
    for drop_tenant in [false, true] {
        store.insert_user(&user("shop", "alice")).await.unwrap();
        store.insert_browser_session(&browser(1)).await.unwrap();
        store
            .insert_second_factor(&alice(), &factor(), &[hash(1), hash(2)])
            .await
            .unwrap();
        if drop_tenant {
            store.delete_tenant("shop", NOW).await.unwrap();
        } else {
            store.delete_user(&alice(), NOW).await.unwrap();
        }
        assert_eq!(store.browser_session(hash(1)).await.unwrap(), None);
        assert_eq!(store.second_factor(&alice()).await.unwrap(), None);
    }
}

async fn a_users_live_sessions_are_listed(store: Arc<dyn IssuerStore>) {
    let (one, two) = (
        session(1, "shop", "alice", "app"),
        session(2, "shop", "alice", "b"),
    );
    for session in [
        &one,
        &two,
        &session(3, "shop", "bob", "app"),
        &session(4, "other", "alice", "b"),
    ] {
        store.insert_session(session).await.unwrap();
    }
    store
        .present_refresh_token(two.id, 1, after(1), after(31))
        .await
        .unwrap();
    let ids = async |client, now| -> Vec<_> {
        let found = store.sessions_of_user(&alice(), client, now).await.unwrap();
        found.into_iter().map(|session| session.id).collect()
    };
    let all = ids(None, after(1)).await;
    assert_eq!(all, [two.id, one.id], "the last used first");
    assert_eq!(ids(Some("app"), after(1)).await, [one.id]);
    assert_eq!(ids(Some("b"), after(1)).await, [two.id]);
    assert_eq!(ids(None, after(30)).await, [two.id]);
    assert_eq!(ids(None, after(31)).await, []);
}

/// A program that signs in every minute has more sessions than a list returns.
async fn a_clients_session_is_found_among_many_others(store: Arc<dyn IssuerStore>) {
    let old = session(1, "shop", "alice", "app");
    store.insert_session(&old).await.unwrap();
    for number in 2..1003 {
        let newer = Session {
            refreshed_at: after(1),
            ..session(number, "shop", "alice", "b")
        };
        store.insert_session(&newer).await.unwrap();
    }
    let found = store
        .sessions_of_user(&alice(), Some("app"), after(2))
        .await;
    let ids: Vec<_> = found.unwrap().iter().map(|session| session.id).collect();
    assert_eq!(ids, [old.id]);
}
