//! Servers that have no connection left (53300).

use std::time::Duration;

use tidegate_sql::Error;
use tokio::time::{Instant, sleep};

use super::fake::{Script, login};
use super::{counters, later, pool, run_tasks};

#[tokio::test(start_paused = true)]
async fn on_a_full_server_requests_wait_for_the_connections_that_the_pool_has() {
    let pool = pool(20);
    drop(pool.acquire(&login("a", "a")).await.unwrap());
    pool.connector().script(Script::Limit(1));
    let b = pool.acquire(&login("b", "b")).await.unwrap();
    assert_eq!(pool.connector().closed(), ["a"], "closed before the login");
    let attempts = pool.connector().attempts();
    let waiting: Vec<_> = (0..20)
        .map(|number| {
            let (pool, login) = (pool.clone(), login("c", &format!("c/{}", number % 5)));
            tokio::spawn(async move { pool.acquire(&login).await.map(drop) })
        })
        .collect();
    sleep(Duration::from_millis(900)).await;
    assert_eq!(
        pool.connector().attempts(),
        attempts,
        "PostgreSQL is left alone"
    );
    drop(b);
    for task in waiting {
        assert!(task.await.unwrap().is_ok());
    }
    assert_eq!(pool.stats().held, 1);
}

#[tokio::test(start_paused = true)]
async fn where_the_pool_has_no_connection_at_all_a_full_server_is_reported_at_once() {
    let pool = pool(20);
    pool.connector().script(Script::Limit(0));
    let names = ["a", "b", "c", "d"];
    for second in 1..=3 {
        let start = Instant::now();
        for name in names.iter().cycle().take(40) {
            let error = pool.acquire(&login(name, name)).await.unwrap_err();
            assert!(matches!(error, Error::Unavailable { .. }), "{error:?}");
        }
        assert_eq!(start.elapsed(), Duration::ZERO);
        assert_eq!(pool.connector().attempts(), second, "one login a second");
        sleep(Duration::from_secs(1)).await;
    }
    assert!(pool.stats().reachable);
    pool.connector().script(Script::Up);
    for name in names {
        assert!(pool.acquire(&login(name, name)).await.is_ok());
    }
}

/// After the first successful login shows that the server has room, the next login follows at once.
#[tokio::test(start_paused = true)]
async fn a_pool_grows_again_as_soon_as_a_full_server_has_room() {
    let pool = pool(20);
    let mut leases = vec![pool.acquire(&login("a", "a")).await.unwrap()];
    pool.connector().script(Script::Limit(1));
    let waiting: Vec<_> = (0..10)
        .map(|number| later(&pool, &login(&format!("t{number}"), "r")))
        .collect();
    sleep(Duration::from_millis(500)).await;
    pool.connector().script(Script::Up);
    sleep(Duration::from_secs(2)).await;
    for task in waiting {
        assert!(task.is_finished());
        leases.push(task.await.unwrap().unwrap());
    }
    assert_eq!(pool.stats().held, 11);
}

#[tokio::test(start_paused = true)]
async fn the_connection_limit_of_one_role_does_not_concern_the_others() {
    let pool = pool(40);
    for name in ["a", "b", "c"] {
        drop(pool.acquire(&login(name, name)).await.unwrap());
        sleep(Duration::from_millis(10)).await;
    }
    let limited = login("limited", "limited");
    let held = pool.acquire(&limited).await.unwrap();
    pool.connector().script(Script::LimitOf("limited"));
    let waiting = later(&pool, &limited);
    sleep(Duration::from_secs(3)).await;
    assert!(pool.connector().attempts() <= 4 + 4, "one a second");
    assert!(pool.acquire(&login("d", "d")).await.is_ok());
    assert_eq!(counters(&pool).evicted, 0, "it costs the others nothing");
    drop(held);
    assert!(
        waiting.await.unwrap().is_ok(),
        "its own connection came back"
    );
}

/// The database has a `CONNECTION LIMIT`, so its roles share the connections.
#[tokio::test(start_paused = true)]
async fn a_role_whose_database_is_at_its_limit_gets_the_place_of_an_idle_one() {
    let pool = pool(40);
    drop(pool.acquire(&login("shop", "shop/a")).await.unwrap());
    drop(pool.acquire(&login("other", "other")).await.unwrap());
    pool.connector().script(Script::LimitOf("shop/b"));
    let waiting = later(&pool, &login("shop", "shop/b"));
    run_tasks().await;
    assert_eq!(pool.connector().closed(), ["shop/a"]);
    pool.connector().script(Script::Up);
    sleep(Duration::from_secs(2)).await;
    assert!(waiting.await.unwrap().is_ok());
}
