//! Runs random operations in random order, and checks that the counts add up and that no request
//! waits forever.

use std::time::Duration;

use tidegate_pool::{Pool, Settings};
use tidegate_sql::{DatabaseName, Error};
use tokio::time::{Instant, sleep};

use super::fake::{Fake, Script, anonymous, session};
use super::{pool_with, run_tasks};

/// A linear congruential generator (Knuth's MMIX).
struct RandomNumbers(u64);

impl RandomNumbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    fn millis(&mut self, bound: u64) -> Duration {
        Duration::from_millis(self.below(bound))
    }
}

#[tokio::test(start_paused = true)]
async fn the_books_balance_whatever_happens() {
    for seed in 0..40 {
        let settings = Settings {
            capacity: 6,
            per_role: 3,
            queue: 100,
            min_service: Duration::from_millis(20),
            max_lifetime: Duration::from_secs(3),
            ..Settings::default()
        };
        let pool = pool_with(settings);
        let mut random = RandomNumbers(seed);
        let requests: Vec<_> = (0..150).map(|_| request(&pool, &mut random)).collect();
        for _ in 0..30 {
            disturb(&pool, &mut random);
            sleep(random.millis(120)).await;
            audit(&pool, seed);
        }
        pool.connector().script(Script::Up);
        for request in requests {
            if let Err(error) = request.await {
                assert!(error.is_cancelled(), "seed {seed}: {error}");
            }
        }
        sleep(Duration::from_secs(40)).await;
        run_tasks().await;
        audit(&pool, seed);
        let stats = pool.stats();
        assert_eq!(stats.waiting, 0, "seed {seed}");
        let idle: usize = stats.roles.iter().map(|role| role.idle).sum();
        assert_eq!(
            (stats.held, pool.connector().open()),
            (idle, idle),
            "seed {seed}"
        );
        assert!(stats.reachable, "seed {seed}");
        assert!(
            pool.acquire(&session("a", "a", 1)).await.is_ok(),
            "seed {seed}"
        );
    }
}

/// A request that arrives at a random time, works for a random time, may leave its connection in
/// any state, and may be cancelled.
fn request(pool: &Pool<Fake>, random: &mut RandomNumbers) -> tokio::task::JoinHandle<()> {
    let database = ["a", "b", "c", "d"][usize::try_from(random.below(4)).unwrap()];
    let login = match random.below(3) {
        0 => session(database, database, 1),
        1 => session(database, &format!("{database}/x"), random.below(2).into()),
        _ => anonymous(database, &format!("{database}/guest")),
    };
    let (delay, work, end) = (random.millis(2_000), random.millis(30), random.below(10));
    let reset = random.millis(30);
    let pool = pool.clone();
    let task = tokio::spawn(async move {
        sleep(delay).await;
        let start = Instant::now();
        let outcome = pool.acquire(&login).await;
        assert!(
            start.elapsed() <= Duration::from_secs(6),
            "{:?}",
            start.elapsed()
        );
        match outcome {
            Ok(mut lease) => {
                assert_eq!(lease.role, login.role.as_str());
                assert_eq!(lease.database, login.database.as_str());
                assert_eq!(
                    lease.reset_due, None,
                    "nothing is checked_out before its reset"
                );
                sleep(work).await;
                lease.uncertain = end == 0;
                lease.reset_due = (end < 5).then_some(reset);
            }
            Err(Error::PoolTimeout { .. } | Error::Unavailable { .. }) => {}
            Err(error) => panic!("{error:?}"),
        }
    });
    if end == 9 {
        let (abort, after) = (task.abort_handle(), delay + reset);
        tokio::spawn(async move {
            sleep(after).await;
            abort.abort();
        });
    }
    task
}

fn disturb(pool: &Pool<Fake>, random: &mut RandomNumbers) {
    match random.below(8) {
        0 => pool.connector().script(Script::Down),
        1 => pool.connector().script(Script::Limit(3)),
        2 => pool
            .connector()
            .script(Script::Slow(Duration::from_millis(40))),
        3 => drop(pool.close(&DatabaseName::new("a"))),
        4 => pool.resume(),
        _ => pool.connector().script(Script::Up),
    }
}

fn audit(pool: &Pool<Fake>, seed: u64) {
    let stats = pool.stats();
    let counted: usize = stats
        .roles
        .iter()
        .map(|role| role.idle + role.checked_out + role.opening + role.resetting + role.closing)
        .sum();
    assert_eq!(stats.held, counted, "seed {seed}: {stats:?}");
    assert!(stats.held <= stats.capacity, "seed {seed}: {stats:?}");
    let waiting: usize = stats.roles.iter().map(|role| role.waiting).sum();
    assert_eq!(stats.waiting, waiting, "seed {seed}: {stats:?}");
    for role in &stats.roles {
        let busy: usize = stats
            .roles
            .iter()
            .filter(|other| other.key.database == role.key.database)
            .map(|other| other.checked_out + other.opening + other.resetting + other.closing)
            .sum();
        assert!(busy <= 3, "seed {seed}: more than the share: {stats:?}");
        let held = role.idle + role.checked_out + role.opening + role.resetting + role.closing;
        assert!(held <= 3, "seed {seed}: {role:?}");
        assert!(
            held + role.waiting > 0,
            "seed {seed}: nothing is kept of {role:?}"
        );
        assert!(
            role.idle == 0 || role.waiting == 0 || busy == 3,
            "seed {seed}: {role:?} waits beside an idle one"
        );
    }
}
