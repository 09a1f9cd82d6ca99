//! Tests many roles, and every way in which a role gets its privileges.

use std::time::Duration;

use tidegate_feed::{Ended, Error, Item, SubscribeRequest};

use crate::fixture::{Fixture, Listener, Setup};
use crate::query_log::{PRIVILEGES, QueryLog};

async fn listener(fixture: &Fixture, user: &str, columns: &[&str]) -> Listener {
    let mut request = fixture.request("t", columns).await;
    request.login = fixture.login(user);
    fixture.subscribe(request).await.unwrap()
}

const ROLES: usize = 600;

#[tokio::test(flavor = "multi_thread")]
async fn many_roles_are_queried_at_once_and_none_of_them_logs_in() {
    let setup = Setup::without_polls();
    let (fixture, queries) = QueryLog::fixture("feed_roles", &setup).await;
    // These roles have no password, so they cannot log in.
    fixture
        .run(&format!(
            "CREATE TABLE t (id int PRIMARY KEY, a text, b text);
             CREATE ROLE \"feed_roles/group\";
             GRANT SELECT ON t TO \"feed_roles/group\";
             DO $$ BEGIN FOR n IN 0..{} LOOP
                 EXECUTE format('CREATE ROLE %I LOGIN', 'feed_roles/r' || n);
                 EXECUTE format(CASE n % 3 WHEN 0 THEN 'GRANT \"feed_roles/group\" TO %I'
                     WHEN 1 THEN 'GRANT SELECT ON t TO %I'
                     ELSE 'GRANT SELECT (id, a) ON t TO %I' END, 'feed_roles/r' || n);
             END LOOP; END $$",
            ROLES - 1
        ))
        .await;
    let one = fixture.request("t", &["id", "a"]).await;
    let subscribing = (0..ROLES).map(|n| {
        let login = fixture.login(&format!("/r{n}"));
        let request = SubscribeRequest {
            login,
            ..one.clone()
        };
        let fixture = &fixture;
        async move { fixture.subscribe(request).await.unwrap() }
    });
    let mut listeners = futures_util::future::join_all(subscribing).await;
    // Requests that arrive while a query runs share the next query. A definition that comes through
    // the change log during that query repeats it once.
    let subscribed = queries.count(PRIVILEGES);
    assert!(subscribed < 30, "{subscribed} queries");
    fixture.run("INSERT INTO t VALUES (1, 'one')").await;
    for listener in &mut listeners {
        assert_eq!(listener.event().await, "+{\"id\":1,\"a\":\"one\"}");
    }
    let before = queries.count(PRIVILEGES);
    fixture
        .run(
            "REVOKE SELECT ON t FROM \"feed_roles/group\"; REVOKE SELECT (a) ON t FROM \"feed_roles/r2\";
             INSERT INTO t VALUES (2, 'two')",
        )
        .await;
    for (n, listener) in listeners.iter_mut().enumerate() {
        if n % 3 == 0 || n == 2 {
            assert_eq!(listener.next().await, Item::Ended(Ended::NotAllowed), "{n}");
        } else {
            assert_eq!(listener.event().await, "+{\"id\":2,\"a\":\"two\"}", "{n}");
        }
    }
    // Each query covers 500 roles.
    assert_eq!(queries.count(PRIVILEGES) - before, 2);
    assert_eq!(queries.run_as_users(), 0);
}

/// The rows that PostgreSQL shows a user of `t`.
async fn shown(fixture: &Fixture, user: &str) -> Vec<String> {
    let set = format!("SET ROLE \"{}{user}\"", fixture.name);
    fixture.run(&set).await;
    let rows = fixture.sql.query("SELECT id FROM t ORDER BY id", &[]).await;
    fixture.run("RESET ROLE").await;
    let row = |row: &tokio_postgres::Row| format!("+{{\"id\":{}}}", row.get::<_, i32>(0));
    rows.unwrap().iter().map(row).collect()
}

