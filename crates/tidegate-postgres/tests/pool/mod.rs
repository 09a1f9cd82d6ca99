//! The pool with connections that need no PostgreSQL, in paused time.

mod chance;
mod fake;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use fake::{Fake, Script, login, session, strangers};
use tidegate_postgres::backoff::Jitter;
use tidegate_postgres::pool::{Counters, Lease, NoRepair, Pool, RoleStats, Settings};
use tidegate_sql::{DatabaseName, Error, Login, RoleName};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

fn pool(capacity: usize) -> Pool<Fake> {
    pool_with(Settings {
        capacity,
        ..Settings::default()
    })
}

fn pool_with(settings: Settings) -> Pool<Fake> {
    Pool::new(
        Fake::default(),
        Arc::new(NoRepair),
        settings,
        Jitter::none(),
    )
}

/// Lets every task run until all of them wait; time stands still meanwhile.
async fn settle() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}

fn later(pool: &Pool<Fake>, login: &Login) -> JoinHandle<tidegate_sql::Result<Lease<Fake>>> {
    let (pool, login) = (pool.clone(), login.clone());
    tokio::spawn(async move { pool.acquire(&login).await })
}

fn role(pool: &Pool<Fake>, login: &Login) -> Option<RoleStats> {
    let mut roles = pool.stats().roles.into_iter();
    roles.find(|role| role.key.database == login.database && role.key.role == login.role)
}

fn counters(pool: &Pool<Fake>) -> Counters {
    pool.stats().counters
}

#[tokio::test(start_paused = true)]
async fn a_returned_connection_is_lent_again() {
    let pool = pool(10);
    let alice = login("shop", "shop/alice");
    let first = pool.acquire(&alice).await.unwrap().number;
    let again = pool.acquire(&alice).await.unwrap();
    assert_eq!(again.number, first);
    assert!(!again.session_changed());
    assert_eq!(counters(&pool).opened, 1);
    assert_eq!(counters(&pool).reused, 1);
}

/// A connection that was opened for one user lacks the pins of a role that strangers share.
#[tokio::test(start_paused = true)]
async fn a_role_that_becomes_shared_starts_with_new_connections() {
    let pool = pool(10);
    let (one, all) = (login("shop", "shop/a"), strangers("shop", "shop/a"));
    let (idle, busy) = (
        pool.acquire(&one).await.unwrap(),
        pool.acquire(&one).await.unwrap(),
    );
    let old = [idle.number, busy.number];
    drop(idle);
    let shared = pool.acquire(&all).await.unwrap();
    assert!(!old.contains(&shared.number));
    settle().await;
    assert_eq!(pool.connector().closed().len(), 1, "the idle one is closed");
    drop(busy);
    settle().await;
    assert_eq!(
        pool.connector().closed().len(),
        2,
        "the other when it came back"
    );
    let number = shared.number;
    drop(shared);
    assert_eq!(pool.acquire(&all).await.unwrap().number, number);
}

#[tokio::test(start_paused = true)]
async fn the_connection_used_last_is_lent_first_and_the_sessions_own_before_that() {
    let pool = pool(10);
    let (a, b) = (
        session("shop", "shop/alice", 1),
        session("shop", "shop/alice", 2),
    );
    let (one, two) = (
        pool.acquire(&a).await.unwrap(),
        pool.acquire(&b).await.unwrap(),
    );
    let (number_a, number_b) = (one.number, two.number);
    drop(one);
    drop(two);
    assert_eq!(pool.acquire(&a).await.unwrap().number, number_a);
    assert_eq!(pool.acquire(&b).await.unwrap().number, number_b);
    let stranger = pool
        .acquire(&session("shop", "shop/alice", 3))
        .await
        .unwrap();
    assert_eq!(stranger.number, number_b, "the connection used last");
    assert!(stranger.session_changed(), "another session had it");
}

#[tokio::test(start_paused = true)]
async fn connections_of_different_roles_are_never_mixed() {
    let pool = pool(10);
    for (database, role) in [("a", "a"), ("a", "a/x"), ("b", "a"), ("b", "b")] {
        let lease = pool.acquire(&login(database, role)).await.unwrap();
        assert_eq!(
            (lease.database.as_str(), lease.role.as_str()),
            (database, role)
        );
    }
    for (database, role) in [("b", "a"), ("a", "a/x"), ("b", "b"), ("a", "a")] {
        let lease = pool.acquire(&login(database, role)).await.unwrap();
        assert_eq!(
            (lease.database.as_str(), lease.role.as_str()),
            (database, role)
        );
    }
    assert_eq!(counters(&pool).opened, 4);
}

