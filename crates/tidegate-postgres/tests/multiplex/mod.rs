//! Reads that share a connection.

mod connections;
mod definitions;
mod pipelines;

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tidegate_embedded::testing;
use tidegate_pool::Settings;
use tidegate_sql::{Login, RoleUse};

use crate::stage::{Sql, Stage};

const READ: &str = "select name from items where id = :id";

/// A stage with items 1 to 100, on which reads of the owner share a connection.
async fn crowded(name: &str) -> Arc<Stage> {
    let stage = Arc::new(Stage::on(testing::cluster(), name, roomy()).await);
    fill(&stage).await;
    share(&stage, &stage.owner()).await;
    stage
}

async fn fill(stage: &Stage) {
    stage
        .admin
        .batch_execute(
            "CREATE TABLE items (id int PRIMARY KEY, name text);
             INSERT INTO items SELECT i, 'item ' || i FROM generate_series(1, 100) AS i;
             GRANT ALL ON items TO PUBLIC",
        )
        .await
        .unwrap();
}

fn roomy() -> Settings {
    Settings {
        per_role: 32,
        ..Settings::default()
    }
}

fn read(id: usize) -> Sql {
    Sql::new(READ).set([&id.to_string()])
}

/// Reads so much at once until a connection is shared.
async fn share(stage: &Arc<Stage>, login: &Login) {
    let before = stage.roles.shared_reads();
    let deadline = Instant::now() + Duration::from_secs(20);
    while stage.roles.shared_reads() == before {
        assert!(Instant::now() < deadline, "nothing is ever shared");
        read_all(stage, login).await;
    }
}

/// Reads all items at once.
async fn read_all(stage: &Arc<Stage>, login: &Login) {
    let one = |id: usize| async move {
        assert_eq!(read(id).value(stage, login).await, format!("\"item {id}\""));
    };
    join_all((1..=100).map(one)).await;
}

/// Reads all the time until it is dropped.
struct Readers(Vec<tokio::task::JoinHandle<()>>);

impl Readers {
    fn start(stage: &Arc<Stage>, login: &Login) -> Self {
        let reader = |number: usize| {
            let (stage, login) = (stage.clone(), login.clone());
            tokio::spawn(async move {
                for round in 0.. {
                    let id = (number * 7 + round) % 100 + 1;
                    let value = read(id).value(&stage, &login).await;
                    assert_eq!(value, format!("\"item {id}\""));
                }
            })
        };
        Self((0..16).map(reader).collect())
    }

    /// Ends them; none may have failed.
    async fn stop(mut self) {
        for reader in &self.0 {
            assert!(!reader.is_finished(), "a reader has failed");
            reader.abort();
        }
        for reader in self.0.drain(..) {
            assert!(reader.await.unwrap_err().is_cancelled(), "a reader failed");
        }
    }
}

#[tokio::test]
async fn each_read_gets_its_own_rows() {
    let stage = crowded("multiplex_rows").await;
    let owner = stage.owner();
    let wanted = stage.roles.shared_reads() + 200;
    let deadline = Instant::now() + Duration::from_mins(2);
    while stage.roles.shared_reads() < wanted {
        assert!(Instant::now() < deadline, "few are shared");
        read_all(&stage, &owner).await;
    }
    // One after the other is no crowd.
    let before = stage.roles.shared_reads();
    for id in 1..=20 {
        read(id).value(&stage, &owner).await;
    }
    assert_eq!(stage.roles.shared_reads(), before);
}

#[tokio::test]
async fn several_rows_nulls_and_none_are_as_on_a_connection_of_ones_own() {
    let stage = crowded("multiplex_shapes").await;
    let owner = stage.owner();
    let text = "select id, nullif(id, 3) as odd from items where id between :a and :b order by id";
    let run = |a: usize, b: usize| {
        let query = Sql::new(text).set([&a.to_string(), &b.to_string()]);
        let (stage, owner) = (&stage, &owner);
        async move { query.run(stage, owner).await.unwrap() }
    };
    let alone = run(2, 4).await;
    assert_eq!(alone.values, [["2", "2"], ["3", "null"], ["4", "4"]]);
    let before = stage.roles.shared_reads();
    let deadline = Instant::now() + Duration::from_secs(20);
    let mut rounds = 0;
    // On a busy machine it may take a while until reads are quick enough to be shared.
    while rounds < 20 || stage.roles.shared_reads() == before {
        assert!(Instant::now() < deadline, "nothing is shared");
        rounds += 1;
        for (nth, rows) in join_all((0..40).map(|nth| run(nth, nth + nth % 3)))
            .await
            .iter()
            .enumerate()
        {
            let ids: Vec<_> = rows.values.iter().map(|row| row[0].clone()).collect();
            let wanted = (nth.max(1)..=nth + nth % 3).map(|id| id.to_string());
            assert_eq!(ids, wanted.collect::<Vec<_>>());
            assert_eq!(rows.columns.len(), 2);
            assert_eq!(rows.affected, alone.affected);
        }
    }
}