/// Creates a table with policies, and roles of every kind.
async fn matrix() -> Fixture {
    let fixture = Fixture::with("feed_matrix", &Setup::without_polls()).await;
    for (user, options) in [
        ("/team", ""),
        ("/above", "IN ROLE \"feed_matrix/team\""),
        ("/owner", ""),
        ("/root", "SUPERUSER"),
        ("/bypass", "BYPASSRLS"),
        ("/heir", "IN ROLE \"feed_matrix/owner\""),
        ("/no_heir", "NOINHERIT IN ROLE \"feed_matrix/owner\""),
        ("/member", "IN ROLE \"feed_matrix/team\""),
        ("/far_member", "IN ROLE \"feed_matrix/above\""),
        ("/no_member", "NOINHERIT IN ROLE \"feed_matrix/team\""),
        ("/quoted\"\\'", ""),
        ("/nobody", ""),
    ] {
        fixture.role(user, options).await;
    }
    fixture
        .run(
            "CREATE TABLE t (id int PRIMARY KEY, a text); GRANT SELECT (id) ON t TO PUBLIC;
             ALTER TABLE t OWNER TO \"feed_matrix/owner\"; ALTER TABLE t ENABLE ROW LEVEL SECURITY;
             CREATE POLICY team ON t TO \"feed_matrix/team\" USING (id = 1);
             CREATE POLICY everybody ON t FOR SELECT USING (id = 2);
             CREATE POLICY none ON t FOR INSERT WITH CHECK (true);
             CREATE POLICY quoted ON t TO \"feed_matrix/quoted\"\"\\'\" USING (id = 3)",
        )
        .await;
    fixture
}

#[tokio::test]
async fn each_role_gets_what_postgresql_shows_it() {
    let fixture = matrix().await;
    let users = [
        "/owner",
        "/root",
        "/bypass",
        "/heir",
        "/no_heir",
        "/member",
        "/far_member",
        "/no_member",
        "/nobody",
    ];
    let mut listeners = Vec::new();
    for user in users {
        listeners.push((user, listener(&fixture, user, &["id"]).await));
    }
    let mut quoted = listener(&fixture, "/quoted\"\\'", &["id"]).await;
    fixture.run("INSERT INTO t VALUES (1), (2), (3), (4)").await;
    for (user, listener) in &mut listeners {
        let shown = shown(&fixture, user).await;
        assert!(!shown.is_empty(), "{user}");
        assert_eq!(listener.events(shown.len()).await, shown, "{user}");
    }
    assert_eq!(quoted.events(2).await, ["+{\"id\":2}", "+{\"id\":3}"]);
    fixture
        .run("ALTER TABLE t FORCE ROW LEVEL SECURITY; INSERT INTO t VALUES (-1); DELETE FROM t WHERE id > 0")
        .await;
    for (user, listener) in &mut listeners {
        match *user {
            // These roles had no evaluator, and need one now.
            "/owner" | "/heir" => {
                let item = listener.next().await;
                let is_ended = matches!(item, Item::Ended(Ended::Changed { .. }));
                assert!(is_ended, "{user}: {item:?}");
            }
            "/root" | "/bypass" => assert_eq!(listener.event().await, "+{\"id\":-1}", "{user}"),
            _ => assert_eq!(listener.event().await.as_bytes()[0], b'-', "{user}"),
        }
    }
}

