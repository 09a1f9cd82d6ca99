//! Subscriptions of members, whom policies show their own rows.

use std::sync::Arc;

use tidegate_feed::{Ended, Item};
use tidegate_postgres::{SET_CLAIMS, claims_head};
use tidegate_service::{ClaimsFunctions, ClaimsState, install_claims};
use tidegate_sql::{Login, Member, RoleUse};
use tidegate_testkit::{Random, claims_key};
use tokio_postgres::Client;

use crate::fixture::{Fixture, Listener, Setup};
use crate::query_log::{PRIVILEGES, QueryLog};

/// The ids of members, which are UUIDs, so that they can be compared with columns of each type.
const IDS: [&str; 4] = [
    "0b7e9c1e-0000-4000-8000-000000000000",
    "0b7e9c1e-0000-4000-8000-000000000001",
    "0b7e9c1e-0000-4000-8000-000000000002",
    // PostgreSQL reads this as a UUID, but prints it in another way.
    "0B7E9C1E-0000-4000-8000-000000000003",
];
const ORGS: [&str; 3] = ["north", "it's", "3"];

/// The claims of a member.
fn claims(number: usize) -> String {
    match number {
        0 => r#"{"org":"north","it's":"it's","n":3}"#.to_owned(),
        1 => r#"{"org":"it's","it's":"north","n":"3"}"#.to_owned(),
        2 => r#"{"org":null,"n":[3]}"#.to_owned(),
        _ => "{}".to_owned(),
    }
}

/// Gives a database the functions of claims and the group `<name>/group/staff`.
pub(crate) async fn prepare(fixture: &mut Fixture) {
    let key = claims_key(&fixture.name, 1).halves();
    let wanted = ClaimsFunctions { generation: 1, key };
    let state = install_claims(&mut fixture.sql, &wanted).await.unwrap();
    assert_eq!(state, ClaimsState::Current);
    fixture.role("/group/staff", "").await;
}

fn member(fixture: &Fixture, number: usize) -> Login {
    let member = Member::new(IDS[number], &claims(number)).unwrap();
    Login {
        role_use: RoleUse::Member(Arc::new(member)),
        ..fixture.login("/group/staff")
    }
}

async fn listener(fixture: &Fixture, table: &str, number: usize) -> Listener {
    let mut request = fixture.request(table, &["id"]).await;
    request.login = member(fixture, number);
    fixture.subscribe(request).await.unwrap()
}

/// The ids of the rows that PostgreSQL shows a member.
async fn shown(fixture: &Fixture, group: &Client, table: &str, number: usize) -> Vec<i32> {
    let member = Member::new(IDS[number], &claims(number)).unwrap();
    shown_to(fixture, group, table, &member).await
}

