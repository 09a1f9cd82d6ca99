//! The order in which requests get connections, and how long they wait.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tidegate_pool::Settings;
use tidegate_sql::Error;
use tokio::time::{Instant, sleep};

use super::fake::{Script, login};
use super::{counters, later, pool, pool_with, role, run_tasks};

#[tokio::test(start_paused = true)]
async fn waiting_requests_of_a_role_are_served_in_the_order_they_came() {
    let pool = pool_with(Settings {
        capacity: 10,
        per_role: 1,
        ..Settings::default()
    });
    let alice = login("shop", "shop/alice");
    let held = pool.acquire(&alice).await.unwrap();
    let order = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let mut tasks = Vec::new();
    for number in 0..5 {
        let (pool, alice, order) = (pool.clone(), alice.clone(), order.clone());
        tasks.push(tokio::spawn(async move {
            let lease = pool.acquire(&alice).await.unwrap();
            order.lock().push(number);
            drop(lease);
        }));
        run_tasks().await;
    }
    drop(held);
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(*order.lock(), [0, 1, 2, 3, 4]);
    assert_eq!(counters(&pool).opened, 1);
}

#[tokio::test(start_paused = true)]
async fn databases_take_turns_when_the_pool_is_full() {
    let pool = pool_with(Settings {
        capacity: 2,
        min_service: Duration::ZERO,
        ..Settings::default()
    });
    let (x, y) = (
        pool.acquire(&login("x", "x")).await,
        pool.acquire(&login("y", "y")).await,
    );
    let order = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let mut tasks = Vec::new();
    // `greedy` comes first with ten requests; the other databases have one each.
    for name in std::iter::repeat_n("greedy", 10).chain(["b", "c", "d"]) {
        let (pool, order) = (pool.clone(), order.clone());
        tasks.push(tokio::spawn(async move {
            let lease = pool.acquire(&login(name, name)).await.unwrap();
            order.lock().push(name);
            sleep(Duration::from_millis(50)).await;
            drop(lease);
        }));
        run_tasks().await;
    }
    drop((x, y));
    for task in tasks {
        task.await.unwrap();
    }
    let order = order.lock();
    let modest = order.iter().rposition(|name| *name != "greedy").unwrap();
    assert!(
        modest <= 5,
        "the modest are served among the first: {order:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_database_that_comes_late_is_not_kept_waiting_by_a_long_queue() {
    let pool = pool_with(Settings {
        capacity: 2,
        min_service: Duration::ZERO,
        ..Settings::default()
    });
    let (greedy, late) = (login("greedy", "greedy"), login("late", "late"));
    let blocker = pool.acquire(&login("x", "x")).await.unwrap();
    let held = pool.acquire(&greedy).await.unwrap();
    let mut queue: VecDeque<_> = (0..5).map(|_| later(&pool, &greedy)).collect();
    run_tasks().await;
    let late = later(&pool, &late);
    run_tasks().await;
    drop(held);
    let first = queue.pop_front().unwrap().await.unwrap().unwrap();
    assert!(!late.is_finished(), "the one that came first");
    drop(first);
    run_tasks().await;
    assert!(late.is_finished(), "then the other database's");
    drop((late, blocker));
    for request in queue {
        assert!(request.await.unwrap().is_ok());
    }
}

#[tokio::test(start_paused = true)]
async fn a_young_connection_serves_its_own_role_before_it_is_given_up() {
    let pool = pool_with(Settings {
        capacity: 2,
        ..Settings::default()
    });
    let (a, b) = (login("a", "a"), login("b", "b"));
    let blocker = pool.acquire(&b).await.unwrap();
    let held = pool.acquire(&a).await.unwrap();
    let other = later(&pool, &login("c", "c"));
    run_tasks().await;
    let own = later(&pool, &a);
    run_tasks().await;
    drop(held);
    let lease = own.await.unwrap().unwrap();
    assert_eq!(counters(&pool).evicted + counters(&pool).closed, 0);
    sleep(Duration::from_millis(500)).await;
    let own = later(&pool, &a);
    run_tasks().await;
    drop(lease);
    run_tasks().await;
    assert!(other.is_finished(), "it is served next");
    assert!(!own.is_finished());
    drop(blocker);
    assert!(own.await.unwrap().is_ok());
}

#[tokio::test(start_paused = true)]
async fn no_request_waits_longer_than_the_bound() {
    let pool = pool_with(Settings {
        capacity: 10,
        per_role: 1,
        ..Settings::default()
    });
    let alice = login("shop", "shop/alice");
    let held = pool.acquire(&alice).await.unwrap();
    let start = Instant::now();
    let error = pool.acquire(&alice).await.unwrap_err();
    assert!(matches!(error, Error::PoolTimeout { .. }), "{error:?}");
    assert_eq!(start.elapsed().as_secs(), 5);
    assert_eq!((pool.stats().waiting, counters(&pool).timeouts), (0, 1));
    drop(held);
    assert!(pool.acquire(&alice).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_full_queue_refuses_at_once_and_one_database_cannot_fill_it() {
    let pool = pool_with(Settings {
        capacity: 4,
        per_role: 1,
        queue: 4,
        ..Settings::default()
    });
    let (a, b) = (login("a", "a"), login("b", "b"));
    let leases = (
        pool.acquire(&a).await.unwrap(),
        pool.acquire(&b).await.unwrap(),
    );
    let mut waiting = vec![later(&pool, &a), later(&pool, &a)];
    run_tasks().await;
    let start = Instant::now();
    let error = pool.acquire(&a).await.unwrap_err();
    assert!(matches!(error, Error::PoolTimeout { .. }), "{error:?}");
    waiting.extend([later(&pool, &b), later(&pool, &b)]);
    run_tasks().await;
    let error = pool.acquire(&login("c", "c")).await.unwrap_err();
    assert!(matches!(error, Error::PoolTimeout { .. }), "{error:?}");
    assert_eq!(start.elapsed(), Duration::ZERO);
    assert_eq!(counters(&pool).rejected, 2);
    drop(leases);
    for task in waiting {
        assert!(task.await.unwrap().is_ok());
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_goes_away_leaves_the_queue_and_wastes_no_connection() {
    let pool = pool_with(Settings {
        capacity: 10,
        per_role: 1,
        ..Settings::default()
    });
    let alice = login("shop", "shop/alice");
    let held = pool.acquire(&alice).await.unwrap();
    let (gone, next) = (later(&pool, &alice), later(&pool, &alice));
    run_tasks().await;
    gone.abort();
    run_tasks().await;
    assert_eq!(pool.stats().waiting, 1);
    drop(held);
    assert!(next.await.unwrap().is_ok());
    pool.connector()
        .script(Script::Slow(Duration::from_secs(1)));
    let other = login("other", "other");
    let gone = later(&pool, &other);
    run_tasks().await;
    gone.abort();
    sleep(Duration::from_secs(2)).await;
    assert_eq!(
        role(&pool, &other).unwrap().idle,
        1,
        "what was opened stays for the next"
    );
}

#[tokio::test(start_paused = true)]
async fn five_hundred_requests_share_few_connections_without_loss() {
    let pool = pool(4);
    let tasks: Vec<_> = (0..500)
        .map(|number| {
            let pool = pool.clone();
            let name = ["a", "b", "c", "d", "e"][number % 5];
            tokio::spawn(async move {
                let mut lease = pool.acquire(&login(name, name)).await?;
                assert_eq!(lease.role.as_str(), name);
                sleep(Duration::from_millis(5)).await;
                lease.reset_due = (number % 3 == 0).then_some(Duration::from_millis(1));
                Ok::<_, Error>(())
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap().unwrap();
    }
    run_tasks().await;
    sleep(Duration::from_millis(50)).await;
    let stats = pool.stats();
    assert!(stats.held <= 4);
    assert!(
        pool.connector().most_open() <= 4,
        "{}",
        pool.connector().most_open()
    );
    assert_eq!(stats.waiting, 0);
    let counted: usize = stats.roles.iter().map(|r| r.idle).sum();
    assert_eq!(counted, stats.held, "all that is held is idle in the end");
    assert!(stats.counters.opened < 60, "{:?}", stats.counters);
}

/// A multiplexed connection is not returned for long. If it were the role's only one, the requests
/// that already wait for it would need a login.
#[tokio::test(start_paused = true)]
async fn the_only_connection_of_a_role_is_not_used_alone_unless_it_may_have_no_others() {
    let alice = login("shop", "shop/alice");
    let pool = pool(10);
    assert!(
        !pool.can_use_one_alone(&alice),
        "the role has no connection"
    );
    let first = pool.acquire(&alice).await.unwrap();
    assert!(!pool.can_use_one_alone(&alice));
    let second = pool.acquire(&alice).await.unwrap();
    assert!(pool.can_use_one_alone(&alice));
    drop((first, second));

    let limited = pool_with(Settings {
        per_role: 1,
        ..Settings::default()
    });
    let _held = limited.acquire(&alice).await.unwrap();
    assert!(limited.can_use_one_alone(&alice));
}
