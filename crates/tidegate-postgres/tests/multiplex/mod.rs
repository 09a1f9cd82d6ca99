//! Multiplexed reads.

mod connections;
mod definitions;
mod pipelines;

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tidegate_embedded::testing;
use tidegate_pool::Settings;
use tidegate_sql::{Login, RoleUse};

use crate::fixture::{Fixture, Sql};

const READ: &str = "select name from items where id = :id";

/// A fixture with items 1 to 100, on which reads of the owner are multiplexed.
async fn multiplexed_fixture(name: &str) -> Arc<Fixture> {
    let fixture = Arc::new(Fixture::on(testing::cluster(), name, roomy()).await);
    fill(&fixture).await;
    share(&fixture, &fixture.owner()).await;
    fixture
}

async fn fill(fixture: &Fixture) {
    fixture
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

/// Runs many concurrent reads until a connection is multiplexed.
async fn share(fixture: &Arc<Fixture>, login: &Login) {
    let before = fixture.users.multiplexed_requests();
    let deadline = Instant::now() + Duration::from_secs(20);
    while fixture.users.multiplexed_requests() == before {
        assert!(Instant::now() < deadline, "nothing is ever shared");
        read_all(fixture, login).await;
    }
}

/// Reads all items concurrently.
async fn read_all(fixture: &Arc<Fixture>, login: &Login) {
    let one = |id: usize| async move {
        assert_eq!(
            read(id).value(fixture, login).await,
            format!("\"item {id}\"")
        );
    };
    join_all((1..=100).map(one)).await;
}

/// Tasks that read continuously until this value is dropped.
struct Readers(Vec<tokio::task::JoinHandle<()>>);

impl Readers {
    fn start(fixture: &Arc<Fixture>, login: &Login) -> Self {
        let reader = |number: usize| {
            let (fixture, login) = (fixture.clone(), login.clone());
            tokio::spawn(async move {
                for round in 0.. {
                    let id = (number * 7 + round) % 100 + 1;
                    let value = read(id).value(&fixture, &login).await;
                    assert_eq!(value, format!("\"item {id}\""));
                }
            })
        };
        Self((0..16).map(reader).collect())
    }

    /// Stops the readers, and checks that no read has failed.
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
    let fixture = multiplexed_fixture("multiplex_rows").await;
    let owner = fixture.owner();
    let wanted = fixture.users.multiplexed_requests() + 200;
    let deadline = Instant::now() + Duration::from_mins(2);
    while fixture.users.multiplexed_requests() < wanted {
        assert!(Instant::now() < deadline, "few are shared");
        read_all(&fixture, &owner).await;
    }
    // Sequential reads are not multiplexed.
    let before = fixture.users.multiplexed_requests();
    for id in 1..=20 {
        read(id).value(&fixture, &owner).await;
    }
    assert_eq!(fixture.users.multiplexed_requests(), before);
}

#[tokio::test]
async fn several_rows_nulls_and_none_are_as_on_a_connection_of_ones_own() {
    let fixture = multiplexed_fixture("multiplex_shapes").await;
    let owner = fixture.owner();
    let text = "select id, nullif(id, 3) as odd from items where id between :a and :b order by id";
    let run = |a: usize, b: usize| {
        let query = Sql::new(text).set([&a.to_string(), &b.to_string()]);
        let (fixture, owner) = (&fixture, &owner);
        async move { query.run(fixture, owner).await.unwrap() }
    };
    let alone = run(2, 4).await;
    assert_eq!(alone.values, [["2", "2"], ["3", "null"], ["4", "4"]]);
    let before = fixture.users.multiplexed_requests();
    let deadline = Instant::now() + Duration::from_secs(20);
    let mut rounds = 0;
    // On a busy machine reads may at first be too slow to be multiplexed.
    while rounds < 20 || fixture.users.multiplexed_requests() == before {
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
async fn a_request_that_waits_for_a_lock_delays_no_other() {
    let fixture = multiplexed_fixture("multiplex_lock").await;
    let owner = fixture.owner();
    let blocked = "select count(*)::int4 from locked where id > :id";
    fixture
        .admin
        .batch_execute("CREATE TABLE locked (id int); GRANT ALL ON locked TO PUBLIC")
        .await
        .unwrap();
    let waiter = || Sql::new(blocked).set(["0"]);
    waiter().value(&fixture, &owner).await;
    fixture
        .admin
        .batch_execute("BEGIN; LOCK TABLE locked IN ACCESS EXCLUSIVE MODE")
        .await
        .unwrap();
    let readers = Readers::start(&fixture, &owner);
    let waiting: Vec<_> = (0..4)
        .map(|_| {
            let (fixture, owner) = (fixture.clone(), owner.clone());
            tokio::spawn(async move { waiter().value(&fixture, &owner).await })
        })
        .collect();
    // Each of these reads ends up on a connection of its own. The backend of the blocked
    // multiplexed connection may have to be terminated first.
    let deadline = Instant::now() + Duration::from_secs(30);
    while fixture.running("from locked").await < 4 {
        assert!(Instant::now() < deadline, "not all of them wait");
    }
    let began = Instant::now();
    for _ in 0..10 {
        read_all(&fixture, &owner).await;
    }
    assert!(began.elapsed() < Duration::from_secs(20));
    assert!(waiting.iter().all(|one| !one.is_finished()));
    fixture.admin.batch_execute("COMMIT").await.unwrap();
    for one in waiting {
        assert_eq!(one.await.unwrap(), "0");
    }
    readers.stop().await;
}

#[tokio::test]
async fn an_error_is_that_of_its_own_read() {
    let fixture = multiplexed_fixture("multiplex_error").await;
    let owner = fixture.owner();
    let text = "select 100 / :divisor::int4 from items where id = 1";
    let divide = |divisor: i32| Sql::new(text).set([&divisor.to_string()]);
    divide(5).value(&fixture, &owner).await;
    for round in 0..20 {
        let one = |nth: i32| {
            let (fixture, owner) = (&fixture, &owner);
            async move {
                let outcome = divide(nth).run(fixture, owner).await;
                match nth {
                    0 => assert_eq!(outcome.unwrap_err().sqlstate(), Some("22012")),
                    _ => assert_eq!(outcome.unwrap().values, [[(100 / nth).to_string()]]),
                }
            }
        };
        let all = (0..20).map(|nth| one((nth + round) % 20));
        join_all(all).await;
        read_all(&fixture, &owner).await;
    }
    // A value that does not fit is reported with its place.
    let wrong = |id: usize| {
        let value = if id == 50 {
            "\"x\"".to_owned()
        } else {
            id.to_string()
        };
        let query = Sql::new(READ).set([&value]);
        let (fixture, owner) = (&fixture, &owner);
        async move { query.run(fixture, owner).await.is_err() }
    };
    let failed = join_all((1..=100).map(wrong)).await;
    assert_eq!(failed.iter().filter(|failed| **failed).count(), 1);
    assert!(failed[49]);
}

#[tokio::test]
async fn a_large_result_comes_in_whole() {
    let fixture = multiplexed_fixture("multiplex_large").await;
    let owner = fixture.owner();
    let text = "select repeat('x', :length::int4) as long from items where id = 7";
    let long = |length: usize| {
        let query = Sql::new(text).set([&length.to_string()]);
        let (fixture, owner) = (&fixture, &owner);
        async move { query.value(fixture, owner).await.len() - 2 }
    };
    long(10).await;
    for _ in 0..5 {
        let lengths = (0..20).map(|nth| nth * 10_000);
        let read = join_all(lengths.clone().map(long)).await;
        assert_eq!(read, lengths.collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn a_cancelled_request_affects_no_other() {
    let fixture = multiplexed_fixture("multiplex_gone").await;
    let owner = fixture.owner();
    for round in 0..100_u64 {
        let gone = tokio::time::timeout(
            Duration::from_micros(round * 20),
            join_all((1..=20).map(|id| read(id).value(&fixture, &owner))),
        );
        let (_, ()) = tokio::join!(gone, read_all(&fixture, &owner));
    }
}

#[tokio::test]
async fn what_one_session_does_no_other_one_shares() {
    let fixture = multiplexed_fixture("multiplex_sessions").await;
    let session = |number| Login {
        role_use: RoleUse::User(number),
        ..fixture.owner()
    };
    // The two sessions take turns to write and to read what they wrote, while readers of both run.
    let readers = Readers::start(&fixture, &session(10));
    let other = Readers::start(&fixture, &session(11));
    for round in 0..50 {
        let login = session(10 + round % 2);
        Sql::new("update items set name = :name where id = 100")
            .set(["\"item 100\""])
            .run(&fixture, &login)
            .await
            .unwrap();
        let text = "insert into items values (:id, :name)";
        let id = (1000 + round).to_string();
        let written = Sql::new(text).set([&id, "\"new\""]);
        written.run(&fixture, &login).await.unwrap();
        let seen = Sql::new(READ).set([&id]).value(&fixture, &login).await;
        assert_eq!(seen, "\"new\"", "whoever wrote it sees it");
    }
    readers.stop().await;
    other.stop().await;
    // Requests of anonymous callers are not multiplexed.
    let before = fixture.users.multiplexed_requests();
    let guest = fixture.guest();
    for _ in 0..5 {
        join_all((1..=20).map(|id| read(id).value(&fixture, &guest))).await;
    }
    assert_eq!(fixture.users.multiplexed_requests(), before);
}

/// Shows a setting until some of the responses are multiplexed. Checks that these have the value
/// `expected` and all others have the initial value.
async fn count_while_multiplexed(fixture: &Fixture, show: &str, expected: &str) {
    let owner = fixture.owner();
    let value = async |_| Sql::new(show).value(fixture, &owner).await;
    let deadline = Instant::now() + Duration::from_secs(20);
    let (mut before, mut shared) = (fixture.users.multiplexed_requests(), 0);
    while shared == 0 {
        assert!(Instant::now() < deadline, "nothing is ever shared");
        let values = join_all((0..100).map(value)).await;
        let found = values.iter().filter(|value| *value == expected).count();
        shared = fixture.users.multiplexed_requests() - before;
        before += shared;
        assert_eq!(u64::try_from(found), Ok(shared), "each that was shared");
    }
}

/// Without this isolation level the statements of a pipeline could see different snapshots.
#[tokio::test]
async fn multiplexed_connections_read_in_one_snapshot() {
    let fixture = multiplexed_fixture("multiplex_isolation").await;
    let show = "show transaction_isolation";
    count_while_multiplexed(&fixture, show, "\"repeatable read\"").await;
    for _ in 0..20 {
        let value = Sql::new(show).value(&fixture, &fixture.owner()).await;
        assert_eq!(value, "\"read committed\"");
    }
}

#[tokio::test]
async fn postgresql_refuses_writes_on_a_shared_connection() {
    let fixture = multiplexed_fixture("multiplex_read_only").await;
    let owner = fixture.owner();
    let show = "show transaction_read_only";
    count_while_multiplexed(&fixture, show, "\"on\"").await;
    // Locking a row is not a read for PostgreSQL, so the statement runs on a connection of its own.
    let lock = |id: usize| {
        let (fixture, owner) = (&fixture, &owner);
        async move {
            let text = "select name from items where id = :id for no key update";
            let query = Sql::new(text).set([&id.to_string()]);
            assert_eq!(query.value(fixture, owner).await, format!("\"item {id}\""));
        }
    };
    for _ in 0..5 {
        join_all((1..=100).map(lock)).await;
    }
    // The settings of the multiplexed session were reset.
    for _ in 0..20 {
        assert_eq!(Sql::new(show).value(&fixture, &owner).await, "\"off\"");
    }
    let insert = Sql::new("insert into items values (101, 'new')");
    insert.run(&fixture, &owner).await.unwrap();
}

#[tokio::test]
async fn a_write_that_looks_like_a_read_is_done_once_for_each_response() {
    // The SEARCH clause, for which the lexer takes this statement for a read, exists from
    // PostgreSQL 14 on.
    if testing::cluster().version().major < 14 {
        return;
    }
    let fixture = multiplexed_fixture("multiplex_writes").await;
    let owner = fixture.owner();
    fixture
        .admin
        .batch_execute("create table ctr as select 0 as n; grant all on ctr to public")
        .await
        .unwrap();
    let text = "with recursive x as (with recursive y(a) as (select 1 union all \
                select a + 1 from y where a < 2) search depth first by a set ord \
                update ctr set n = n + 1 where exists (select from y) returning n) \
                select n as m from x";
    // A multiplexed statement that waits for a lock is cancelled and runs again on another
    // connection.
    let locker = async {
        for _ in 0..4 {
            let hold = "do $$ begin perform n from ctr for update; perform pg_sleep(0.15); end $$";
            fixture.admin.batch_execute(hold).await.unwrap();
            tokio::task::yield_now().await;
        }
    };
    let worker = |_| async {
        for _ in 0..25 {
            Sql::new(text).run(&fixture, &owner).await.unwrap();
        }
    };
    tokio::join!(locker, join_all((0..8).map(worker)));
    assert_eq!(fixture.value("select n::text from ctr").await, "200");
}
