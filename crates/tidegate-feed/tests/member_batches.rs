//! Many members of a group under policies that PostgreSQL evaluates: which members share a result,
//! and that no member gets the result of another.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use tidegate_feed::{Ended, Item};
use tidegate_sql::{Login, Member, RoleUse};
use tidegate_testkit::Random;

use crate::fixture::{Fixture, Listener, Setup};
use crate::members::{events, prepare, shown_to};
use crate::query_log::QueryLog;

/// A word of the statement that judges rows.
const JUDGEMENT: &str = "jsonb_populate_recordset";
/// The deadline for what a test waits for.
const SOON: Duration = Duration::from_secs(30);
const ORGS: [&str; 3] = ["north", "south", "East"];

/// A member whose claims are those of every third member.
pub(crate) fn person(number: usize) -> Member {
    let claims = format!(r#"{{"org":"{}","level":{}}}"#, ORGS[number % 3], number % 3);
    Member::new(&format!("m{number}"), &claims).unwrap()
}

pub(crate) async fn listeners(fixture: &Fixture, table: &str, count: usize) -> Vec<Listener> {
    let mut listeners = Vec::with_capacity(count);
    for number in 0..count {
        let mut request = fixture.request(table, &["id"]).await;
        request.login = Login {
            role_use: RoleUse::Member(Arc::new(person(number))),
            ..fixture.login("/group/staff")
        };
        listeners.push(fixture.subscribe(request).await.unwrap());
    }
    listeners
}

pub(crate) async fn create(fixture: &Fixture, table: &str, policies: &[(&str, impl AsRef<str>)]) {
    let mut sql = format!(
        "CREATE TABLE {table} (id int PRIMARY KEY, owner text, org text, level int, mood mood); \
         GRANT SELECT ON {table} TO PUBLIC; ALTER TABLE {table} ENABLE ROW LEVEL SECURITY;"
    );
    for (number, (kind, policy)) in policies.iter().enumerate() {
        let policy = policy.as_ref();
        write!(
            sql,
            "CREATE POLICY p{number} ON {table} {kind} USING ({policy});"
        )
        .unwrap();
    }
    fixture.run(&sql).await;
}

/// Types and functions that the policies use.
pub(crate) async fn define(fixture: &Fixture) {
    fixture
        .run(
            "CREATE TYPE mood AS ENUM ('glad', 'sad');
             CREATE FUNCTION is_mine(owner text) RETURNS boolean LANGUAGE plpgsql STABLE AS
                 'BEGIN RETURN owner = tidegate.user_id(); END';
             CREATE TABLE friends (a text, b text); GRANT SELECT ON friends TO PUBLIC;
             INSERT INTO friends SELECT 'm' || i, 'm' || (i + 1) FROM generate_series(0, 40) i",
        )
        .await;
}

/// A cast that asks for the caller, which the text of a policy does not show.
const CAST: &str = "
    CREATE FUNCTION owner_of(mood) RETURNS text LANGUAGE sql STABLE AS 'SELECT tidegate.user_id()';
    CREATE CAST (mood AS text) WITH FUNCTION owner_of(mood) AS IMPLICIT";

/// Policies, and how many results nine members with three sets of claims need.
const SHARED: [(&str, usize); 8] = [
    ("level > 0", 1),
    ("length(org) = 5 AND owner IS NOT NULL", 1),
    ("lower(org) = lower((SELECT tidegate.claim('org')))", 3),
    ("level >= (tidegate.claims() ->> 'level')::int", 3),
    ("lower(owner) = (SELECT tidegate.user_id())", 9),
    ("owner = mood", 9),
    (
        "org = current_setting('tidegate.claims') OR is_mine(owner)",
        9,
    ),
    (
        "EXISTS (SELECT FROM friends f WHERE f.a = owner AND f.b = (SELECT tidegate.claim('org')))",
        9,
    ),
];

#[tokio::test]
async fn members_whom_the_policies_treat_alike_share_a_result() {
    let (mut fixture, queries) =
        QueryLog::fixture("feed_batches_shared", &Setup::without_polls()).await;
    prepare(&mut fixture).await;
    define(&fixture).await;
    fixture.run(CAST).await;
    for (number, (policy, results)) in SHARED.iter().enumerate() {
        let table = format!("t{number}");
        create(&fixture, &table, &[("", *policy)]).await;
        let mut listeners = listeners(&fixture, &table, 9).await;
        let before = queries.count(JUDGEMENT);
        let judged = || queries.count(JUDGEMENT) - before;
        let insert = format!("INSERT INTO {table} VALUES (1, 'm0', 'north', 1, 'glad')");
        fixture.run(&insert).await;
        let all_judged = async {
            while judged() < *results {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(SOON, all_judged).await.expect(policy);
        // All see the second row, so each reader has finished with the first one.
        let disable = format!("ALTER TABLE {table} DISABLE ROW LEVEL SECURITY");
        fixture
            .run(&format!("{disable}; INSERT INTO {table} VALUES (2)"))
            .await;
        for listener in &mut listeners {
            while listener.event().await != "+{\"id\":2}" {}
        }
        assert_eq!(judged(), *results, "{policy}");
    }
}

#[tokio::test]
async fn members_stop_sharing_when_the_policies_tell_them_apart() {
    let mut fixture = Fixture::with("feed_batches_changed", &Setup::without_polls()).await;
    prepare(&mut fixture).await;
    define(&fixture).await;
    create(&fixture, "t", &[("", "level > 0")]).await;
    let mut listeners = listeners(&fixture, "t", 3).await;
    let change = "ALTER POLICY p0 ON t USING (is_mine(owner)); INSERT INTO t VALUES (1, 'm0')";
    fixture.run(change).await;
    for listener in &mut listeners {
        let Item::Ended(Ended::Changed { problem }) = listener.next().await else {
            panic!("the subscription goes on");
        };
        assert_eq!(problem, "the policies of the table have changed");
    }
}

/// Conditions for random policies.
const CONDITIONS: [&str; 11] = [
    "level > 1",
    "org = 'south'",
    "lower(org) = lower((SELECT tidegate.claim('org')))",
    "level::text = (SELECT tidegate.claim('level'))",
    "level < (tidegate.claims() ->> 'level')::int",
    "owner = (SELECT tidegate.user_id())",
    "lower(owner) = (SELECT tidegate.user_id())",
    "owner > tidegate.user_id()",
    "is_mine(owner)",
    "EXISTS (SELECT FROM friends f WHERE f.a = owner AND f.b = (SELECT tidegate.user_id()))",
    "owner IS NULL",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_members_get_what_postgresql_shows_each_of_them() {
    const MEMBERS: usize = 30;
    let mut fixture = Fixture::with("feed_batches_random", &Setup::without_polls()).await;
    prepare(&mut fixture).await;
    define(&fixture).await;
    let group = fixture.session_of("/group/staff").await;
    let mut random = Random::new(33);
    for (round, first) in CONDITIONS.into_iter().enumerate() {
        let table = format!("t{round}");
        let mut policies = vec![("", first)];
        for _ in 0..random.below(3) {
            let kind = ["", "", "AS RESTRICTIVE"][random.below(3)];
            policies.push((kind, CONDITIONS[random.below(CONDITIONS.len())]));
        }
        // Rows of level 100 are visible to all members. The last row has this level, so each
        // listener knows when it has all events.
        let with_last =
            |(kind, policy): (&'static str, &str)| (kind, format!("{policy} OR level = 100"));
        let policies: Vec<_> = policies.into_iter().map(with_last).collect();
        create(&fixture, &table, &policies).await;
        let mut listeners = listeners(&fixture, &table, MEMBERS).await;
        let row = |id: usize, random: &mut Random| {
            let owner = match random.below(8) {
                0 => "NULL".to_owned(),
                _ => format!("'m{}'", random.below(MEMBERS + 2)),
            };
            let org = ["north", "SOUTH", "south", "east"][random.below(4)];
            format!("({id}, {owner}, '{org}', {}, 'sad')", random.below(4))
        };
        let rows: Vec<String> = (0..40).map(|id| row(id, &mut random)).collect();
        // Several transactions, so that there are several batches.
        for rows in rows.chunks(8) {
            let insert = format!("INSERT INTO {table} VALUES {}", rows.join(", "));
            fixture.run(&insert).await;
        }
        fixture
            .run(&format!("INSERT INTO {table} (id, level) VALUES (99, 100)"))
            .await;
        for (number, listener) in listeners.iter_mut().enumerate() {
            let ids = shown_to(&fixture, &group, &table, &person(number)).await;
            let mut found = vec![listener.event().await];
            while found.last().unwrap() != "+{\"id\":99}" {
                found.push(listener.event().await);
            }
            found.sort();
            let mut wanted = events('+', &ids);
            wanted.sort();
            assert_eq!(found, wanted, "member {number}: {policies:?}");
        }
    }
}

/// A function for a policy. It shows the caller's rows, and tries to show more to those who are
/// judged after the caller: it keeps the caller's seal and uses that of an earlier caller, leaves
/// settings, and puts a statement of its own in the place of the one that judges.
const HOSTILE: &str = "
    CREATE FUNCTION hostile(owner text) RETURNS boolean LANGUAGE plpgsql AS $f$
    DECLARE own text := tidegate.user_id(); p record; BEGIN
        IF coalesce(current_setting('kept.identity', true), '') = '' THEN
            PERFORM set_config('kept.identity', current_setting('tidegate.identity'), false),
                    set_config('kept.claims', current_setting('tidegate.claims'), false);
        ELSE
            PERFORM set_config('tidegate.identity', current_setting('kept.identity'), true),
                    set_config('tidegate.claims', current_setting('kept.claims'), true);
            IF tidegate.user_id() <> own THEN RETURN true; END IF;
        END IF;
        PERFORM set_config('tidegate.identity', current_setting('tidegate.identity'), false),
                set_config('tidegate.claims', current_setting('tidegate.claims'), false),
                set_config('search_path', 'traps', false);
        FOR p IN SELECT name FROM pg_prepared_statements
                 WHERE NOT from_sql AND statement LIKE '%jsonb_populate_recordset%' LOOP
            EXECUTE format('DEALLOCATE %I', p.name);
            EXECUTE format('PREPARE %I (int8[], jsonb) AS SELECT ''1''::text', p.name);
        END LOOP;
        RETURN owner = own;
    EXCEPTION WHEN insufficient_privilege THEN RETURN owner = own; END $f$;
    CREATE SCHEMA traps;
    CREATE FUNCTION traps.lower(text) RETURNS text LANGUAGE sql AS 'SELECT tidegate.user_id()';
    GRANT USAGE ON SCHEMA traps TO PUBLIC;";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn code_in_a_policy_does_not_reach_the_judgement_of_the_next_member() {
    const MEMBERS: usize = 8;
    let mut fixture = Fixture::with("feed_batches_hostile", &Setup::without_polls()).await;
    prepare(&mut fixture).await;
    define(&fixture).await;
    fixture.run(HOSTILE).await;
    create(&fixture, "t", &[("", "hostile(lower(owner))")]).await;
    let mut listeners = listeners(&fixture, "t", MEMBERS).await;
    for round in 0..3 {
        for number in 0..MEMBERS {
            let id = round * MEMBERS + number;
            fixture
                .run(&format!("INSERT INTO t VALUES ({id}, 'm{number}')"))
                .await;
        }
        for (number, listener) in listeners.iter_mut().enumerate() {
            let id = round * MEMBERS + number;
            assert_eq!(listener.event().await, format!("+{{\"id\":{id}}}"));
        }
    }
}

#[tokio::test]
async fn rows_wait_until_the_policies_are_read_for_the_columns_of_the_table() {
    let mut fixture = Fixture::with("feed_batches_columns", &Setup::default()).await;
    prepare(&mut fixture).await;
    let policy = "owner IS NULL OR lower(owner) = (SELECT tidegate.user_id())";
    for (number, change) in ["ADD y text", "DROP x, ADD y text"].into_iter().enumerate() {
        let table = format!("t{number}");
        fixture
            .run(&format!(
                "CREATE TABLE {table} (id int PRIMARY KEY, x text, owner text);
                 GRANT SELECT ON {table} TO PUBLIC; ALTER TABLE {table} ENABLE ROW LEVEL SECURITY;
                 CREATE POLICY p ON {table} USING ({policy})"
            ))
            .await;
        let mut listeners = listeners(&fixture, &table, 2).await;
        // After the first row, the policies are not read again for each change.
        let first = format!("INSERT INTO {table} VALUES (0, 'a', NULL)");
        fixture.run(&first).await;
        for listener in &mut listeners {
            assert_eq!(listener.event().await, "+{\"id\":0}");
        }
        let insert = format!("INSERT INTO {table} VALUES (1, 'a', 'm0'), (2, 'b', NULL)");
        let alter = format!("ALTER TABLE {table} {change}");
        // A new connection has not prepared the judgement.
        let close = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
             WHERE datname = current_database() AND usename LIKE '%/group/staff'";
        fixture
            .run(&format!(
                "BEGIN; {insert}; COMMIT; BEGIN; {alter}; {close}; COMMIT"
            ))
            .await;
        assert_eq!(listeners[0].event().await, "+{\"id\":1}", "{change}");
        assert_eq!(listeners[0].event().await, "+{\"id\":2}", "{change}");
        assert_eq!(listeners[1].event().await, "+{\"id\":2}", "{change}");
    }
}
