//! Deadlines, callers that disconnect, and outages of PostgreSQL.

mod unclosed_connections;

use std::sync::Arc;
use std::time::{Duration, Instant};

use tidegate_embedded::{Cluster, Shutdown};
use tidegate_pool::Settings;
use tidegate_sql::{Error, Login, Mode, QueryOptions};
use tokio::sync::watch;

use crate::fixture::{CollectedRows, Fixture, Sql, Stalled};

#[tokio::test]
async fn a_statement_whose_caller_has_gone_is_gone_within_a_second() {
    let fixture = Arc::new(Fixture::new("dropped").await);
    for login in [fixture.owner(), fixture.guest()] {
        let query = Sql::new("select pg_sleep(60) as abandoned");
        let task = tokio::spawn({
            let (fixture, login) = (fixture.clone(), login.clone());
            async move { query.run(&fixture, &login).await }
        });
        fixture.wait_for_running("abandoned", 1).await;
        task.abort();
        let began = Instant::now();
        fixture.wait_for_running("abandoned", 0).await;
        assert!(
            began.elapsed() < Duration::from_secs(1),
            "{:?}",
            began.elapsed()
        );
    }
}

#[tokio::test]
async fn what_cannot_be_interrupted_keeps_its_place_until_it_has_ended() {
    let settings = Settings {
        per_role: 1,
        wait: Duration::from_mins(2),
        ..Settings::default()
    };
    let cluster = tidegate_embedded::testing::cluster();
    let fixture = Arc::new(Fixture::on(cluster, "stubborn", settings).await);
    let owner = fixture.owner();
    Sql::new("select 1").value(&fixture, &owner).await;
    // PostgreSQL parses a name with nested comments in quadratic time, without checking for
    // interrupts.
    let read = "select to_regtype(repeat('/*', 20000) || repeat('*/', 20000) || 'int') as unending";
    let reading = tokio::spawn({
        let (fixture, owner) = (fixture.clone(), owner.clone());
        async move { Sql::new(read).run(&fixture, &owner).await }
    });
    fixture.wait_for_running("unending", 1).await;
    reading.abort();
    let response = Sql::new("select 1").value(&fixture, &owner);
    assert_eq!(response.await, "1");
    assert_eq!(
        fixture.running("unending").await,
        0,
        "a second connection was opened beside it"
    );
}

#[tokio::test]
async fn a_late_cancel_never_hits_the_next_statement() {
    let fixture = Fixture::new("late_cancel").await;
    let owner = fixture.owner();
    for wait in 0..60_u64 {
        // The query is dropped at different moments, even just after it has ended.
        let query = Sql::new("select pg_sleep(0.003)").run(&fixture, &owner);
        drop(tokio::time::timeout(Duration::from_micros(wait * 100), query).await);
        assert_eq!(Sql::new("select 1").value(&fixture, &owner).await, "1");
    }
}

#[tokio::test]
async fn a_passed_deadline_ends_the_statement_before_the_response() {
    let fixture = Fixture::new("deadline").await;
    for login in [fixture.owner(), fixture.guest()] {
        let query = Sql::new("select pg_sleep(60) as overdue").within(Duration::from_millis(100));
        let began = Instant::now();
        let error = query.run(&fixture, &login).await.unwrap_err();
        assert!(matches!(error, Error::Deadline), "{error:?}");
        assert!(began.elapsed() < Duration::from_secs(5));
        assert_eq!(fixture.running("overdue").await, 0);
        assert_eq!(Sql::new("select 1").value(&fixture, &login).await, "1");
    }
}

#[tokio::test]
async fn a_statement_that_swallows_its_cancellation_is_terminated() {
    let fixture = Fixture::new("swallow").await;
    let block = "do $$ begin for i in 1..600 loop begin
        perform pg_sleep(0.1); exception when query_canceled then null;
        end; end loop; end /* stubborn */ $$";
    let began = Instant::now();
    let query = Sql::new(block).within(Duration::from_millis(100));
    let error = query.run(&fixture, &fixture.owner()).await.unwrap_err();
    assert!(matches!(error, Error::Deadline), "{error:?}");
    assert!(
        began.elapsed() < Duration::from_secs(10),
        "{:?}",
        began.elapsed()
    );
    fixture.wait_for_running("stubborn", 0).await;
    assert_eq!(
        Sql::new("select 1").value(&fixture, &fixture.owner()).await,
        "1"
    );
}

#[tokio::test]
async fn the_deadline_of_a_transaction_counts_for_all_of_it() {
    let fixture = Fixture::new("deadline_tx").await;
    let owner = fixture.owner();
    Sql::new("create table t (a int)")
        .run(&fixture, &owner)
        .await
        .unwrap();
    let options = QueryOptions {
        deadline: Some(Instant::now() + Duration::from_secs(2)),
        ..QueryOptions::default()
    };
    let mut transaction = fixture
        .users
        .begin(&owner, Mode::ReadWrite, &options)
        .await
        .unwrap();
    let run = |q: &str| {
        let mut bound = Sql::new(q).bound;
        bound.sets.push(Vec::new());
        bound
    };
    let insert = run("insert into t values (1)");
    transaction
        .query(&insert, &mut CollectedRows::default())
        .await
        .unwrap();
    let sleep = run("select pg_sleep(60) as overdue");
    let error = transaction
        .query(&sleep, &mut CollectedRows::default())
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Deadline), "{error:?}");
    drop(transaction);
    fixture.wait_for_running("overdue", 0).await;
    assert_eq!(
        Sql::new("select count(*) from t")
            .value(&fixture, &owner)
            .await,
        "0"
    );
}

