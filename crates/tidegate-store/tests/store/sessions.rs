use std::sync::Arc;
use std::time::Duration;

use tidegate_identity::{EndReason, SessionId, Timestamp, UserKey};
use tidegate_oauth::{GrantKind, IssuerStore, PurgeBefore, RefreshOutcome, Session, SessionEnd};

use super::samples::{NOW, session};

super::cases!(
    a_session_comes_back_as_it_was,
    a_refresh_token_may_be_presented_until_its_successor_is,
    an_ended_session_accepts_no_token,
    a_session_is_never_kept_beyond_its_close,
    of_fifty_refreshes_with_one_token_all_are_accepted,
    parallel_refreshes_with_growing_tokens_leave_the_highest,
    a_session_is_ended_once,
    ending_a_users_sessions_names_them,
    the_denylist_is_what_was_ended_since,
    purging_deletes_expired_rows,
    of_too_many_guest_sessions_the_idle_are_purged,
);

fn after(seconds: u64) -> Timestamp {
    NOW.plus(Duration::from_secs(seconds))
}

async fn a_session_comes_back_as_it_was(store: Arc<dyn IssuerStore>) {
    let open = session(1, "shop", "alice", "app");
    let ended = Session {
        ended: Some(SessionEnd {
            at: after(1),
            reason: EndReason::RefreshReuse,
        }),
        presented: 1 << 40,
        ..session(u128::MAX >> 8, "shop", "alice", "app")
    };
    store.insert_session(&open).await.unwrap();
    store.insert_session(&ended).await.unwrap();
    assert_eq!(store.session(open.id).await.unwrap(), Some(open));
    assert_eq!(store.session(ended.id).await.unwrap(), Some(ended));
    assert_eq!(
        store.session(SessionId::from_bytes([0; 16])).await.unwrap(),
        None
    );
}

async fn a_refresh_token_may_be_presented_until_its_successor_is(store: Arc<dyn IssuerStore>) {
    let open = session(1, "shop", "alice", "app");
    store.insert_session(&open).await.unwrap();
    let present = async |number| {
        let presented = store
            .present_refresh_token(open.id, number, after(5), after(35))
            .await;
        presented.unwrap()
    };
    let expected = Session {
        presented: 1,
        refreshed_at: after(5),
        expires_at: after(35),
        ..open.clone()
    };
    assert_eq!(present(1).await, RefreshOutcome::Accepted(expected.clone()));
    assert_eq!(
        present(1).await,
        RefreshOutcome::Accepted(expected.clone()),
        "its answer was lost"
    );
    let expected = Session {
        presented: 2,
        ..expected
    };
    assert_eq!(present(2).await, RefreshOutcome::Accepted(expected.clone()));
    assert_eq!(present(1).await, RefreshOutcome::Reused);
    assert_eq!(
        store.session(open.id).await.unwrap(),
        Some(expected),
        "it is as it was"
    );
}

async fn an_ended_session_accepts_no_token(store: Arc<dyn IssuerStore>) {
    let open = session(1, "shop", "alice", "app");
    let present = async |number, now| {
        let presented = store
            .present_refresh_token(open.id, number, now, after(300))
            .await;
        presented.unwrap()
    };
    assert_eq!(
        present(1, after(1)).await,
        RefreshOutcome::Invalid,
        "there is none"
    );
    store.insert_session(&open).await.unwrap();
    assert_eq!(
        present(1, after(30)).await,
        RefreshOutcome::Invalid,
        "it has been idle for too long"
    );
    assert!(matches!(
        present(2, after(29)).await,
        RefreshOutcome::Accepted(_)
    ));
    assert_eq!(
        present(2, after(90)).await,
        RefreshOutcome::Invalid,
        "it has closed"
    );
    assert_eq!(
        present(1, after(90)).await,
        RefreshOutcome::Invalid,
        "dead before superseded"
    );
    store
        .end_session(open.id, EndReason::Revoked, after(30))
        .await
        .unwrap();
    assert_eq!(
        present(2, after(31)).await,
        RefreshOutcome::Invalid,
        "it was ended"
    );
}

async fn a_session_is_never_kept_beyond_its_close(store: Arc<dyn IssuerStore>) {
    let open = session(1, "shop", "alice", "app");
    store.insert_session(&open).await.unwrap();
    let presented = store
        .present_refresh_token(open.id, 1, after(5), after(1_000))
        .await
        .unwrap();
    assert!(matches!(presented, RefreshOutcome::Accepted(s) if s.expires_at == open.closes_at));
}

async fn of_fifty_refreshes_with_one_token_all_are_accepted(store: Arc<dyn IssuerStore>) {
    let open = session(1, "shop", "alice", "app");
    store.insert_session(&open).await.unwrap();
    let tasks: Vec<_> = (0..50)
        .map(|_| {
            let store = store.clone();
            tokio::spawn(async move {
                store
                    .present_refresh_token(open.id, 1, after(1), after(31))
                    .await
                    .unwrap()
            })
        })
        .collect();
    for task in tasks {
        assert!(matches!(task.await.unwrap(), RefreshOutcome::Accepted(s) if s.presented == 1));
    }
}