#[tokio::test]
async fn who_waits_for_a_lock_keeps_nobody_else_waiting() {
    let stage = crowded("multiplex_lock").await;
    let owner = stage.owner();
    let blocked = "select count(*)::int4 from locked where id > :id";
    stage
        .admin
        .batch_execute("CREATE TABLE locked (id int); GRANT ALL ON locked TO PUBLIC")
        .await
        .unwrap();
    let waiter = || Sql::new(blocked).set(["0"]);
    waiter().value(&stage, &owner).await;
    stage
        .admin
        .batch_execute("BEGIN; LOCK TABLE locked IN ACCESS EXCLUSIVE MODE")
        .await
        .unwrap();
    let readers = Readers::start(&stage, &owner);
    let waiting: Vec<_> = (0..4)
        .map(|_| {
            let (stage, owner) = (stage.clone(), owner.clone());
            tokio::spawn(async move { waiter().value(&stage, &owner).await })
        })
        .collect();
    // Each on a connection of its own; the one that they blocked may still be ended.
    let deadline = Instant::now() + Duration::from_secs(30);
    while stage.running("from locked").await < 4 {
        assert!(Instant::now() < deadline, "not all of them wait");
    }
    let began = Instant::now();
    for _ in 0..10 {
        read_all(&stage, &owner).await;
    }
    assert!(began.elapsed() < Duration::from_secs(20));
    assert!(waiting.iter().all(|one| !one.is_finished()));
    stage.admin.batch_execute("COMMIT").await.unwrap();
    for one in waiting {
        assert_eq!(one.await.unwrap(), "0");
    }
    readers.stop().await;
}

#[tokio::test]
async fn an_error_is_that_of_its_own_read() {
    let stage = crowded("multiplex_error").await;
    let owner = stage.owner();
    let text = "select 100 / :divisor::int4 from items where id = 1";
    let divide = |divisor: i32| Sql::new(text).set([&divisor.to_string()]);
    divide(5).value(&stage, &owner).await;
    for round in 0..20 {
        let one = |nth: i32| {
            let (stage, owner) = (&stage, &owner);
            async move {
                let outcome = divide(nth).run(stage, owner).await;
                match nth {
                    0 => assert_eq!(outcome.unwrap_err().sqlstate(), Some("22012")),
                    _ => assert_eq!(outcome.unwrap().values, [[(100 / nth).to_string()]]),
                }
            }
        };
        let all = (0..20).map(|nth| one((nth + round) % 20));
        join_all(all).await;
        read_all(&stage, &owner).await;
    }
    // What does not fit is told with its place, as ever.
    let wrong = |id: usize| {
        let value = if id == 50 {
            "\"x\"".to_owned()
        } else {
            id.to_string()
        };
        let query = Sql::new(READ).set([&value]);
        let (stage, owner) = (&stage, &owner);
        async move { query.run(stage, owner).await.is_err() }
    };
    let failed = join_all((1..=100).map(wrong)).await;
    assert_eq!(failed.iter().filter(|failed| **failed).count(), 1);
    assert!(failed[49]);
}

