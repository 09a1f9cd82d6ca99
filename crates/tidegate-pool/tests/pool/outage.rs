//! Servers that are down or refuse a login.

use std::time::Duration;

use tidegate_sql::{Error, LoginRefused};
use tokio::time::{Instant, sleep};

use super::fake::{Script, anonymous, login};
use super::{later, pool, run_tasks};

#[tokio::test(start_paused = true)]
async fn a_server_that_is_down_answers_everyone_at_once_and_is_found_again_by_itself() {
    let pool = pool(20);
    let alice = login("shop", "shop/alice");
    pool.connector().script(Script::Down);
    let waiting: Vec<_> = (0..20).map(|_| later(&pool, &alice)).collect();
    for task in waiting {
        let error = task.await.unwrap().unwrap_err();
        assert!(matches!(error, Error::Unavailable { .. }), "{error:?}");
    }
    assert!(!pool.stats().reachable);
    let attempts = pool.connector().attempts();
    let start = Instant::now();
    for _ in 0..100 {
        let error = pool.acquire(&alice).await.unwrap_err();
        assert!(matches!(error, Error::Unavailable { retry_after, .. }
            if retry_after <= Duration::from_secs(30)));
    }
    assert_eq!(start.elapsed(), Duration::ZERO);
    assert_eq!(
        pool.connector().attempts(),
        attempts,
        "requests do not hammer it"
    );
    sleep(Duration::from_millis(3_150)).await;
    assert_eq!(
        pool.connector().attempts() - attempts,
        5,
        "100, 200, 400, 800, 1,600 ms"
    );
    pool.connector().script(Script::Up);
    sleep(Duration::from_millis(3_250)).await;
    assert!(pool.stats().reachable);
    assert!(pool.acquire(&alice).await.is_ok());
    pool.connector().script(Script::Down);
    assert!(pool.acquire(&login("x", "x")).await.is_err());
    let attempts = pool.connector().attempts();
    sleep(Duration::from_millis(110)).await;
    assert_eq!(
        pool.connector().attempts() - attempts,
        1,
        "the success started it over"
    );
}

#[tokio::test(start_paused = true)]
async fn a_probe_of_one_user_is_not_given_to_anonymous_callers() {
    let pool = pool(20);
    let (one, all) = (login("shop", "shop/a"), anonymous("shop", "shop/a"));
    // Requests wait for the connection that is checked out, although the server is down.
    let held = pool.acquire(&one).await.unwrap();
    pool.connector().script(Script::Down);
    let waits = later(&pool, &one);
    sleep(Duration::from_millis(10)).await;
    assert!(!pool.stats().reachable);
    let slow = Script::Slow(Duration::from_millis(300));
    pool.connector().script(slow);
    let attempts = pool.connector().attempts();
    sleep(Duration::from_millis(150)).await;
    assert_eq!(pool.connector().attempts() - attempts, 1, "it is probed");
    waits.abort();
    let lease = later(&pool, &all).await.unwrap().unwrap();
    assert!(lease.shared);
    drop(held);
}

/// During the probe no request waits for the role, so the pool has removed it.
#[tokio::test(start_paused = true)]
async fn what_found_the_server_up_is_what_those_had_who_found_it_down() {
    for shared in [false, true] {
        let pool = pool(20);
        let (one, all) = (login("shop", "shop/a"), anonymous("shop", "shop/a"));
        let (same, others) = if shared { (&all, &one) } else { (&one, &all) };
        pool.connector().script(Script::Down);
        assert!(pool.acquire(same).await.is_err());
        pool.connector().script(Script::Up);
        sleep(Duration::from_millis(150)).await;
        assert!(pool.stats().reachable);
        let attempts = pool.connector().attempts();
        let lease = pool.acquire(same).await.unwrap();
        assert_eq!(lease.shared, shared);
        assert_eq!(pool.connector().attempts(), attempts, "the probe's is kept");
        lease.discard();
        run_tasks().await;
        // While the probe runs, the role gets a caller that needs other settings. No request can
        // then use the connection of the probe.
        let slow = Script::Slow(Duration::from_millis(300));
        pool.connector().script(Script::Down);
        assert!(pool.acquire(same).await.is_err());
        pool.connector().script(slow);
        sleep(Duration::from_millis(150)).await;
        pool.resume();
        pool.connector().script(Script::Up);
        let held = pool.acquire(others).await.unwrap();
        sleep(Duration::from_millis(400)).await;
        assert_eq!((held.shared, pool.connector().open()), (!shared, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_respond_makes_no_request_hang() {
    let pool = pool(20);
    pool.connector()
        .script(Script::Slow(Duration::from_hours(1)));
    let start = Instant::now();
    let error = pool.acquire(&login("a", "a")).await.unwrap_err();
    assert!(matches!(
        error,
        Error::Unavailable { .. } | Error::PoolTimeout { .. }
    ));
    assert!(start.elapsed() <= Duration::from_secs(6));
}

#[tokio::test(start_paused = true)]
async fn a_role_that_cannot_log_in_is_refused_for_a_second_and_others_go_on() {
    let pool = pool(20);
    let (alice, bob) = (login("shop", "shop/alice"), login("shop", "shop/bob"));
    pool.connector().script(Script::WrongPassword("shop/alice"));
    for _ in 0..2 {
        let before = pool.connector().attempts();
        for _ in 0..3 {
            let error = pool.acquire(&alice).await.unwrap_err();
            let Error::Unavailable { source, .. } = error else {
                panic!("{error:?}");
            };
            assert!(source.unwrap().is::<LoginRefused>());
        }
        assert_eq!(pool.connector().attempts() - before, 1, "in this second");
        assert!(pool.stats().reachable, "others are not concerned");
        pool.acquire(&bob).await.unwrap().discard();
        sleep(Duration::from_secs(1)).await;
    }
    // An operator has repaired the role's login.
    pool.connector().script(Script::Up);
    assert!(pool.acquire(&alice).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_role_that_may_not_log_in_loses_its_open_connections() {
    let pool = pool(20);
    let alice = login("shop", "shop/alice");
    let (held, idle) = (pool.acquire(&alice).await, pool.acquire(&alice).await);
    pool.connector().script(Script::NoLogin);
    let waiting: Vec<_> = (0..3).map(|_| later(&pool, &alice)).collect();
    for task in waiting {
        let error = task.await.unwrap().unwrap_err();
        assert_eq!(error.sqlstate(), Some("28000"), "{error:?}");
    }
    drop((held, idle));
    run_tasks().await;
    let attempts = pool.connector().attempts();
    let error = pool.acquire(&alice).await.unwrap_err();
    assert_eq!(error.sqlstate(), Some("28000"), "{error:?}");
    assert_eq!(
        (pool.connector().open(), pool.connector().attempts()),
        (0, attempts),
        "what was open serves it no more, and PostgreSQL is left alone for a second"
    );
    assert!(pool.stats().reachable, "others are not concerned");
    pool.connector().script(Script::Up);
    sleep(Duration::from_secs(1)).await;
    assert!(pool.acquire(&alice).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn all_requests_for_a_missing_database_fail() {
    let pool = pool(20);
    pool.connector().script(Script::NoDatabase);
    let waiting: Vec<_> = (0..3)
        .map(|_| later(&pool, &login("gone", "gone")))
        .collect();
    for task in waiting {
        assert!(matches!(task.await.unwrap(), Err(Error::NoDatabase)));
    }
    assert_eq!(pool.stats().held, 0);
}
