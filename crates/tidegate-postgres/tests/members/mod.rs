//! Members: people of a group who share its role and are told apart by sealed claims.

mod attacks;
mod keys;
mod logins;
mod one_member;
mod replaced;
mod resets;

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tidegate_embedded::testing;
use tidegate_pool::Settings;
use tidegate_postgres::ClaimsKey;
use tidegate_service::{ClaimsFunctions, ClaimsState, install_claims};
use tidegate_sql::{Author, DatabaseName, Login, Member, Mode, RoleName, RoleUse};
use tidegate_testkit::{Random, create_role};
use tokio_postgres::Client;

use crate::fixture::{Fixture, Sql, in_transaction};
use crate::pipeline::Plan;

const MASTER: [u8; 32] = [9; 32];
/// The number of members that own notes. Each member owns three.
const MEMBERS: usize = 40;

fn key(database: &str, generation: i32) -> ClaimsKey {
    ClaimsKey::derive(&MASTER, database, generation)
}

/// Installs the functions of claims with the key of a generation.
async fn install(database: &str, admin: &mut Client, generation: i32) {
    let wanted = ClaimsFunctions {
        generation,
        key: key(database, generation).halves(),
    };
    let state = install_claims(admin, &wanted).await.unwrap();
    assert_eq!(state, ClaimsState::Current);
}

/// A tenant with the group `<name>/group/staff`, whose members own notes that a policy guards.
/// `connections` is the most connections of a role.
async fn tenant(name: &str, connections: usize) -> Fixture {
    let settings = Settings {
        capacity: connections * 4,
        per_role: connections,
        ..Settings::default()
    };
    let mut fixture = Fixture::on(testing::cluster(), name, settings).await;
    install(name, &mut fixture.admin, 1).await;
    let group = format!("{name}/group/staff");
    create_role(&fixture.admin, &group, "").await;
    fixture
        .admin
        .batch_execute(&format!(
            "GRANT CONNECT ON DATABASE \"{name}\" TO \"{group}\";
             GRANT USAGE ON SCHEMA public TO \"{group}\";
             CREATE TABLE notes (id serial PRIMARY KEY, owner text DEFAULT tidegate.user_id(), body text);
             INSERT INTO notes (owner, body)
                 SELECT 'm' || i, 'note ' || n || ' of m' || i
                 FROM generate_series(1, {MEMBERS}) i, generate_series(1, 3) n;
             CREATE INDEX ON notes (owner);
             ALTER TABLE notes ENABLE ROW LEVEL SECURITY;
             CREATE POLICY own ON notes USING (owner = (SELECT tidegate.user_id()));
             CREATE TABLE items (id serial PRIMARY KEY, org text);
             INSERT INTO items (org) SELECT 'o' || i % 2 FROM generate_series(1, 10) i;
             ALTER TABLE items ENABLE ROW LEVEL SECURITY;
             CREATE POLICY org ON items USING (org = (SELECT tidegate.claim('org')));
             CREATE TABLE counted (id serial);
             GRANT ALL ON ALL TABLES IN SCHEMA public TO \"{group}\";
             GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO \"{group}\";"
        ))
        .await
        .unwrap();
    let derive = |database: &DatabaseName, generation| key(database.as_str(), generation);
    fixture.users = fixture.users.clone().with_claims_keys(derive);
    fixture
}

