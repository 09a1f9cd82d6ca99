//! Reads whose text is pure but which run impure code.

use std::time::Duration;

use futures_util::future::join_all;
use tidegate_postgres::ClaimsKey;
use tidegate_service::{ClaimsFunctions, ClaimsState, install_claims};
use tidegate_sql::statement::{Kind, Purity, SqlWriter};
use tidegate_sql::{BoundStatement, Login};
use tokio::time::{Instant, sleep, timeout};

use super::{NOTHING, fixture, found};
use crate::fixture::{Fixture, Sql, connect};

/// Creates objects that run `litter()` in ways that the text of a read does not show.
const TRAPS: &str = "create function poison() returns text language plpgsql immutable as $f$ begin
        perform set_config('tidegate.secret', 'mine', false); return 'x'; end $f$;
    create table rl (id int, name text);
    insert into rl values (1, 'a');
    create view news as select litter() as headline;
    create function calm() returns int language plpgsql as 'begin return 1; end';
    create view calm_news as select calm() as headline;
    create view outer_news as select headline from news;
    create function litter_of(rl) returns int language sql as 'select public.litter()';
    create function count(rl) returns int language sql as 'select public.litter()';
    create function abs(text) returns int language sql as 'select public.litter()';
    create function either(text, text) returns int language sql as 'select public.litter()';
    create operator ### (leftarg = text, rightarg = text, function = either);
    create table guarded (a int);
    insert into guarded values (1);
    create policy p on guarded using (litter() = a);
    alter table guarded enable row level security;
    create table part (a int) partition by range (a);
    create table part_1 partition of part for values from (0) to (9);
    create index on part_1 (a) where poison() = 'x';
    insert into part values (1);
    create table plain (id int primary key, name text);
    insert into plain values (1, 'one');
    create view modest as select id, lower(name) as name from plain where id > 0;
    grant all on all tables in schema public to public";

async fn trapped(name: &str) -> Fixture {
    let fixture = fixture(name).await;
    fixture.admin.batch_execute(TRAPS).await.unwrap();
    informed(&fixture).await;
    fixture
}

/// Waits until the untrusted names have been read after the traps were created. While a read of a
/// trap counts as pure, the earlier names are still valid.
async fn informed(fixture: &Fixture) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while runs_alone(fixture, &fixture.owner(), Sql::new("table calm_news")).await {
        assert!(Instant::now() < deadline, "a trap is never noticed");
        sleep(Duration::from_millis(5)).await;
    }
    runs_alone_in_time(fixture, Sql::new("select 1 as one")).await;
}

/// Repeats a read until no reset follows it. On a busy machine the definitions may be read late.
async fn runs_alone_in_time(fixture: &Fixture, sql: Sql) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !runs_alone(fixture, &fixture.owner(), sql.clone()).await {
        let text = sql.bound.statement.text();
        assert!(Instant::now() < deadline, "always reset: {text}");
        sleep(Duration::from_millis(5)).await;
    }
}

/// Whether no reset follows a read on a new connection, where the check of the reset is not
/// prepared. This function does not work for reads that leave prepared statements, because a full
/// reset removes the check too.
async fn runs_alone(fixture: &Fixture, login: &Login, sql: Sql) -> bool {
    fixture.users.pool().close(&login.database);
    for _ in 0..2 {
        fixture.rest().await;
        sql.clone().run(fixture, login).await.unwrap();
    }
    fixture.rest().await;
    let query = "select count(*) from pg_prepared_statements \
        where strpos(statement, 'unlock_all') > 0 and strpos(statement, 'strpos') = 0";
    Sql::new(query).value(fixture, login).await == "0"
}

#[tokio::test]
async fn nothing_survives_code_that_a_text_does_not_show() {
    let fixture = trapped("suspects").await;
    let owner = fixture.owner();
    let alice = fixture.alice();
    for (login, q) in [
        (&owner, "select headline from news"),
        (&owner, "table news"),
        (&owner, "select count(*) from news"),
        (&owner, "select 1 as x from U&\"n\\0065ws\""),
        (&owner, "explain analyze select * from news"),
        (&owner, "select * from \"outer_news\""),
        (&owner, "select 'a' ### 'b' as x"),
        (&owner, "select rl.litter_of from rl"),
        (&owner, "select rl.\"count\" from rl"),
        (&owner, "select count(rl) from rl"),
        (&owner, "select abs('x'::text)"),
        (&alice, "select * from guarded"),
        (&owner, "select a from part where a = 1"),
    ] {
        let bound = Sql::new(q).bound;
        assert_eq!(bound.purity(), Purity::Stateless, "{q}");
        Sql::new(q).run(&fixture, login).await.unwrap();
        assert_eq!(found(&fixture, login).await, NOTHING, "{q}");
        informed(&fixture).await;
    }
}