#[tokio::test(start_paused = true)]
async fn a_role_a_database_and_the_default_user_keep_to_their_shares() {
    let pool = pool(40);
    let (owner, guest) = (login("shop", "shop"), fake::strangers("shop", "shop/guest"));
    let mut leases = Vec::new();
    for _ in 0..8 {
        leases.push(pool.acquire(&owner).await.unwrap());
    }
    let ninth = later(&pool, &owner);
    settle().await;
    assert_eq!(role(&pool, &owner).unwrap().lent, 8);
    assert_eq!(role(&pool, &owner).unwrap().waiting, 1);
    for _ in 0..10 {
        leases.push(pool.acquire(&guest).await.unwrap());
    }
    let eleventh = later(&pool, &guest);
    settle().await;
    assert_eq!(role(&pool, &guest).unwrap().lent, 10, "a quarter of 40");
    let (bob, carl) = (login("shop", "shop/bob"), login("shop", "shop/carl"));
    leases.push(pool.acquire(&bob).await.unwrap());
    leases.push(pool.acquire(&carl).await.unwrap());
    let beyond = later(&pool, &bob);
    settle().await;
    assert_eq!(pool.stats().held, 20, "half of 40");
    assert!(pool.acquire(&login("other", "other")).await.is_ok());
    drop(leases);
    for task in [ninth, eleventh, beyond] {
        assert!(task.await.unwrap().is_ok());
    }
}

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
    settle().await;
    assert_eq!(pool.connector().closed(), ["b"]);
}

#[tokio::test(start_paused = true)]
async fn a_database_at_its_share_makes_room_among_its_own() {
    let pool = pool(4);
    for role in ["a/x", "a/y"] {
        drop(pool.acquire(&login("a", role)).await.unwrap());
        sleep(Duration::from_millis(10)).await;
    }
    drop(pool.acquire(&login("a", "a/z")).await.unwrap());
    settle().await;
    assert_eq!(pool.connector().closed(), ["a/x"]);
    assert_eq!(pool.stats().held, 2);
}

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
        settle().await;
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
        turn: Duration::ZERO,
        ..Settings::default()
    });
    let (x, y) = (
        pool.acquire(&login("x", "x")).await,
        pool.acquire(&login("y", "y")).await,
    );
    let order = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let mut tasks = Vec::new();
    // `greedy` comes first with ten requests; the others have one each.
    for name in std::iter::repeat_n("greedy", 10).chain(["b", "c", "d"]) {
        let (pool, order) = (pool.clone(), order.clone());
        tasks.push(tokio::spawn(async move {
            let lease = pool.acquire(&login(name, name)).await.unwrap();
            order.lock().push(name);
            sleep(Duration::from_millis(50)).await;
            drop(lease);
        }));
        settle().await;
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
        turn: Duration::ZERO,
        ..Settings::default()
    });
    let (greedy, late) = (login("greedy", "greedy"), login("late", "late"));
    let blocker = pool.acquire(&login("x", "x")).await.unwrap();
    let held = pool.acquire(&greedy).await.unwrap();
    let mut queue: VecDeque<_> = (0..5).map(|_| later(&pool, &greedy)).collect();
    settle().await;
    let late = later(&pool, &late);
    settle().await;
    drop(held);
    let first = queue.pop_front().unwrap().await.unwrap().unwrap();
    assert!(!late.is_finished(), "the one that came first");
    drop(first);
    settle().await;
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
    settle().await;
    let own = later(&pool, &a);
    settle().await;
    drop(held);
    let lease = own.await.unwrap().unwrap();
    assert_eq!(counters(&pool).evicted + counters(&pool).closed, 0);
    sleep(Duration::from_millis(500)).await;
    let own = later(&pool, &a);
    settle().await;
    drop(lease);
    settle().await;
    assert!(other.is_finished(), "its turn has come");
    assert!(!own.is_finished());
    drop(blocker);
    assert!(own.await.unwrap().is_ok());
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_longer_than_the_bound() {
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
    settle().await;
    let start = Instant::now();
    let error = pool.acquire(&a).await.unwrap_err();
    assert!(matches!(error, Error::PoolTimeout { .. }), "{error:?}");
    waiting.extend([later(&pool, &b), later(&pool, &b)]);
    settle().await;
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
    settle().await;
    gone.abort();
    settle().await;
    assert_eq!(pool.stats().waiting, 1);
    drop(held);
    assert!(next.await.unwrap().is_ok());
    pool.connector()
        .script(Script::Slow(Duration::from_secs(1)));
    let other = login("other", "other");
    let gone = later(&pool, &other);
    settle().await;
    gone.abort();
    sleep(Duration::from_secs(2)).await;
    assert_eq!(
        role(&pool, &other).unwrap().idle,
        1,
        "what was opened stays for the next"
    );
}

