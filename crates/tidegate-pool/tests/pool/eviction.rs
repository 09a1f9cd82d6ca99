//! Tests when the pool opens another connection, and which idle one it closes for it.

use std::time::Duration;

use tidegate_pool::Pool;
use tokio::time::{Instant, sleep};

use super::fake::{Fake, Script, login};
use super::{counters, later, pool, role, run_tasks};

#[tokio::test(start_paused = true)]
async fn the_connection_idle_for_longest_makes_room() {
    let pool = pool(4);
    let names = ["a", "b", "c", "d"];
    for name in names {
        drop(pool.acquire(&login(name, name)).await.unwrap());
        sleep(Duration::from_millis(10)).await;
    }
    drop(pool.acquire(&login("a", "a")).await.unwrap());
    drop(pool.acquire(&login("e", "e")).await.unwrap());
    assert!(
        role(&pool, &login("b", "b")).is_none(),
        "b was idle for longest"
    );
    assert!(role(&pool, &login("a", "a")).is_some());
    assert_eq!((pool.stats().held, counters(&pool).evicted), (4, 1));
    run_tasks().await;
    assert_eq!(pool.connector().closed(), ["b"]);
}

/// A pool of four connections, all idle: those of `b`, `a/x`, `a/y` and `a/z`, in the order of
/// their last use.
async fn full_pool() -> Pool<Fake> {
    let pool = pool(4);
    for (database, role) in [("b", "b"), ("a", "a/x"), ("a", "a/y"), ("a", "a/z")] {
        drop(pool.acquire(&login(database, role)).await.unwrap());
        sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(pool.stats().held, 4, "idle ones may be more than the share");
    pool
}

#[tokio::test(start_paused = true)]
async fn a_database_at_its_share_makes_room_among_its_own() {
    let pool = full_pool().await;
    drop(pool.acquire(&login("a", "a/w")).await.unwrap());
    run_tasks().await;
    assert_eq!(pool.connector().closed(), ["a/x"]);
}

#[tokio::test(start_paused = true)]
async fn a_database_above_its_share_makes_room_for_the_others() {
    let pool = full_pool().await;
    for role in ["b/x", "b/y"] {
        drop(pool.acquire(&login("b", role)).await.unwrap());
    }
    run_tasks().await;
    assert_eq!(
        pool.connector().closed(),
        ["a/x", "b"],
        "`b` was idle for longest, as soon as both have their share"
    );
}

#[tokio::test(start_paused = true)]
async fn no_role_loses_its_last_connection_while_another_has_a_surplus_one() {
    let pool = pool(4);
    let (a, b) = (login("a", "a"), login("b", "b"));
    drop(pool.acquire(&login("c", "c")).await.unwrap());
    drop(pool.acquire(&b).await.unwrap());
    sleep(Duration::from_millis(10)).await;
    drop((pool.acquire(&a).await, pool.acquire(&a).await));
    drop(pool.acquire(&login("d", "d")).await.unwrap());
    run_tasks().await;
    assert_eq!(pool.connector().closed(), ["a"], "the spare one, used last");
    let checked_out = (pool.acquire(&b).await, later(&pool, &b));
    sleep(Duration::from_secs(1)).await;
    assert!(checked_out.1.is_finished());
    assert_eq!(
        pool.connector().closed(),
        ["a", "c"],
        "a second one is worth the last of a role that does not use it"
    );
}

/// Waiting is cheaper: a login costs PostgreSQL as much as hundreds of short statements.
#[tokio::test(start_paused = true)]
async fn a_request_waits_for_a_connection_of_its_role_before_another_is_opened() {
    let pool = pool(10);
    let alice = login("shop", "shop/alice");
    let held = pool.acquire(&alice).await.unwrap();
    let next = later(&pool, &alice);
    sleep(Duration::from_millis(5)).await;
    drop(held);
    assert!(next.await.unwrap().is_ok());
    assert_eq!(counters(&pool).opened, 1);
    let held = pool.acquire(&alice).await.unwrap();
    let start = Instant::now();
    assert!(pool.acquire(&alice).await.is_ok());
    assert!(
        start.elapsed() < Duration::from_millis(15),
        "the time of a login"
    );
    assert_eq!(counters(&pool).opened, 2);
    drop(held);
}

#[tokio::test(start_paused = true)]
async fn a_burst_behind_one_login_opens_one_connection() {
    let pool = pool(40);
    let alice = login("shop", "shop/alice");
    pool.connector()
        .script(Script::Slow(Duration::from_millis(8)));
    let waiting: Vec<_> = (0..16).map(|_| later(&pool, &alice)).collect();
    for task in waiting {
        drop(task.await.unwrap().unwrap());
    }
    assert_eq!(counters(&pool).opened, 1);
}

/// A database may have more idle connections than its share, but not more in use.
#[tokio::test(start_paused = true)]
async fn a_database_that_has_its_share_in_use_waits_beside_idle_connections() {
    let pool = full_pool().await;
    let checked_out = (
        pool.acquire(&login("a", "a/x")).await.unwrap(),
        pool.acquire(&login("a", "a/y")).await.unwrap(),
    );
    let waits = later(&pool, &login("a", "a/z"));
    sleep(Duration::from_secs(1)).await;
    assert!(!waits.is_finished());
    assert!(pool.acquire(&login("b", "b")).await.is_ok());
    drop(checked_out.0);
    assert!(waits.await.unwrap().is_ok());
    assert_eq!(counters(&pool).opened, 4);
    drop(checked_out.1);
}