#[tokio::test]
async fn nothing_survives_a_built_in_function_that_is_written_as_an_attribute() {
    let fixture = trapped("attributes").await;
    for q in [
        "select (42::bigint).pg_advisory_lock",
        "select x.pg_advisory_lock from generate_series(42::bigint, 42) as x",
        "select x.\"pg_advisory_lock\" from generate_series(42::bigint, 42) as x",
    ] {
        Sql::new(q).run(&fixture, &fixture.owner()).await.unwrap();
        assert_eq!(found(&fixture, &fixture.owner()).await, NOTHING, "{q}");
    }
}

#[tokio::test]
async fn pure_reads_take_no_reset() {
    let fixture = trapped("harmless").await;
    let owner = fixture.owner();
    for q in [
        "select name from plain where id = 1",
        "select name from modest where id = 1",
        "select t.name, max(t.id) over (partition by t.name) from plain t",
    ] {
        runs_alone_in_time(&fixture, Sql::new(q)).await;
    }
    let by_key = |relation: &str| {
        let mut writer = SqlWriter::new();
        writer.syntax("select * from ").identifier(relation);
        let mut sql = Sql::new("select 1");
        sql.bound = BoundStatement {
            listed: true,
            ..writer.finish(Kind::Read)
        };
        sql
    };
    runs_alone_in_time(&fixture, by_key("plain")).await;
    assert!(!runs_alone(&fixture, &owner, by_key("calm_news")).await);
}

#[tokio::test]
async fn a_policy_that_calls_the_functions_of_claims_takes_no_reset() {
    let fixture = trapped("claims_pure").await;
    let key = ClaimsKey::derive(&[7; 32], &fixture.name, 1);
    let functions = ClaimsFunctions {
        generation: 1,
        key: key.halves(),
    };
    let mut service = connect(&fixture.url()).await;
    let installed = install_claims(&mut service, &functions).await.unwrap();
    assert_eq!(installed, ClaimsState::Current);
    let policy = "create table notes (id int primary key, owner text, org text);
        insert into notes values (1, 'alice', 'acme'), (2, 'bob', 'acme');
        alter table notes enable row level security;
        create policy own on notes using (owner = (select tidegate.user_id())
            and coalesce((select tidegate.claim('org')), org) = org);
        grant select on notes to public";
    fixture.admin.batch_execute(policy).await.unwrap();
    let alice = fixture.alice();
    let read = Sql::new("select id from notes where id < 9");
    assert_eq!(read.clone().value(&fixture, &alice).await, "1");
    let deadline = Instant::now() + Duration::from_secs(20);
    while !runs_alone(&fixture, &alice, read.clone()).await {
        assert!(Instant::now() < deadline, "always reset");
        sleep(Duration::from_millis(5)).await;
    }
    // Concurrent reads are multiplexed, too.
    let before = fixture.users.multiplexed_requests();
    let deadline = Instant::now() + Duration::from_secs(20);
    while fixture.users.multiplexed_requests() == before {
        assert!(Instant::now() < deadline, "never multiplexed");
        join_all((0..20).map(|_| read.clone().value(&fixture, &alice))).await;
    }
}

#[tokio::test]
async fn a_definition_through_this_node_counts_at_once() {
    let fixture = trapped("at_once").await;
    let owner = fixture.owner();
    let define = "create or replace view modest as select litter() as id, 'x' as name";
    fixture
        .admin
        .batch_execute(&format!("alter view modest owner to \"{}\"", fixture.name))
        .await
        .unwrap();
    informed(&fixture).await;
    Sql::new("drop view modest")
        .run(&fixture, &owner)
        .await
        .unwrap();
    Sql::new(define).run(&fixture, &owner).await.unwrap();
    Sql::new("select * from modest")
        .run(&fixture, &owner)
        .await
        .unwrap();
    assert_eq!(found(&fixture, &owner).await, NOTHING);
}

#[tokio::test]
async fn a_definition_by_another_way_counts_within_about_a_second() {
    let fixture = trapped("by_another_way").await;
    let owner = fixture.owner();
    runs_alone_in_time(&fixture, Sql::new("table modest")).await;
    let define = "create or replace view modest as select id, calm()::text as name from plain";
    fixture.admin.batch_execute(define).await.unwrap();
    let counts = async {
        while runs_alone(&fixture, &owner, Sql::new("table modest")).await {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(Duration::from_secs(10), counts).await.unwrap();
}

#[tokio::test]
async fn the_random_numbers_of_the_next_request_are_unpredictable() {
    let fixture = fixture("seed").await;
    let seed = "select setseed(0.7)::text";
    for login in [fixture.owner(), fixture.guest()] {
        let mut numbers = Vec::new();
        for _ in 0..2 {
            Sql::new(seed).run(&fixture, &login).await.unwrap();
            numbers.push(Sql::new("select random()").value(&fixture, &login).await);
        }
        assert_ne!(numbers[0], numbers[1], "{:?}", login.role_use);
    }
}