#[tokio::test]
async fn a_role_that_may_no_longer_connect_gets_nothing() {
    let fixture = Fixture::with(
        "feed_gone",
        &Setup::rechecked_every(Duration::from_millis(50)),
    )
    .await;
    let users = ["/dropped", "/locked", "/late", "/unconnected"];
    let members = ["/removed", "/member"];
    let all = users.iter().chain(&members).chain(["/stays"].iter());
    // `$users` holds CONNECT for its members, like the role of all users of a tenant.
    fixture.role("/$users", "").await;
    fixture
        .run(
            "CREATE TABLE t (id int PRIMARY KEY); GRANT SELECT ON t TO PUBLIC;
             REVOKE CONNECT ON DATABASE feed_gone FROM PUBLIC;
             GRANT CONNECT ON DATABASE feed_gone TO \"feed_gone/$users\"",
        )
        .await;
    for user in all.clone() {
        fixture.role(user, "").await;
        let grant = if members.contains(user) {
            format!("GRANT \"feed_gone/$users\" TO \"feed_gone{user}\"")
        } else {
            format!("GRANT CONNECT ON DATABASE feed_gone TO \"feed_gone{user}\"")
        };
        fixture.run(&grant).await;
    }
    let mut listeners = Vec::new();
    for user in all {
        listeners.push(listener(&fixture, user, &["id"]).await);
    }
    for (listener, change) in listeners.iter_mut().zip([
        "DROP OWNED BY \"feed_gone/dropped\"; DROP ROLE \"feed_gone/dropped\"",
        "ALTER ROLE \"feed_gone/locked\" NOLOGIN",
        "ALTER ROLE \"feed_gone/late\" VALID UNTIL '2020-01-01'",
        "REVOKE CONNECT ON DATABASE feed_gone FROM \"feed_gone/unconnected\"",
        "REVOKE \"feed_gone/$users\" FROM \"feed_gone/removed\"",
        "REVOKE CONNECT ON DATABASE feed_gone FROM \"feed_gone/$users\"",
    ]) {
        fixture.run(change).await;
        assert_eq!(
            listener.next().await,
            Item::Ended(Ended::NotAllowed),
            "{change}"
        );
    }
    fixture.run("INSERT INTO t VALUES (1)").await;
    let stays = listeners.last_mut().unwrap();
    assert_eq!(stays.event().await, "+{\"id\":1}");
    let mut request = fixture.request("t", &["id"]).await;
    request.login = fixture.login("/locked");
    let refused = fixture.subscribe(request).await.err();
    assert!(matches!(refused, Some(Error::NoRole)), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_policy_does_not_delay_checks_of_other_roles() {
    let setup = Setup::rechecked_every(Duration::from_millis(50));
    let fixture = Fixture::with("feed_long_judge", &setup).await;
    fixture.role("/bob", "").await;
    fixture
        .run(
            "CREATE TABLE t (id int PRIMARY KEY, a text);
             GRANT SELECT ON t TO \"feed_long_judge/alice\", \"feed_long_judge/bob\";
             ALTER TABLE t ENABLE ROW LEVEL SECURITY;
             CREATE POLICY slow ON t TO \"feed_long_judge/alice\" \
                 USING (pg_advisory_xact_lock_shared(7) IS NOT NULL);
             CREATE POLICY quick ON t TO \"feed_long_judge/bob\" USING (true);
             SELECT pg_advisory_lock(7)",
        )
        .await;
    let mut alice = listener(&fixture, "/alice", &["id"]).await;
    let mut bob = listener(&fixture, "/bob", &["id"]).await;
    fixture.run("INSERT INTO t VALUES (1)").await;
    assert_eq!(bob.event().await, "+{\"id\":1}");
    let waits = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 7 \
                 AND NOT granted AND database = \
                 (SELECT oid FROM pg_database WHERE datname = current_database())";
    while fixture
        .sql
        .query_one(waits, &[])
        .await
        .unwrap()
        .get::<_, i64>(0)
        == 0
    {
        tokio::task::yield_now().await;
    }
    // The evaluation of alice's policy lasts as long as the lock is held.
    fixture
        .run("REVOKE SELECT ON t FROM \"feed_long_judge/bob\"")
        .await;
    tokio::select! {
        biased;
        item = alice.next() => panic!("{item:?}"),
        item = bob.next() => assert_eq!(item, Item::Ended(Ended::NotAllowed)),
    }
    fixture.run("SELECT pg_advisory_unlock(7)").await;
    assert_eq!(alice.event().await, "+{\"id\":1}");
}
