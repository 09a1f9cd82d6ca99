//! The pool with scripted connections, in paused time.

mod eviction;
mod fake;
mod full;
mod outage;
mod queue;
mod random;

use std::sync::Arc;
use std::time::Duration;

use tidegate_pool::{Counters, Pool, PooledConnection, RoleStats, Settings};
use tidegate_sql::{DatabaseName, Login, RoleName};
use tidegate_wire::backoff::Jitter;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use fake::{Fake, anonymous, login, session};

fn pool(capacity: usize) -> Pool<Fake> {
    pool_with(Settings {
        capacity,
        ..Settings::default()
    })
}

fn pool_with(settings: Settings) -> Pool<Fake> {
    Pool::new(Fake::default(), settings, Jitter::none())
}

/// Runs all tasks until each of them waits; the time is paused.
async fn run_tasks() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}

fn later(
    pool: &Pool<Fake>,
    login: &Login,
) -> JoinHandle<tidegate_sql::Result<PooledConnection<Fake>>> {
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

/// A connection opened for one user lacks the pinned settings of a role that anonymous callers
/// share.
#[tokio::test(start_paused = true)]
async fn a_role_that_becomes_shared_starts_with_new_connections() {
    let pool = pool(10);
    let (one, all) = (login("shop", "shop/a"), anonymous("shop", "shop/a"));
    let (idle, busy) = (
        pool.acquire(&one).await.unwrap(),
        pool.acquire(&one).await.unwrap(),
    );
    let old = [idle.number, busy.number];
    drop(idle);
    let shared = pool.acquire(&all).await.unwrap();
    assert!(!old.contains(&shared.number));
    run_tasks().await;
    assert_eq!(pool.connector().closed().len(), 1, "the idle one is closed");
    drop(busy);
    run_tasks().await;
    assert_eq!(
        pool.connector().closed().len(),
        2,
        "the other when it came back"
    );
    let number = shared.number;
    drop(shared);
    assert_eq!(pool.acquire(&all).await.unwrap().number, number);
}

/// Anonymous callers may have shared a user's role before. In this test the role is a former
/// default user's, and is busy all the time.
#[tokio::test(start_paused = true)]
async fn a_role_without_anonymous_callers_is_its_users_again() {
    let pool = pool(40);
    let (one, all) = (login("shop", "shop/a"), anonymous("shop", "shop/a"));
    let shared = async |login| pool.acquire(login).await.unwrap().shared;
    let runs_on = pool.acquire(&all).await.unwrap();
    let busy = pool.acquire(&one).await.unwrap();
    assert!(busy.shared);
    for _ in 0..59 {
        sleep(Duration::from_secs(1)).await;
        assert!(shared(&one).await, "strangers may come again soon");
    }
    sleep(Duration::from_secs(1)).await;
    assert!(!shared(&one).await);
    drop((runs_on, busy));
    assert!(!shared(&one).await, "what came back is closed");
    assert!(shared(&all).await);
    sleep(Duration::from_secs(59)).await;
    let waits = later(&pool, &all);
    assert!(waits.await.unwrap().unwrap().shared);
    sleep(Duration::from_secs(2)).await;
    assert!(shared(&one).await, "each of the strangers counts");
}

#[tokio::test(start_paused = true)]
async fn anonymous_callers_get_no_connection_that_was_opened_for_one_user() {
    let pool = pool(10);
    let (one, all) = (login("shop", "shop/a"), anonymous("shop", "shop/a"));
    for logins in [[&all, &one], [&one, &all]] {
        let waiting: Vec<_> = logins.map(|login| later(&pool, login)).into();
        for (login, task) in logins.into_iter().zip(waiting) {
            let lease = task.await.unwrap().unwrap();
            assert!(lease.shared || login == &one);
        }
        assert!(pool.acquire(&all).await.unwrap().shared);
        pool.close(&one.database);
        run_tasks().await;
        assert_eq!(pool.stats().held, 0);
    }
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
    let (owner, guest) = (login("shop", "shop"), fake::anonymous("shop", "shop/guest"));
    let mut leases = Vec::new();
    for _ in 0..8 {
        leases.push(pool.acquire(&owner).await.unwrap());
    }
    let ninth = later(&pool, &owner);
    run_tasks().await;
    assert_eq!(role(&pool, &owner).unwrap().checked_out, 8);
    assert_eq!(role(&pool, &owner).unwrap().waiting, 1);
    for _ in 0..10 {
        leases.push(pool.acquire(&guest).await.unwrap());
    }
    let eleventh = later(&pool, &guest);
    run_tasks().await;
    assert_eq!(
        role(&pool, &guest).unwrap().checked_out,
        10,
        "a quarter of 40"
    );
    let (bob, carl) = (login("shop", "shop/bob"), login("shop", "shop/carl"));
    leases.push(pool.acquire(&bob).await.unwrap());
    leases.push(pool.acquire(&carl).await.unwrap());
    let beyond = later(&pool, &bob);
    run_tasks().await;
    assert_eq!(pool.stats().held, 20, "half of 40");
    assert!(pool.acquire(&login("other", "other")).await.is_ok());
    drop(leases);
    for task in [ninth, eleventh, beyond] {
        assert!(task.await.unwrap().is_ok());
    }
}

#[tokio::test(start_paused = true)]
async fn a_reset_runs_after_the_result_and_a_waiter_takes_the_connection_as_it_ends() {
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
async fn no_request_depends_on_a_slow_reset() {
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
async fn what_runs_on_counts_against_its_role_until_it_has_ended() {
    let pool = pool_with(Settings {
        capacity: 10,
        per_role: 2,
        ..Settings::default()
    });
    let (alice, bob) = (login("shop", "shop/alice"), login("shop", "shop/bob"));
    let ended = Arc::new(tokio::sync::Notify::new());
    for _ in 0..2 {
        let mut lease = pool.acquire(&alice).await.unwrap();
        (lease.uncertain, lease.runs_on) = (true, Some(ended.clone()));
    }
    run_tasks().await;
    assert_eq!(role(&pool, &alice).unwrap().closing, 2);
    assert_eq!(pool.stats().busy(), 2, "a node that stops waits for them");
    // The wait may take any time.
    sleep(Duration::from_mins(10)).await;
    let waits = later(&pool, &alice);
    run_tasks().await;
    assert!(!waits.is_finished(), "a third was opened");
    assert!(pool.acquire(&bob).await.is_ok(), "others are not concerned");
    ended.notify_one();
    assert!(waits.await.unwrap().is_ok());
    assert_eq!(role(&pool, &alice).unwrap().closing, 1);
    ended.notify_one();
    run_tasks().await;
    pool.close(&alice.database);
    run_tasks().await;
    assert_eq!(pool.stats().held, 0);
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
    let checked_out = pool.acquire(&alice).await.unwrap();
    assert_eq!(pool.close(&DatabaseName::new("shop")), 1);
    assert!(role(&pool, &bob).is_none());
    drop(checked_out);
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
async fn a_pool_that_shrinks_closes_idle_connections_at_once_and_others_when_they_are_returned() {
    let pool = pool(6);
    let (a, b) = (login("a", "a"), login("b", "b"));
    let mut busy = Vec::new();
    for _ in 0..3 {
        busy.push(pool.acquire(&a).await.unwrap());
    }
    drop(pool.acquire(&b).await.unwrap());
    drop(busy.pop());
    assert_eq!(pool.stats().held, 4);
    assert_eq!(pool.set_capacity(1), 1, "two are in use");
    assert_eq!(pool.stats().held, 2, "the idle ones are closed");
    drop(busy.pop());
    assert_eq!(pool.stats().held, 1);
    drop(busy);
    assert_eq!((pool.stats().held, pool.stats().capacity), (1, 1));
    drop(pool.acquire(&b).await.unwrap());
    assert_eq!(pool.stats().held, 1, "the other was closed first");
    assert_eq!(pool.set_capacity(4), 0);
    drop((
        pool.acquire(&a).await.unwrap(),
        pool.acquire(&b).await.unwrap(),
    ));
    assert_eq!(pool.stats().held, 2);
}