async fn parallel_refreshes_with_growing_tokens_leave_the_highest(store: Arc<dyn IssuerStore>) {
    let open = session(1, "shop", "alice", "app");
    store.insert_session(&open).await.unwrap();
    let tasks: Vec<_> = (1..=50)
        .map(|number| {
            let store = store.clone();
            tokio::spawn(async move {
                let presented = store
                    .present_refresh_token(open.id, number, after(1), after(31))
                    .await;
                match presented.unwrap() {
                    RefreshOutcome::Accepted(session) => assert_eq!(session.presented, number),
                    other => assert_eq!(other, RefreshOutcome::Reused, "the only other answer"),
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(store.session(open.id).await.unwrap().unwrap().presented, 50);
}

async fn a_session_is_ended_once(store: Arc<dyn IssuerStore>) {
    let open = session(1, "shop", "alice", "app");
    store.insert_session(&open).await.unwrap();
    let tasks: Vec<_> = (0..20)
        .map(|number| {
            let store = store.clone();
            tokio::spawn(async move {
                let reason = if number % 2 == 0 {
                    EndReason::Revoked
                } else {
                    EndReason::RefreshReuse
                };
                store
                    .end_session(open.id, reason, after(number))
                    .await
                    .unwrap()
            })
        })
        .collect();
    let mut ended = 0;
    for task in tasks {
        ended += usize::from(task.await.unwrap());
    }
    assert_eq!(ended, 1);
    let nobody = SessionId::from_bytes([0; 16]);
    assert!(
        !store
            .end_session(nobody, EndReason::Revoked, NOW)
            .await
            .unwrap()
    );
}

async fn ending_a_users_sessions_names_them(store: Arc<dyn IssuerStore>) {
    let (one, two) = (
        session(1, "shop", "alice", "app"),
        session(2, "shop", "alice", "b"),
    );
    let (ended, other) = (
        session(3, "shop", "alice", "b"),
        session(4, "other", "alice", "b"),
    );
    for session in [&one, &two, &ended, &other] {
        store.insert_session(session).await.unwrap();
    }
    store
        .end_session(ended.id, EndReason::Revoked, NOW)
        .await
        .unwrap();
    let alice = UserKey::new("shop", "alice");
    let reason = EndReason::PasswordChanged;
    let mut named = store
        .end_sessions_of_user(&alice, reason, after(2))
        .await
        .unwrap();
    named.sort();
    assert_eq!(named, [one.id, two.id]);
    assert_eq!(
        store
            .end_sessions_of_user(&alice, reason, after(3))
            .await
            .unwrap(),
        []
    );
    let end = store
        .session(ended.id)
        .await
        .unwrap()
        .unwrap()
        .ended
        .unwrap();
    assert_eq!(
        (end.at, end.reason),
        (NOW, EndReason::Revoked),
        "the first end stands"
    );
    assert_eq!(store.session(other.id).await.unwrap().unwrap().ended, None);
}

async fn the_denylist_is_what_was_ended_since(store: Arc<dyn IssuerStore>) {
    for number in 1..=3 {
        let session = session(number.into(), "shop", "alice", "app");
        store.insert_session(&session).await.unwrap();
        store
            .end_session(session.id, EndReason::Revoked, after(number))
            .await
            .unwrap();
    }
    store
        .insert_session(&session(9, "shop", "alice", "app"))
        .await
        .unwrap();
    let found = store.ended_sessions(after(2)).await.unwrap();
    let mut times: Vec<_> = found.iter().map(|end| end.at).collect();
    times.sort();
    assert_eq!(times, [after(2), after(3)], "the moment itself counts");
    assert_eq!(
        store
            .ended_sessions(Timestamp::from_millis(i64::MIN))
            .await
            .unwrap()
            .len(),
        3
    );
}

async fn purging_deletes_expired_rows(store: Arc<dyn IssuerStore>) {
    let (open, ended) = (
        session(1, "shop", "a", "app"),
        session(2, "shop", "b", "app"),
    );
    let expired = Session {
        expires_at: after(1),
        ..session(3, "shop", "c", "app")
    };
    for session in [&open, &ended, &expired] {
        store.insert_session(session).await.unwrap();
    }
    store
        .end_session(ended.id, EndReason::Revoked, after(5))
        .await
        .unwrap();
    let before = |sessions| PurgeBefore {
        sessions,
        attempts: Timestamp::from_millis(0),
        audit: Timestamp::from_millis(0),
        flows: Timestamp::from_millis(0),
    };
    assert_eq!(store.purge(before(after(1))).await.unwrap(), 0);
    assert_eq!(store.purge(before(after(2))).await.unwrap(), 1);
    assert_eq!(store.purge(before(after(6))).await.unwrap(), 1);
    assert_eq!(store.session(open.id).await.unwrap(), Some(open));
    assert_eq!(store.session(ended.id).await.unwrap(), None);
}

async fn of_too_many_guest_sessions_the_idle_are_purged(store: Arc<dyn IssuerStore>) {
    let guest = |number: u32, database: &str| Session {
        grant: GrantKind::Guest,
        refreshed_at: after(number.into()),
        ..session(number.into(), database, "guest", "app")
    };
    let guests: Vec<_> = (1..=5).map(|number| guest(number, "shop")).collect();
    let person = Session {
        grant: GrantKind::Password,
        refreshed_at: NOW,
        ..session(6, "shop", "alice", "app")
    };
    let elsewhere = guest(7, "other");
    for session in guests.iter().chain([&person, &elsewhere]) {
        store.insert_session(session).await.unwrap();
    }
    // Two sessions of each tenant are kept. Of the others, those that were refreshed recently are
    // kept too.
    assert_eq!(store.purge_guests(after(0), 2).await.unwrap(), 0);
    assert_eq!(store.purge_guests(after(3), 2).await.unwrap(), 2);
    for (session, stays) in guests.iter().zip([false, false, true, true, true]) {
        let found = store.session(session.id).await.unwrap();
        assert_eq!(found.is_some(), stays, "{session:?}");
    }
    assert_eq!(store.purge_guests(after(60), 2).await.unwrap(), 1);
    assert_eq!(store.purge_guests(after(60), 2).await.unwrap(), 0);
    for session in [&person, &elsewhere] {
        assert!(store.session(session.id).await.unwrap().is_some());
    }
}