fn member(fixture: &Fixture, number: usize) -> Login {
    let claims = format!(r#"{{"org":"o{}"}}"#, number % 2);
    let member = Member::new(&format!("m{number}"), &claims).unwrap();
    Login {
        database: DatabaseName::new(&fixture.name),
        role: RoleName::new(format!("{}/group/staff", fixture.name)),
        role_use: RoleUse::Member(Arc::new(member)),
    }
}

/// A statement of Tidegate.
fn ours(text: &str) -> Sql {
    Sql::new(text).by(Author::Service)
}

const ID: &str = "select tidegate.user_id() as id";
const BODIES: &str = "select body from notes order by id";

fn quoted(number: usize) -> String {
    format!("\"m{number}\"")
}

/// The three notes of a member.
fn bodies(number: usize) -> Vec<Vec<String>> {
    (1..=3)
        .map(|note| vec![format!("\"note {note} of m{number}\"")])
        .collect()
}

/// One request of a member, of some kind. Some fail on purpose.
async fn request(fixture: &Fixture, number: usize, kind: usize) {
    let login = &member(fixture, number);
    let other = ours("select body from notes where id = :id");
    let other = other.set([&((number % MEMBERS) * 3 + 1).to_string()]);
    match kind {
        0 => {
            let rows = ours(BODIES).run(fixture, login).await.unwrap();
            assert_eq!(rows.values, bodies(number));
        }
        1 => {
            let plan = Plan::new([ours(ID), ours(BODIES), other]).ours().snapshot();
            let rows = plan.run(fixture, login).await.unwrap();
            assert_eq!(rows[0].values, [[quoted(number)]]);
            assert_eq!(rows[1].values, bodies(number));
            assert!(rows[2].values.is_empty(), "a note of another member");
        }
        2 => {
            let texts = [ID, BODIES, ID];
            let mode = if number.is_multiple_of(2) {
                Mode::Snapshot
            } else {
                Mode::ReadWrite
            };
            let rows = in_transaction(fixture, login, mode, &texts).await.unwrap();
            assert_eq!(rows[1].values, bodies(number));
            assert_eq!(rows[2].values, [[quoted(number)]]);
        }
        3 => {
            let insert = ours("insert into notes (body) values ('new') returning owner");
            assert_eq!(insert.value(fixture, login).await, quoted(number));
            let delete = ours("delete from notes where body = 'new'");
            let deleted = delete.run(fixture, login).await.unwrap();
            assert_eq!(deleted.affected, Some(1));
        }
        4 => {
            let theirs = format!("insert into notes (owner) values ('m{}')", number + 1);
            let refused = ours(&theirs).refusal(fixture, login).await;
            assert_eq!(refused, "42501");
        }
        5 => {
            let fails = [ID, "select 1 / (id - id) from notes", ID].map(ours);
            let failed = Plan::new(fails).ours().run(fixture, login).await;
            assert_eq!(failed.unwrap_err().error.sqlstate(), Some("22012"));
        }
        6 => {
            let method = Sql::new(ID).by(Author::Owner);
            assert_eq!(method.value(fixture, login).await, quoted(number));
        }
        _ => {
            let rows = ours("select distinct org from items").run(fixture, login);
            let org = format!("\"o{}\"", number % 2);
            assert_eq!(rows.await.unwrap().values, [[org]]);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_take_turns_on_one_connection() {
    let fixture = tenant("members_turns", 1).await;
    let mut random = Random::new(20);
    for _ in 0..10_000 {
        // Most requests are of two members, so that consecutive requests often differ only in the
        // member.
        let number = if random.one_in(10) {
            1 + random.below(MEMBERS)
        } else {
            1 + random.below(2)
        };
        request(&fixture, number, random.below(8)).await;
    }
    let opened = fixture.users.pool().stats().counters.opened;
    assert!(opened <= 3, "{opened} connections");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_of_many_members_are_multiplexed() {
    let fixture = tenant("members_multiplexed", 8).await;
    let deadline = Instant::now() + Duration::from_mins(2);
    let one = |number| {
        let fixture = &fixture;
        async move {
            for kind in [0, 1, 7, 0, 7] {
                request(fixture, number, kind).await;
            }
        }
    };
    while fixture.users.multiplexed_requests() < 2_000 {
        assert!(Instant::now() < deadline, "few reads are multiplexed");
        join_all((1..=MEMBERS).map(one)).await;
    }
    // One plan serves all members of the group.
    let plans =
        ours("select count(*) from pg_prepared_statements where statement like 'select body%'");
    let plans = plans.value(&fixture, &member(&fixture, 1)).await;
    assert!(plans.parse::<usize>().unwrap() <= 2, "{plans}");
}

#[tokio::test]
async fn a_policy_calls_the_function_once_for_each_statement() {
    let fixture = tenant("members_plan", 1).await;
    let explain = Sql::new("explain (costs off) select * from notes").by(Author::Owner);
    let plan = explain.run(&fixture, &member(&fixture, 1)).await.unwrap();
    let plan: String = plan.values.concat().join("\n");
    assert!(plan.contains("InitPlan"), "{plan}");
    let all = plan.matches("user_id").count();
    assert_eq!(all, 0, "the scan calls the function: {plan}");
}

#[tokio::test]
async fn an_id_comes_back_as_it_was() {
    let fixture = tenant("members_ids", 1).await;
    let claims = r#"{"a":"\"\\'\u00fc😀","n":null,"list":[1,2.50]}"#;
    let hex = |text: &str| {
        text.bytes()
            .fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"))
    };
    for id in ["o'x\"", "a\\b", "ü", "😀|x", "$1", &"x".repeat(255)] {
        let mut login = member(&fixture, 1);
        login.role_use = RoleUse::Member(Arc::new(Member::new(id, claims).unwrap()));
        let read = "select encode(convert_to(tidegate.user_id(), 'UTF8'), 'hex')";
        let found = ours(read).value(&fixture, &login).await;
        assert_eq!(found, format!("\"{}\"", hex(id)));
        let number = ours("select (tidegate.claims()->'list'->>1)::numeric");
        assert_eq!(number.value(&fixture, &login).await, "\"2.50\"");
        let text = ours("select tidegate.claim('a')").value(&fixture, &login);
        assert_eq!(text.await, r#""\"\\'ü😀""#);
    }
}