#[tokio::test]
async fn a_large_answer_comes_in_whole() {
    let stage = crowded("multiplex_large").await;
    let owner = stage.owner();
    let text = "select repeat('x', :length::int4) as long from items where id = 7";
    let long = |length: usize| {
        let query = Sql::new(text).set([&length.to_string()]);
        let (stage, owner) = (&stage, &owner);
        async move { query.value(stage, owner).await.len() - 2 }
    };
    long(10).await;
    for _ in 0..5 {
        let lengths = (0..20).map(|nth| nth * 10_000);
        let read = join_all(lengths.clone().map(long)).await;
        assert_eq!(read, lengths.collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn who_goes_away_disturbs_nobody() {
    let stage = crowded("multiplex_gone").await;
    let owner = stage.owner();
    for round in 0..100_u64 {
        let gone = tokio::time::timeout(
            Duration::from_micros(round * 20),
            join_all((1..=20).map(|id| read(id).value(&stage, &owner))),
        );
        let (_, ()) = tokio::join!(gone, read_all(&stage, &owner));
    }
}

#[tokio::test]
async fn what_one_session_does_no_other_one_shares() {
    let stage = crowded("multiplex_sessions").await;
    let session = |number| Login {
        role_use: RoleUse::User(number),
        ..stage.owner()
    };
    // Each writes and then reads what it wrote, beside readers of the other.
    let readers = Readers::start(&stage, &session(10));
    let other = Readers::start(&stage, &session(11));
    for round in 0..50 {
        let login = session(10 + round % 2);
        Sql::new("update items set name = :name where id = 100")
            .set(["\"item 100\""])
            .run(&stage, &login)
            .await
            .unwrap();
        let text = "insert into items values (:id, :name)";
        let id = (1000 + round).to_string();
        let written = Sql::new(text).set([&id, "\"new\""]);
        written.run(&stage, &login).await.unwrap();
        let seen = Sql::new(READ).set([&id]).value(&stage, &login).await;
        assert_eq!(seen, "\"new\"", "whoever wrote it sees it");
    }
    readers.stop().await;
    other.stop().await;
    // Strangers share nothing at all.
    let before = stage.roles.shared_reads();
    let guest = stage.guest();
    for _ in 0..5 {
        join_all((1..=20).map(|id| read(id).value(&stage, &guest))).await;
    }
    assert_eq!(stage.roles.shared_reads(), before);
}

/// Shows a setting again and again until some of the answers are multiplexed: these have the value
/// of multiplexed connections, and the others have not.
async fn count_while_multiplexed(stage: &Stage, show: &str, expected: &str) {
    let owner = stage.owner();
    let value = async |_| Sql::new(show).value(stage, &owner).await;
    let deadline = Instant::now() + Duration::from_secs(20);
    let (mut before, mut shared) = (stage.roles.shared_reads(), 0);
    while shared == 0 {
        assert!(Instant::now() < deadline, "nothing is ever shared");
        let values = join_all((0..100).map(value)).await;
        let found = values.iter().filter(|value| *value == expected).count();
        shared = stage.roles.shared_reads() - before;
        before += shared;
        assert_eq!(u64::try_from(found), Ok(shared), "each that was shared");
    }
}

/// Without it the statements of a pipeline could see different snapshots.
#[tokio::test]
async fn multiplexed_connections_read_in_one_snapshot() {
    let stage = crowded("multiplex_isolation").await;
    let show = "show transaction_isolation";
    count_while_multiplexed(&stage, show, "\"repeatable read\"").await;
    for _ in 0..20 {
        let value = Sql::new(show).value(&stage, &stage.owner()).await;
        assert_eq!(value, "\"read committed\"");
    }
}

#[tokio::test]
async fn postgresql_refuses_writes_on_a_shared_connection() {
    let stage = crowded("multiplex_read_only").await;
    let owner = stage.owner();
    let show = "show transaction_read_only";
    count_while_multiplexed(&stage, show, "\"on\"").await;
    // A lock of a row is no read to PostgreSQL, and is had on a connection of one's own.
    let lock = |id: usize| {
        let (stage, owner) = (&stage, &owner);
        async move {
            let text = "select name from items where id = :id for no key update";
            let query = Sql::new(text).set([&id.to_string()]);
            assert_eq!(query.value(stage, owner).await, format!("\"item {id}\""));
        }
    };
    for _ in 0..5 {
        join_all((1..=100).map(lock)).await;
    }
    // What was set in the session is undone.
    for _ in 0..20 {
        assert_eq!(Sql::new(show).value(&stage, &owner).await, "\"off\"");
    }
    let insert = Sql::new("insert into items values (101, 'new')");
    insert.run(&stage, &owner).await.unwrap();
}

#[tokio::test]
async fn a_write_that_looks_like_a_read_is_done_once_for_each_answer() {
    // SEARCH, by which the lexer takes it for a read, came with 14.
    if testing::cluster().version().major < 14 {
        return;
    }
    let stage = crowded("multiplex_writes").await;
    let owner = stage.owner();
    stage
        .admin
        .batch_execute("create table ctr as select 0 as n; grant all on ctr to public")
        .await
        .unwrap();
    let text = "with recursive x as (with recursive y(a) as (select 1 union all \
                select a + 1 from y where a < 2) search depth first by a set ord \
                update ctr set n = n + 1 where exists (select from y) returning n) \
                select n as m from x";
    // A statement that waits for a lock is given up there, and runs elsewhere.
    let locker = async {
        for _ in 0..4 {
            let hold = "do $$ begin perform n from ctr for update; perform pg_sleep(0.15); end $$";
            stage.admin.batch_execute(hold).await.unwrap();
            tokio::task::yield_now().await;
        }
    };
    let worker = |_| async {
        for _ in 0..25 {
            Sql::new(text).run(&stage, &owner).await.unwrap();
        }
    };
    tokio::join!(locker, join_all((0..8).map(worker)));
    assert_eq!(stage.value("select n::text from ctr").await, "200");
}
