//! Servers that are down or refuse a login.

use std::time::Duration;

use tidegate_postgres::backoff::Jitter;
use tidegate_postgres::pool::{Pool, Repaired, Settings};
use tidegate_sql::Error;
use tokio::time::{Instant, sleep};

use super::fake::{Fake, Repairs, Script, login, strangers};
use super::{counters, later, pool, settle};

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
async fn what_found_the_server_up_for_one_user_goes_to_no_strangers() {
    let pool = pool(20);
    let (one, all) = (login("shop", "shop/a"), strangers("shop", "shop/a"));
    // While it is in use, others wait for it although the server is down.
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

/// Nobody waits for the role while it is probed, so that the pool has forgotten it.
#[tokio::test(start_paused = true)]
async fn what_found_the_server_up_is_what_those_had_who_found_it_down() {
    for shared in [false, true] {
        let pool = pool(20);
        let (one, all) = (login("shop", "shop/a"), strangers("shop", "shop/a"));
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
        settle().await;
        // Others meanwhile hold one that begins differently: the probe's fits nobody.
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
async fn a_role_that_cannot_log_in_is_repaired_and_tried_again() {
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
    repairs.end(None);
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
    assert_eq!(repairs.count(), 1, "within the second");
    assert!(pool.stats().reachable, "others are not concerned");
    sleep(Duration::from_secs(1)).await;
    assert!(pool.acquire(&alice).await.is_err());
    assert_eq!(repairs.count(), 2);
}

/// The seconds between the repairs of a role whose requests come all the time.
async fn pauses(pool: &Pool<Fake>, repairs: &Repairs, count: usize) -> Vec<u64> {
    let alice = login("shop", "shop/alice");
    let mut times = Vec::new();
    while times.len() <= count {
        let before = repairs.count();
        let told = pool.acquire(&alice).await;
        if let Ok(lease) = told {
            lease.discard();
        }
        if repairs.count() > before {
            times.push(Instant::now());
        }
        pool.connector().script(Script::WrongPassword);
        sleep(Duration::from_millis(100)).await;
    }
    let pairs = times.windows(2);
    pairs.map(|pair| (pair[1] - pair[0]).as_secs()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_role_that_cannot_log_in_all_the_same_is_repaired_ever_more_rarely() {
    let fake = Fake::default();
    let repairs = fake.repairs();
    let pool = Pool::new(fake, repairs.clone(), Settings::default(), Jitter::none());
    let in_vain = [1, 2, 4, 8, 16, 32, 60, 60];
    // Somebody spoils it again before anybody can log in.
    repairs.lead_to(Script::WrongPassword);
    pool.connector().script(Script::WrongPassword);
    assert_eq!(pauses(&pool, &repairs, 8).await, in_vain);
    // As soon as somebody can, it is repaired once a second again.
    repairs.lead_to(Script::Up);
    sleep(Duration::from_mins(1)).await;
    assert_eq!(pauses(&pool, &repairs, 3).await, [1; 3]);
    // A server that is full says nothing of the repair.
    repairs.lead_to(Script::LimitOf("shop/alice"));
    sleep(Duration::from_secs(1)).await;
    assert_eq!(pauses(&pool, &repairs, 4).await, [1; 4]);
}

/// An administrator's connection that PostgreSQL has no place for, say.
#[tokio::test(start_paused = true)]
async fn only_what_a_role_may_have_done_itself_makes_repairs_rare() {
    let fake = Fake::default();
    let repairs = fake.repairs();
    let pool = Pool::new(fake, repairs.clone(), Settings::default(), Jitter::none());
    pool.connector().script(Script::WrongPassword);
    for (answer, expected) in [
        (None, [1; 4]),
        (Some(Repaired::NotToBlame), [1; 4]),
        (Some(Repaired::Held), [1, 2, 4, 8]),
    ] {
        repairs.end(answer);
        assert_eq!(pauses(&pool, &repairs, 4).await, expected, "{answer:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn no_repair_begins_while_another_is_under_way() {
    let fake = Fake::default();
    let repairs = fake.repairs();
    let pool = Pool::new(fake, repairs.clone(), Settings::default(), Jitter::none());
    let alice = login("shop", "shop/alice");
    // One that helps, so that the next may begin a second later.
    for repair in [Duration::ZERO, Duration::from_secs(4)] {
        pool.close(&alice.database);
        pool.connector().script(Script::WrongPassword);
        repairs.slow(Duration::ZERO, repair);
        let first = later(&pool, &alice);
        sleep(repair / 2).await;
        let second = later(&pool, &alice);
        assert!(first.await.unwrap().is_ok() && second.await.unwrap().is_ok());
        sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(repairs.count(), 2);
}

/// The first requests after its password has drifted, say.
#[tokio::test(start_paused = true)]
async fn who_comes_while_a_role_is_repaired_waits_for_that() {
    let fake = Fake::default();
    let repairs = fake.repairs();
    let pool = Pool::new(fake, repairs.clone(), Settings::default(), Jitter::none());
    let alice = login("shop", "shop/alice");
    pool.connector().script(Script::WrongPassword);
    repairs.slow(Duration::ZERO, Duration::from_secs(2));
    let start = Instant::now();
    let waiting: Vec<_> = (0..5).map(|_| later(&pool, &alice)).collect();
    for task in waiting {
        assert!(task.await.unwrap().is_ok());
    }
    assert_eq!(start.elapsed(), Duration::from_secs(2));
    assert_eq!((repairs.count(), counters(&pool).repairs), (1, 1));
}

/// A user can hold its own row locked, by an `ALTER ROLE` in a transaction that stays open.
#[tokio::test(start_paused = true)]
async fn an_administrator_who_does_not_answer_about_a_role_shuts_out_nobody_else() {
    let fake = Fake::default();
    let repairs = fake.repairs();
    let pool = Pool::new(fake, repairs.clone(), Settings::default(), Jitter::none());
    let (alice, bob) = (login("shop", "shop/alice"), login("shop", "shop/bob"));
    let never = Duration::from_hours(1);
    for (look, repair) in [(Duration::ZERO, never), (never, Duration::ZERO)] {
        repairs.slow(look, repair);
        pool.connector().script(Script::WrongPassword);
        let waits = later(&pool, &alice);
        // Just given up, and before anybody could probe.
        sleep(Duration::from_millis(5_010)).await;
        assert!(waits.await.unwrap().is_err());
        assert!(pool.stats().reachable);
        pool.connector().script(Script::Up);
        assert!(pool.acquire(&bob).await.is_ok());
        sleep(Duration::from_secs(1)).await;
    }
    assert_eq!((repairs.count(), repairs.looks()), (1, 2));
}

#[tokio::test(start_paused = true)]
async fn a_database_that_is_found_to_be_gone_is_not_looked_for_with_each_request() {
    let fake = Fake::default();
    let repairs = fake.repairs();
    let pool = Pool::new(fake, repairs.clone(), Settings::default(), Jitter::none());
    let alice = login("gone", "gone/alice");
    pool.connector().script(Script::Dropped);
    for looks in 1..=2 {
        for _ in 0..3 {
            let told = pool.acquire(&alice).await;
            assert!(matches!(told, Err(Error::NoDatabase)), "{told:?}");
        }
        assert_eq!(repairs.looks(), looks);
        sleep(Duration::from_secs(1)).await;
    }
    pool.connector().script(Script::Up);
    assert!(pool.acquire(&alice).await.is_ok());
    assert_eq!(repairs.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_role_that_is_turned_away_is_told_so_and_not_repaired() {
    let fake = Fake::default();
    let repairs = fake.repairs();
    let pool = Pool::new(fake, repairs.clone(), Settings::default(), Jitter::none());
    let alice = login("shop", "shop/alice");
    let (held, idle) = (pool.acquire(&alice).await, pool.acquire(&alice).await);
    pool.connector().script(Script::NoLogin);
    let waiting: Vec<_> = (0..3).map(|_| later(&pool, &alice)).collect();
    for task in waiting {
        let error = task.await.unwrap().unwrap_err();
        assert_eq!(error.sqlstate(), Some("28000"), "{error:?}");
    }
    drop((held, idle));
    settle().await;
    let attempts = pool.connector().attempts();
    let error = pool.acquire(&alice).await.unwrap_err();
    assert_eq!(error.sqlstate(), Some("28000"), "{error:?}");
    assert_eq!(
        (pool.connector().open(), pool.connector().attempts()),
        (0, attempts),
        "what was open serves it no more, and PostgreSQL is left alone for a second"
    );
    assert_eq!(repairs.count(), 0);
    assert!(pool.stats().reachable, "others are not concerned");
    pool.connector().script(Script::Up);
    sleep(Duration::from_secs(1)).await;
    assert!(pool.acquire(&alice).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_role_that_is_found_to_be_kept_out_is_told_so_and_not_repaired() {
    let fake = Fake::default();
    let repairs = fake.repairs();
    let pool = Pool::new(fake, repairs.clone(), Settings::default(), Jitter::none());
    let alice = login("shop", "shop/alice");
    for _ in 0..3 {
        pool.connector().script(Script::Expired);
        let waiting: Vec<_> = (0..3).map(|_| later(&pool, &alice)).collect();
        for task in waiting {
            let error = task.await.unwrap().unwrap_err();
            assert_eq!(error.sqlstate(), Some("28000"), "{error:?}");
        }
        pool.connector().script(Script::Up);
        sleep(Duration::from_secs(1)).await;
        assert!(pool.acquire(&alice).await.is_ok());
        pool.close(&alice.database);
    }
    assert_eq!(repairs.count(), 0);
    pool.connector().script(Script::WrongPassword);
    assert!(pool.acquire(&alice).await.is_ok());
    assert_eq!(repairs.count(), 1);
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
