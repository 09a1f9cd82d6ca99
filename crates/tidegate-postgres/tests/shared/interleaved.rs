//! Pipelines of many users on multiplexed connections, with failures of all kinds in between.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tidegate_sql::{Error, Login, PipelineError};

use super::{WHO, notes, ours, tenant, user};
use crate::fixture::{Fixture, Rows};
use crate::pipeline::Plan;

const USERS: usize = 40;

/// A row that the user may see, and another user's, which it may not.
fn own_and_other(number: usize) -> Plan {
    let other = ours("select secret from notes where id = :id");
    let other = other.set([&(number % USERS + 1).to_string()]);
    Plan::new([ours(WHO), ours("select owner, secret from notes"), other])
        .ours()
        .snapshot()
}

fn check_own(rows: &[Rows], login: &Login, number: usize) {
    let who = &rows[0].values[0][0];
    assert!(who.starts_with(&format!("\"{} ", login.role)), "{who}");
    let secret = format!("\"s{number}\"");
    let owner = format!("\"{}\"", login.role);
    assert_eq!(rows[1].values, [[owner, secret]]);
    assert!(rows[2].values.is_empty(), "a note of another user");
}

/// Runs other pipelines of the user, some of which fail, besides the one that must succeed.
async fn disturb(fixture: &Fixture, login: &Login, number: usize, round: usize) {
    match (number + round) % 20 {
        0 | 5 | 10 => {
            let fails = [WHO, "select 1 / (id - id) from notes", WHO].map(ours);
            let failed = Plan::new(fails).ours().snapshot().run(fixture, login).await;
            is_expected(failed, "22012");
        }
        1 | 6 | 11 => {
            let amount = [WHO, "select amount from salaries"].map(ours);
            let ran = Plan::new(amount)
                .ours()
                .snapshot()
                .run(fixture, login)
                .await;
            match ran {
                Ok(rows) => assert!(number % 2 == 1 && rows[1].values == [["10"]]),
                failed if number.is_multiple_of(2) => is_expected(failed, "42501"),
                failed => is_expected(failed, ""),
            }
        }
        2 => {
            let time = Duration::from_micros((round as u64 % 20) * 50);
            let gone = own_and_other(number);
            drop(tokio::time::timeout(time, gone.run(fixture, login)).await);
        }
        3 => {
            let hurried = ours("select owner from notes").within(Duration::from_millis(20));
            match hurried.run(fixture, login).await {
                Ok(rows) => assert_eq!(rows.values, [[format!("\"{}\"", login.role)]]),
                Err(error) => assert!(is_killed(&error) || matches!(error, Error::Deadline)),
            }
        }
        _ => {}
    }
}

fn is_killed(error: &Error) -> bool {
    matches!(error, Error::Unavailable { .. })
}

/// Checks that a pipeline failed with this SQLSTATE, or because its backend was killed.
fn is_expected(ran: Result<Vec<Rows>, PipelineError>, code: &str) {
    let failed = ran.expect_err("it fails");
    let as_meant = failed.error.sqlstate() == Some(code);
    assert!(as_meant || is_killed(&failed.error), "{failed:?}");
}

/// Runs pipelines of a user until stopped. Returns how many failed because their backend was
/// killed.
async fn one_user(fixture: Arc<Fixture>, number: usize, stop: Arc<AtomicBool>) -> usize {
    let login = user(&fixture, number);
    let mut lost = 0;
    for round in 0.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        match own_and_other(number).run(&fixture, &login).await {
            Ok(rows) => check_own(&rows, &login, number),
            Err(failed) if is_killed(&failed.error) => lost += 1,
            Err(failed) => panic!("{failed:?}"),
        }
        disturb(&fixture, &login, number, round).await;
    }
    lost
}

/// Runs pipelines of all users until `pipelines` were multiplexed, with `meanwhile` in parallel.
/// Returns how many failed.
async fn run_users(fixture: &Arc<Fixture>, pipelines: u64, meanwhile: impl AsyncFn()) -> usize {
    let stop = Arc::new(AtomicBool::new(false));
    let users: Vec<_> = (1..=USERS)
        .map(|number| tokio::spawn(one_user(fixture.clone(), number, stop.clone())))
        .collect();
    let deadline = Instant::now() + Duration::from_mins(2);
    while fixture.users.multiplexed_requests() < pipelines {
        let multiplexed = fixture.users.multiplexed_requests();
        assert!(Instant::now() < deadline, "only {multiplexed} pipelines");
        assert!(users.iter().all(|one| !one.is_finished()), "a user failed");
        meanwhile().await;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    stop.store(true, Ordering::Relaxed);
    let ended = join_all(users).await.into_iter();
    ended.map(|lost| lost.unwrap()).sum()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pipelines_of_many_users_interleave_on_few_connections() {
    let (fixture, open) = tenant("shared_interleaved", USERS).await;
    notes(&fixture, USERS).await;
    let lost = run_users(&fixture, 1_000, async || {}).await;
    assert_eq!((lost, open.invalidated()), (0, 0));
    let held = fixture
        .value(
            "SELECT max(n)::text || ' ' || count(*) FROM (SELECT count(*) AS n FROM pg_stat_activity \
             WHERE datname = 'shared_interleaved' AND usename LIKE 'shared_interleaved/%' \
             GROUP BY usename) roles",
        )
        .await;
    let (connections, roles) = held.split_once(' ').unwrap();
    assert_eq!(roles, "1", "all users on one login");
    assert!(connections.parse::<usize>().unwrap() <= 19, "{held}");
}

/// The authenticator could run these statements itself. Without a role switch PostgreSQL would
/// therefore not refuse them; only the role in the result would show it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn statements_that_need_no_right_run_as_their_caller() {
    let (fixture, open) = tenant("shared_interleaved_roles", USERS).await;
    let one = async |number: usize| {
        let login = user(&fixture, number);
        let plan = Plan::new([ours(WHO), ours(WHO)]).ours().snapshot();
        let expected = format!("\"{} {}/$authenticator1\"", login.role, fixture.name);
        for rows in plan.run(&fixture, &login).await.unwrap() {
            assert_eq!(rows.values, [[expected.clone()]]);
        }
        let alone = ours(WHO).value(&fixture, &login).await;
        assert_eq!(alone, expected);
    };
    let deadline = Instant::now() + Duration::from_mins(1);
    while fixture.users.multiplexed_requests() < 400 {
        assert!(Instant::now() < deadline, "few pipelines are multiplexed");
        join_all((1..=USERS).map(one)).await;
    }
    assert_eq!(open.invalidated(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pipelines_of_many_users_survive_killed_backends() {
    let (fixture, _) = tenant("shared_interleaved_killed", USERS).await;
    notes(&fixture, USERS).await;
    let kill = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
        WHERE datname = 'shared_interleaved_killed' AND usename LIKE '%$authenticator1' \
        ORDER BY random() LIMIT 1";
    let kills = async || fixture.admin.batch_execute(kill).await.unwrap();
    run_users(&fixture, 500, kills).await;
    // The next caller gets a working connection.
    let login = user(&fixture, 1);
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        match own_and_other(1).run(&fixture, &login).await {
            Ok(rows) => break check_own(&rows, &login, 1),
            Err(failed) => assert!(is_killed(&failed.error), "{failed:?}"),
        }
        assert!(Instant::now() < deadline, "no connection works");
    }
}