#[tokio::test]
async fn sets_whose_caller_goes_away_half_way_leave_nothing() {
    let fixture = Fixture::new("half_way").await;
    let owner = fixture.owner();
    Sql::new("create table t (a int)")
        .run(&fixture, &owner)
        .await
        .unwrap();
    let mut insert = Sql::new("insert into t select :n::int from pg_sleep(0.001) halfway");
    insert.bound.sets = (0..50_000_u32)
        .map(|n| vec![tidegate_values::Parameter::Json(n.to_string().into())])
        .collect();
    let insert = insert.run(&fixture, &owner);
    assert!(
        tokio::time::timeout(Duration::from_millis(300), insert)
            .await
            .is_err()
    );
    fixture.wait_for_running("halfway", 0).await;
    assert_eq!(
        Sql::new("select count(*) from t")
            .value(&fixture, &owner)
            .await,
        "0"
    );
}

#[tokio::test]
async fn a_slow_reader_makes_postgresql_wait_and_no_deadline_counts_meanwhile() {
    let fixture = Fixture::new("slow_reader").await;
    let (start, go) = watch::channel(false);
    let (stopped, mut seen) = watch::channel(0);
    let mut sink = Stalled {
        seen: 0,
        bytes: 0,
        pause: 1000,
        go,
        stopped,
    };
    let mut query = Sql::new("select i, repeat('x', 100) as slow from generate_series(1, 30000) i")
        .within(Duration::from_secs(2));
    query.bound.sets.push(Vec::new());
    let owner = fixture.owner();
    let running = fixture
        .users
        .query(&owner, &query.bound, query.options(), &mut sink);
    let watching = async {
        seen.wait_for(|seen| *seen == 1000).await.unwrap();
        let wait = "SELECT wait_event FROM pg_stat_activity WHERE datname = 'slow_reader' \
            AND pid <> pg_backend_pid() AND query LIKE '%as slow%'";
        while fixture.value(wait).await != "ClientWrite" {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        // The wait is longer than the deadline, which must not matter.
        tokio::time::sleep(Duration::from_millis(2100)).await;
        start.send_replace(true);
    };
    let (completion, ()) = tokio::join!(running, watching);
    assert_eq!(completion.unwrap().affected_rows, None);
    assert_eq!(sink.seen, 30_000);
}

#[tokio::test]
async fn connections_that_died_while_idle_are_replaced_unseen() {
    let fixture = Fixture::new("idle_death").await;
    for login in [fixture.owner(), fixture.guest()] {
        for _ in 0..3 {
            assert_eq!(Sql::new("select 1").value(&fixture, &login).await, "1");
            let kill = "SELECT string_agg(CASE WHEN pg_terminate_backend(pid) THEN pid::text END, ',') \
                FROM pg_stat_activity \
                WHERE datname = current_database() AND pid <> pg_backend_pid()";
            let killed = fixture.value(kill).await;
            // The service may have opened a new service connection to read the untrusted names.
            let left = format!(
                "SELECT count(*)::text FROM pg_stat_activity WHERE pid = ANY('{{{killed}}}')"
            );
            while fixture.value(&left).await != "0" {
                tokio::task::yield_now().await;
            }
        }
        assert_eq!(Sql::new("select 1").value(&fixture, &login).await, "1");
    }
}

/// Reads one row repeatedly until it is stopped.
async fn load(fixture: Arc<Fixture>, login: Login, end: watch::Receiver<bool>) {
    while !*end.borrow() {
        let query = Sql::new("select 1 as one").within(Duration::from_secs(8));
        let response = tokio::time::timeout(Duration::from_secs(10), query.run(&fixture, &login));
        match response.await.expect("a request hangs") {
            Ok(rows) => assert_eq!(rows.values, [["1"]]),
            Err(Error::Unavailable { .. } | Error::PoolTimeout { .. }) => {
                tokio::task::yield_now().await;
            }
            Err(other) => panic!("{other:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_request_hangs_in_a_restart_under_load() {
    let cluster = Cluster::start(tidegate_embedded::testing::settings())
        .await
        .unwrap();
    let cluster: &'static Cluster = Box::leak(Box::new(cluster));
    let fixture = Arc::new(Fixture::on(cluster, "restart", Settings::default()).await);
    let one = || Sql::new("select 1");
    for mode in [Shutdown::Fast, Shutdown::Immediate] {
        let (end, over) = watch::channel(false);
        let logins = [fixture.owner(), fixture.alice(), fixture.guest()]
            .into_iter()
            .cycle()
            .take(9);
        let tasks: Vec<_> = logins
            .map(|login| tokio::spawn(load(fixture.clone(), login, over.clone())))
            .collect();
        cluster.restart(mode).await.unwrap();
        let up = Instant::now();
        while one().run(&fixture, &fixture.owner()).await.is_err() {
            assert!(
                up.elapsed() < Duration::from_secs(10),
                "it does not recover"
            );
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        end.send_replace(true);
        for task in tasks {
            task.await.unwrap();
        }
    }
    cluster.halt(Shutdown::Immediate).await.unwrap();
    let began = Instant::now();
    let error = one().run(&fixture, &fixture.owner()).await.unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. }), "{error:?}");
    assert!(began.elapsed() < Duration::from_secs(6));
}