pub(crate) async fn shown_to(
    fixture: &Fixture,
    group: &Client,
    table: &str,
    member: &Member,
) -> Vec<i32> {
    group.batch_execute("BEGIN").await.unwrap();
    let pid = group.query_one("SELECT pg_backend_pid()", &[]).await;
    let pid = pid.unwrap().get::<_, i32>(0);
    let head = claims_head(member.id(), member.claims());
    let token = claims_key(&fixture.name, 1).token(pid, &head);
    let token = &token[..];
    group
        .query_one(SET_CLAIMS, &[&token, &head, &member.claims()])
        .await
        .unwrap();
    let query = format!("SELECT id FROM {table} ORDER BY id");
    let rows = group.query(&query, &[]).await.unwrap();
    group.batch_execute("ROLLBACK").await.unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

pub(crate) fn events(sign: char, ids: &[i32]) -> Vec<String> {
    let event = |id: &i32| format!("{sign}{{\"id\":{id}}}");
    ids.iter().map(event).collect()
}

#[tokio::test]
async fn members_get_their_own_rows_without_a_query() {
    let (mut fixture, queries) = QueryLog::fixture("feed_members", &Setup::without_polls()).await;
    prepare(&mut fixture).await;
    fixture
        .run(
            "CREATE TABLE t (id int PRIMARY KEY, owner text); GRANT SELECT ON t TO PUBLIC;
             ALTER TABLE t ENABLE ROW LEVEL SECURITY;
             CREATE POLICY own ON t USING (owner = (SELECT tidegate.user_id()))",
        )
        .await;
    let mut zero = listener(&fixture, "t", 0).await;
    let mut one = listener(&fixture, "t", 1).await;
    let insert = format!(
        "INSERT INTO t VALUES (1, '{}'), (2, '{}'), (3, NULL), (4, '{}')",
        IDS[0], IDS[1], IDS[0]
    );
    fixture.run(&insert).await;
    assert_eq!(zero.events(2).await, events('+', &[1, 4]));
    assert_eq!(one.event().await, "+{\"id\":2}");
    // The row goes to another member.
    let update = format!("UPDATE t SET owner = '{}' WHERE id = 1", IDS[1]);
    fixture.run(&update).await;
    assert_eq!(one.event().await, "~{\"id\":1}");
    fixture.run("DELETE FROM t WHERE id IN (1, 4)").await;
    assert_eq!(zero.event().await, "-{\"id\":4}");
    assert_eq!(one.event().await, "-{\"id\":1}");
    assert_eq!(queries.run_as_users(), 0);
    // A change of the policies ends the subscriptions, which were checked against the old ones.
    fixture
        .run("ALTER POLICY own ON t USING (false); INSERT INTO t VALUES (5, NULL)")
        .await;
    for listener in [&mut zero, &mut one] {
        let Item::Ended(Ended::Changed { problem }) = listener.next().await else {
            panic!("the subscription goes on");
        };
        assert_eq!(problem, "the policies of the table have changed");
    }
}

#[tokio::test]
async fn a_subscription_that_resumes_gets_the_members_own_rows() {
    let mut fixture = Fixture::new("feed_members_resume").await;
    prepare(&mut fixture).await;
    fixture
        .run(
            "CREATE TABLE t (id int PRIMARY KEY, org varchar(20)); GRANT SELECT ON t TO PUBLIC;
             ALTER TABLE t ENABLE ROW LEVEL SECURITY;
             CREATE POLICY org ON t USING (org = (SELECT tidegate.claim('org')))",
        )
        .await;
    let mut first = listener(&fixture, "t", 0).await;
    fixture.run("INSERT INTO t VALUES (1, 'north')").await;
    assert_eq!(first.event().await, "+{\"id\":1}");
    let cursor = first.cursor;
    drop(first);
    let missed = "INSERT INTO t VALUES (2, 'it''s'), (3, 'north'), (4, NULL)";
    fixture.run(missed).await;
    let mut request = fixture.request("t", &["id"]).await;
    request.login = member(&fixture, 0);
    request.after = Some(cursor);
    let mut second = fixture.subscribe(request).await.unwrap();
    assert_eq!(second.event().await, "+{\"id\":3}");
    fixture.run("INSERT INTO t VALUES (5, 'north')").await;
    assert_eq!(second.event().await, "+{\"id\":5}");
}

/// More members than the roles whose rights one query asks for, which are 500.
const MANY: usize = 600;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rights_are_asked_once_for_all_members_of_a_group() {
    let (mut fixture, queries) =
        QueryLog::fixture("feed_members_rights", &Setup::without_polls()).await;
    prepare(&mut fixture).await;
    fixture
        .run(
            "CREATE TABLE t (id int PRIMARY KEY, org text); GRANT SELECT ON t TO PUBLIC;
             ALTER TABLE t ENABLE ROW LEVEL SECURITY;
             CREATE POLICY org ON t USING (org = (SELECT tidegate.claim('org')))",
        )
        .await;
    let one = fixture.request("t", &["id"]).await;
    let subscribing = (0..MANY).map(|number| {
        let member = Member::new(&format!("m{number}"), &claims(0)).unwrap();
        let mut request = one.clone();
        request.login = Login {
            role_use: RoleUse::Member(Arc::new(member)),
            ..fixture.login("/group/staff")
        };
        fixture.subscribe(request)
    });
    let listeners = futures_util::future::join_all(subscribing).await;
    let mut listeners: Vec<_> = listeners.into_iter().map(Result::unwrap).collect();
    fixture.run("INSERT INTO t VALUES (1, 'north')").await;
    for listener in &mut listeners {
        assert_eq!(listener.event().await, "+{\"id\":1}");
    }
    let before = queries.count(PRIVILEGES);
    fixture
        .run(
            "GRANT UPDATE ON t TO \"feed_members_rights/group/staff\";
             INSERT INTO t VALUES (2, 'north')",
        )
        .await;
    for listener in &mut listeners {
        assert_eq!(listener.event().await, "+{\"id\":2}");
    }
    assert_eq!(queries.count(PRIVILEGES) - before, 1);
    fixture
        .run("REVOKE SELECT ON t FROM PUBLIC; INSERT INTO t VALUES (3, 'north')")
        .await;
    for listener in &mut listeners {
        assert_eq!(listener.next().await, Item::Ended(Ended::NotAllowed));
    }
    assert_eq!(queries.count(PRIVILEGES) - before, 2);
    assert_eq!(queries.run_as_users(), 0);
}

/// Policies. The feed recognises the first [`RECOGNISED`], and must not recognise the others, which
/// look similar.
const POLICIES: [&str; 16] = [
    "a = (SELECT tidegate.user_id())",
    "b = (SELECT tidegate.user_id())",
    "c = (SELECT tidegate.user_id()::uuid)",
    "c = (SELECT tidegate.user_id())::uuid",
    "a = (SELECT tidegate.claim('org'))",
    "\"odd \"\"name\" = (SELECT tidegate.claim('it''s'))",
    "b = (SELECT tidegate.claim('none'))",
    "a = (SELECT tidegate.claim('n'))",
    "(SELECT tidegate.user_id()) = a",
    "a = tidegate.user_id()",
    "a <> (SELECT tidegate.user_id())",
    "lower(a) = (SELECT tidegate.user_id())",
    "d = (SELECT tidegate.user_id())",
    "e = (SELECT tidegate.claim('org'))",
    "a IN (SELECT tidegate.user_id())",
    "a = (SELECT tidegate.user_id() AS claim)",
];

const RECOGNISED: usize = 8;

#[tokio::test]
async fn recognised_policies_need_no_query() {
    let (mut fixture, queries) =
        QueryLog::fixture("feed_members_known", &Setup::without_polls()).await;
    prepare(&mut fixture).await;
    for (number, policy) in POLICIES.iter().enumerate() {
        let table = format!("t{number}");
        create(&fixture, &table, &[("", *policy)]).await;
        let before = queries.run_as_users();
        let mut zero = listener(&fixture, &table, 0).await;
        let (id, org) = (IDS[0], "north");
        let insert = format!(
            "INSERT INTO {table} VALUES (0, '{id}', '{id}', '{id}', 'it''s', '{id}', '{org}'), \
                 (1, '{id}', '{org}', '{id}', 'it''s', '{id}', '{org}'), \
                 (2, '{id}', '3', NULL, 'it''s', '{id}', '{org}')"
        );
        fixture.run(&insert).await;
        if *policy != "b = (SELECT tidegate.claim('none'))" {
            let event = zero.event().await;
            assert!(event.starts_with('+'), "{policy}: {event}");
        }
        let is_queried = queries.run_as_users() > before;
        assert_eq!(is_queried, number >= RECOGNISED, "{policy}");
    }
}

/// Policies that compare integers, of which the first four are recognised.
const INTEGERS: [&str; 6] = [
    "i = (SELECT tidegate.claim('n')::int)",
    "i = (SELECT tidegate.claim('n'))::int",
    "l = (SELECT tidegate.claim('n')::bigint)",
    "l = (SELECT tidegate.claim('n'))::bigint",
    "i = (SELECT tidegate.claim('n')::bigint)",
    "l = (SELECT tidegate.claim('n')::int)",
];

#[tokio::test]
async fn policies_that_compare_integers_need_no_query() {
    let (mut fixture, queries) =
        QueryLog::fixture("feed_members_integers", &Setup::without_polls()).await;
    prepare(&mut fixture).await;
    for (number, policy) in INTEGERS.iter().enumerate() {
        let table = format!("t{number}");
        let create = format!(
            "CREATE TABLE {table} (id int PRIMARY KEY, i int, l bigint); \
             GRANT SELECT ON {table} TO PUBLIC; ALTER TABLE {table} ENABLE ROW LEVEL SECURITY; \
             CREATE POLICY p ON {table} USING ({policy})"
        );
        fixture.run(&create).await;
        let before = queries.run_as_users();
        // A number, a text of digits, and no claim.
        let mut listeners = Vec::new();
        for member in [0, 1, 3] {
            listeners.push(listener(&fixture, &table, member).await);
        }
        let insert =
            format!("INSERT INTO {table} VALUES (0, 4, 4), (1, 3, 3), (2, NULL, NULL), (3, 3, 3)");
        fixture.run(&insert).await;
        for listener in &mut listeners[..2] {
            assert_eq!(listener.events(2).await, events('+', &[1, 3]), "{policy}");
        }
        let is_queried = queries.run_as_users() > before;
        assert_eq!(is_queried, number >= 4, "{policy}");
    }
}

/// Creates a table with policies, each with its kind and condition.
async fn create(fixture: &Fixture, table: &str, policies: &[(&str, &str)]) {
    let mut sql = format!(
        "CREATE COLLATION IF NOT EXISTS folded (provider = icu, locale = 'und-u-ks-level2', \
             deterministic = false); \
         CREATE TABLE {table} (id int PRIMARY KEY, c uuid, a text, b varchar(40), \
             \"odd \"\"name\" text COLLATE \"C\", d text COLLATE folded, e char(40)); \
         GRANT SELECT ON {table} TO PUBLIC; ALTER TABLE {table} ENABLE ROW LEVEL SECURITY;"
    );
    for (number, (kind, policy)) in policies.iter().enumerate() {
        let create = format!("CREATE POLICY p{number} ON {table} {kind} USING ({policy});");
        sql.push_str(&create);
    }
    fixture.run(&sql).await;
}

/// A row with random values. Afterwards, `last` fills each column with what the member has.
fn row(random: &mut Random, id: usize, last: Option<usize>) -> String {
    let quote = |text: &str| format!("'{}'", text.replace('\'', "''"));
    let mut text = || match last {
        Some(number) if random.one_in(2) => quote(IDS[number]),
        _ => match random.below(9) {
            0 => "NULL".to_owned(),
            1 => "''".to_owned(),
            2..5 => quote(ORGS[random.below(ORGS.len())]),
            5 => quote(&IDS[3].to_lowercase()),
            _ => quote(IDS[random.below(IDS.len())]),
        },
    };
    let texts: Vec<String> = (0..5).map(|_| text()).collect();
    let uuid = quote(IDS[random.below(IDS.len())]);
    format!("({id}, {uuid}, {})", texts.join(", "))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_get_what_postgresql_shows_them() {
    let mut fixture = Fixture::with("feed_members_random", &Setup::without_polls()).await;
    prepare(&mut fixture).await;
    let group = fixture.session_of("/group/staff").await;
    let mut random = Random::new(12);
    for round in 0..24 {
        let table = format!("t{round}");
        // Each round uses the next policy, with up to two random ones.
        let mut policies = vec![("", POLICIES[round % POLICIES.len()])];
        for _ in 0..random.below(3) {
            let kind = if random.one_in(6) {
                "AS RESTRICTIVE"
            } else {
                ""
            };
            policies.push((kind, POLICIES[random.below(POLICIES.len())]));
        }
        create(&fixture, &table, &policies).await;
        let mut listeners = Vec::new();
        for number in 0..IDS.len() {
            listeners.push(listener(&fixture, &table, number).await);
        }
        let rows: Vec<String> = (0..30)
            .map(|id| row(&mut random, id, (id > 20).then_some(id % IDS.len())))
            .collect();
        let insert = format!("INSERT INTO {table} VALUES {}", rows.join(", "));
        fixture.run(&insert).await;
        let mut expected = Vec::new();
        for number in 0..IDS.len() {
            expected.push(shown(&fixture, &group, &table, number).await);
        }
        fixture.run(&format!("UPDATE {table} SET c = c")).await;
        fixture.run(&format!("DELETE FROM {table}")).await;
        for (number, listener) in listeners.iter_mut().enumerate() {
            let ids = &expected[number];
            for sign in ['+', '~', '-'] {
                let mut found = listener.events(ids.len()).await;
                found.sort();
                let mut wanted = events(sign, ids);
                wanted.sort();
                assert_eq!(found, wanted, "member {number}: {policies:?}");
            }
        }
    }
}