#[tokio::test(start_paused = true)]
async fn a_reset_runs_behind_the_answer_and_a_waiter_takes_the_connection_as_it_ends() {
    let pool = pool(10);
    let alice = login("shop", "shop/alice");
    let mut lease = pool.acquire(&alice).await.unwrap();
    let number = lease.number;
    lease.reset_due = Some(Duration::from_millis(10));
    drop(lease);
    assert_eq!(role(&pool, &alice).unwrap().resetting, 1);
    let start = Instant::now();
    let lease = pool.acquire(&alice).await.unwrap();
    assert_eq!((lease.number, lease.resets), (number, 1));
    assert_eq!(start.elapsed(), Duration::from_millis(10));
    assert_eq!(counters(&pool).opened, 1);
}

#[tokio::test(start_paused = true)]
async fn nobody_relies_on_a_slow_reset() {
    let pool = pool(10);
    let alice = login("shop", "shop/alice");
    let mut lease = pool.acquire(&alice).await.unwrap();
    let number = lease.number;
    lease.reset_due = Some(Duration::from_secs(2));
    drop(lease);
    let start = Instant::now();
    assert_ne!(pool.acquire(&alice).await.unwrap().number, number);
    assert!(start.elapsed() < Duration::from_millis(100));
    sleep(Duration::from_secs(3)).await;
    assert_eq!(
        role(&pool, &alice).unwrap().idle,
        2,
        "it came back in the end"
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_not_certain_is_never_lent() {
    let pool = pool(10);
    let alice = login("shop", "shop/alice");
    let mut lease = pool.acquire(&alice).await.unwrap();
    let first = lease.number;
    lease.uncertain = true;
    drop(lease);
    let mut lease = pool.acquire(&alice).await.unwrap();
    let second = lease.number;
    assert_ne!(second, first);
    lease.reset_due = Some(Duration::from_mins(10));
    drop(lease);
    sleep(Duration::from_secs(10)).await;
    assert_eq!(counters(&pool).reset_failures, 1);
    let lease = pool.acquire(&alice).await.unwrap();
    assert_ne!(lease.number, second, "a reset that does not end closes");
    let third = lease.number;
    drop(lease);
    pool.connector().sever(third);
    let lease = pool.acquire(&alice).await.unwrap();
    assert_ne!(
        lease.number, third,
        "the server closed it while it was idle"
    );
    let fourth = lease.number;
    lease.discard();
    assert_ne!(pool.acquire(&alice).await.unwrap().number, fourth);
}

#[tokio::test(start_paused = true)]
async fn idle_connections_and_old_ones_are_closed() {
    let pool = pool(10);
    let alice = login("shop", "shop/alice");
    drop(pool.acquire(&alice).await.unwrap());
    sleep(Duration::from_secs(58)).await;
    assert_eq!(pool.stats().held, 1);
    sleep(Duration::from_secs(4)).await;
    assert_eq!(pool.stats().held, 0, "idle for a minute");
    let lease = pool.acquire(&alice).await.unwrap();
    sleep(Duration::from_mins(31)).await;
    drop(lease);
    assert_eq!(pool.stats().held, 0, "lived for half an hour");
    assert!(
        pool.stats().roles.is_empty(),
        "nothing is kept of roles without connections"
    );
}

#[tokio::test(start_paused = true)]
async fn closing_a_database_closes_what_is_idle_and_what_comes_back() {
    let pool = pool(20);
    let (alice, bob) = (login("shop", "shop/alice"), login("shop", "shop/bob"));
    let other = login("other", "other");
    drop(pool.acquire(&other).await.unwrap());
    drop(pool.acquire(&bob).await.unwrap());
    let lent = pool.acquire(&alice).await.unwrap();
    assert_eq!(pool.close(&DatabaseName::new("shop")), 1);
    assert!(role(&pool, &bob).is_none());
    drop(lent);
    assert_eq!(pool.stats().held, 1, "only the other database is left");
    let (a, b) = (
        pool.acquire(&alice).await.unwrap(),
        pool.acquire(&bob).await.unwrap(),
    );
    assert_eq!(
        pool.close_role(&DatabaseName::new("shop"), &RoleName::new("shop/bob")),
        1
    );
    drop((a, b));
    assert_eq!(
        role(&pool, &alice).unwrap().idle,
        1,
        "opened after the first close"
    );
    assert!(role(&pool, &bob).is_none());
}

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
async fn a_server_that_does_not_answer_hangs_nobody() {
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
async fn a_full_server_costs_another_role_its_idle_connection_first() {
    let pool = pool(20);
    drop(pool.acquire(&login("a", "a")).await.unwrap());
    pool.connector().script(Script::Limit(1));
    let b = pool.acquire(&login("b", "b")).await.unwrap();
    assert_eq!(pool.connector().closed(), ["a"]);
    let start = Instant::now();
    let error = pool.acquire(&login("c", "c")).await.unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. }), "{error:?}");
    let attempts = pool.connector().attempts();
    assert!(pool.acquire(&login("c", "c")).await.is_err());
    assert_eq!(
        pool.connector().attempts(),
        attempts,
        "it is left alone for a second"
    );
    assert_eq!(start.elapsed(), Duration::ZERO);
    drop(b);
    sleep(Duration::from_secs(1)).await;
    assert!(pool.acquire(&login("c", "c")).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_full_for_one_role_does_not_shut_out_the_others() {
    let pool = pool(40);
    for name in ["a", "b", "c"] {
        drop(pool.acquire(&login(name, name)).await.unwrap());
        sleep(Duration::from_millis(10)).await;
    }
    let limited = login("limited", "limited");
    let held = pool.acquire(&limited).await.unwrap();
    pool.connector().script(Script::FullFor("limited"));
    let waiting = later(&pool, &limited);
    sleep(Duration::from_secs(3)).await;
    assert!(pool.acquire(&login("d", "d")).await.is_ok());
    assert_eq!(counters(&pool).evicted, 1, "it costs the others little");
    drop(held);
    assert!(
        waiting.await.unwrap().is_ok(),
        "its own connection came back"
    );
}

#[tokio::test(start_paused = true)]
async fn a_role_that_cannot_log_in_is_repaired_once_a_minute() {
    let fake = Fake::default();
    let repairs = fake.repairs();
    let settings = Settings::default();
    let pool = Pool::new(fake, repairs.clone(), settings, Jitter::none());
    let alice = login("shop", "shop/alice");
    pool.connector().script(Script::WrongPassword);
    assert!(
        pool.acquire(&alice).await.is_ok(),
        "repaired and tried again"
    );
    assert_eq!(repairs.count(), 1);
    pool.close(&alice.database);
    repairs.fail();
    pool.connector().script(Script::WrongPassword);
    let error = pool.acquire(&alice).await.unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. }), "{error:?}");
    let attempts = pool.connector().attempts();
    assert!(pool.acquire(&alice).await.is_err());
    assert_eq!(
        pool.connector().attempts(),
        attempts,
        "not tried again at once"
    );
    assert_eq!(repairs.count(), 1, "within the minute");
    assert!(pool.stats().reachable, "others are not concerned");
    sleep(Duration::from_secs(61)).await;
    assert!(pool.acquire(&alice).await.is_err());
    assert_eq!(repairs.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_database_that_is_not_there_is_told_to_all_who_wait_for_it() {
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
    settle().await;
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

#[test]
fn the_pool_takes_four_fifths_of_the_server_divided_by_the_nodes() {
    assert_eq!(Settings::for_server(100, 3, 1).capacity, 77);
    assert_eq!(Settings::for_server(100, 3, 2).capacity, 38);
    assert_eq!(Settings::for_server(3, 3, 1).capacity, 1);
}
