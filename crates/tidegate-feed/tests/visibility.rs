//! Tests that every change of what a role may see applies to the next row: no event is dropped
//! silently, and none is delivered that the role could not read.

use tidegate_feed::{Ended, Item, Operation};

use crate::fixture::{Fixture, Listener, Setup};
use crate::query_log::QueryLog;

/// A pair of statements: `show` makes the rows of `t` visible to alice, `hide` hides them again.
struct VisibleChange {
    /// A statement that runs first. After it the rows are hidden.
    setup: &'static str,
    show: &'static str,
    hide: &'static str,
    /// Whether alice may not subscribe while the rows are hidden.
    refused: bool,
}

const fn by_policy(setup: &'static str, show: &'static str, hide: &'static str) -> VisibleChange {
    VisibleChange {
        setup,
        show,
        hide,
        refused: false,
    }
}

const fn by_grant(setup: &'static str, show: &'static str, hide: &'static str) -> VisibleChange {
    VisibleChange {
        setup,
        show,
        hide,
        refused: true,
    }
}

/// Row level security hides all rows except those with negative numbers.
const HIDDEN: &str = "GRANT SELECT ON t TO PUBLIC; ALTER TABLE t ENABLE ROW LEVEL SECURITY; \
                      CREATE POLICY p ON t USING (id < 0)";

/// Row level security hides all rows except those with negative numbers, but not from the role
/// `team`.
const TEAM: &str = "GRANT SELECT ON t TO PUBLIC; ALTER TABLE t ENABLE ROW LEVEL SECURITY; \
                    CREATE POLICY s ON t USING (id < 0); CREATE POLICY p ON t TO \"feed_ways/team\" USING (true)";

const CHANGES: [VisibleChange; 21] = [
    by_policy(
        HIDDEN,
        "ALTER TABLE t DISABLE ROW LEVEL SECURITY",
        "ALTER TABLE t ENABLE ROW LEVEL SECURITY",
    ),
    by_policy(
        "GRANT SELECT ON t TO PUBLIC; ALTER TABLE t ENABLE ROW LEVEL SECURITY; \
         CREATE POLICY s ON t USING (id < 0); \
         ALTER TABLE t OWNER TO \"feed_ways/alice\"; ALTER TABLE t FORCE ROW LEVEL SECURITY",
        "ALTER TABLE t NO FORCE ROW LEVEL SECURITY",
        "ALTER TABLE t FORCE ROW LEVEL SECURITY",
    ),
    by_policy(
        HIDDEN,
        "CREATE POLICY q ON t USING (true)",
        "DROP POLICY q ON t",
    ),
    by_policy(
        HIDDEN,
        "ALTER POLICY p ON t USING (id > 0)",
        "ALTER POLICY p ON t USING (id < 0)",
    ),
    by_policy(
        TEAM,
        "ALTER POLICY p ON t TO PUBLIC",
        "ALTER POLICY p ON t TO \"feed_ways/team\"",
    ),
    by_policy(
        "GRANT SELECT ON t TO PUBLIC; ALTER TABLE t ENABLE ROW LEVEL SECURITY; \
         CREATE POLICY p ON t USING (true); CREATE POLICY r ON t AS RESTRICTIVE USING (id < 0)",
        "DROP POLICY r ON t",
        "CREATE POLICY r ON t AS RESTRICTIVE USING (id < 0)",
    ),
    by_policy(
        HIDDEN,
        "ALTER TABLE t OWNER TO \"feed_ways/alice\"",
        "ALTER TABLE t OWNER TO \"feed_ways\"",
    ),
    by_policy(
        HIDDEN,
        "ALTER ROLE \"feed_ways/alice\" BYPASSRLS",
        "ALTER ROLE \"feed_ways/alice\" NOBYPASSRLS",
    ),
    by_policy(
        HIDDEN,
        "ALTER ROLE \"feed_ways/alice\" SUPERUSER",
        "ALTER ROLE \"feed_ways/alice\" NOSUPERUSER",
    ),
    by_policy(
        TEAM,
        "GRANT \"feed_ways/team\" TO \"feed_ways/alice\"",
        "REVOKE \"feed_ways/team\" FROM \"feed_ways/alice\"",
    ),
    by_policy(
        TEAM,
        "GRANT \"feed_ways/team\" TO \"feed_ways/above\"",
        "REVOKE \"feed_ways/team\" FROM \"feed_ways/above\"",
    ),
    by_policy(
        "GRANT SELECT ON t TO PUBLIC; ALTER TABLE t ENABLE ROW LEVEL SECURITY; \
         CREATE POLICY s ON t USING (id < 0); ALTER TABLE t OWNER TO \"feed_ways/team\"",
        "GRANT \"feed_ways/team\" TO \"feed_ways/above\"",
        "REVOKE \"feed_ways/team\" FROM \"feed_ways/above\"",
    ),
    by_grant(
        "",
        "GRANT SELECT ON t TO PUBLIC",
        "REVOKE SELECT ON t FROM PUBLIC",
    ),
    by_grant(
        "",
        "GRANT SELECT ON t TO \"feed_ways/alice\"",
        "REVOKE SELECT ON t FROM \"feed_ways/alice\"",
    ),
    by_grant(
        "GRANT SELECT (a) ON t TO PUBLIC",
        "GRANT SELECT (id) ON t TO \"feed_ways/alice\"",
        "REVOKE SELECT (id) ON t FROM \"feed_ways/alice\"",
    ),
    by_grant(
        "",
        "ALTER TABLE t OWNER TO \"feed_ways/alice\"",
        "ALTER TABLE t OWNER TO \"feed_ways\"",
    ),
    by_grant(
        "GRANT SELECT ON t TO \"feed_ways/team\"",
        "GRANT \"feed_ways/team\" TO \"feed_ways/alice\"",
        "REVOKE \"feed_ways/team\" FROM \"feed_ways/alice\"",
    ),
    by_grant(
        "GRANT SELECT ON t TO \"feed_ways/team\"",
        "GRANT \"feed_ways/team\" TO \"feed_ways/above\"",
        "REVOKE \"feed_ways/team\" FROM \"feed_ways/above\"",
    ),
    by_grant(
        "GRANT SELECT ON t TO \"feed_ways/above\"",
        "GRANT SELECT ON t TO \"feed_ways/above\"",
        "REVOKE SELECT ON t FROM \"feed_ways/above\"",
    ),
    by_grant(
        "",
        "GRANT pg_read_all_data TO \"feed_ways/alice\"",
        "REVOKE pg_read_all_data FROM \"feed_ways/alice\"",
    ),
    by_grant(
        "",
        "ALTER ROLE \"feed_ways/alice\" SUPERUSER",
        "ALTER ROLE \"feed_ways/alice\" NOSUPERUSER",
    ),
];

/// A fixture whose feed does not poll or recheck, so that privileges are read again only before the
/// next change.
async fn fixture(name: &str) -> Fixture {
    Fixture::with(name, &Setup::without_polls()).await
}

async fn insert(fixture: &Fixture, id: i32) {
    fixture.run(&format!("INSERT INTO t VALUES ({id})")).await;
}

/// Checks that the next item is this row.
async fn assert_next_row(listener: &mut Listener, id: i32, what: &str) {
    let row = listener.event().await;
    assert_eq!(row, format!("+{{\"id\":{id},\"a\":null}}"), "{what}");
}

/// Hides the rows. Checks that alice's subscription ends before the next row, or continues without
/// it.
async fn assert_hidden(
    fixture: &Fixture,
    listener: &mut Listener,
    change: &VisibleChange,
    id: i32,
) {
    fixture.run(change.hide).await;
    insert(fixture, id).await;
    // A row that is visible to all follows the hidden row.
    insert(fixture, -id).await;
    match listener.next().await {
        Item::Ended(Ended::NotAllowed) if change.refused => {}
        Item::Ended(Ended::Changed { .. }) if !change.refused => {}
        Item::Event { row, .. } if !change.refused => {
            let row = String::from_utf8_lossy(&row).into_owned();
            assert_eq!(
                row,
                format!("{{\"id\":{},\"a\":null}}", -id),
                "{}",
                change.hide
            );
        }
        other => panic!("{}: {other:?}", change.hide),
    }
}

#[tokio::test]
async fn changed_visibility_applies_from_the_next_row_on() {
    let fixture = fixture("feed_ways").await;
    fixture.role("/team", "").await;
    fixture.role("/above", "").await;
    fixture
        .run("GRANT \"feed_ways/above\" TO \"feed_ways/alice\"")
        .await;
    for change in &CHANGES {
        fixture
            .run("CREATE TABLE t (id int PRIMARY KEY, a text)")
            .await;
        fixture.run(change.setup).await;
        // The rows are first shown, then hidden.
        fixture.run(change.show).await;
        let mut alice = fixture.all("t", &["id", "a"]).await;
        insert(&fixture, 1).await;
        assert_next_row(&mut alice, 1, change.show).await;
        assert_hidden(&fixture, &mut alice, change, 2).await;
        // The rows are first hidden, then shown, and hidden again.
        if !change.refused {
            let mut alice = fixture.all("t", &["id", "a"]).await;
            insert(&fixture, 3).await;
            insert(&fixture, -3).await;
            assert_next_row(&mut alice, -3, change.hide).await;
            fixture.run(change.show).await;
            insert(&fixture, 4).await;
            assert_next_row(&mut alice, 4, change.show).await;
            assert_hidden(&fixture, &mut alice, change, 5).await;
        }
        fixture.run("DROP TABLE t").await;
    }
}

#[tokio::test]
async fn a_policy_that_needs_more_than_is_captured_ends_the_subscription() {
    let fixture = fixture("feed_more").await;
    fixture
        .run(
            "CREATE TABLE t (id int PRIMARY KEY, a text); GRANT SELECT ON t TO PUBLIC;
             ALTER TABLE t ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON t USING (id > 0)",
        )
        .await;
    let mut request = fixture.request("t", &["id"]).await;
    request.operations = Operation::Update.into();
    let mut alice = fixture.subscribe(request).await.unwrap();
    fixture
        .run("INSERT INTO t VALUES (1, 'x'); UPDATE t SET id = 2")
        .await;
    assert_eq!(alice.event().await, "~{\"id\":2}");
    // The change log does not contain a toasted value that did not change.
    fixture
        .run("ALTER POLICY p ON t USING (a = 'x'); UPDATE t SET id = 3")
        .await;
    let item = alice.next().await;
    assert!(
        matches!(item, Item::Ended(Ended::Changed { .. })),
        "{item:?}"
    );
}

#[tokio::test]
async fn cached_results_of_a_policy_are_dropped_with_it() {
    let fixture = fixture("feed_verdicts").await;
    let mut alice = fixture.table_with_policy().await;
    let before = alice.cursor;
    fixture.run("INSERT INTO t VALUES (2)").await;
    assert_eq!(alice.event().await, "+{\"id\":2}");
    fixture
        .run("ALTER POLICY p ON t USING (id <> 2); INSERT INTO t VALUES (3)")
        .await;
    assert_eq!(alice.event().await, "+{\"id\":3}");
    // A row image that the first subscription got is evaluated again for a subscription that
    // resumes.
    let mut request = fixture.request("t", &["id"]).await;
    request.after = Some(before);
    let mut again = fixture.subscribe(request).await.unwrap();
    assert_eq!(again.event().await, "+{\"id\":3}");
}

#[tokio::test]
async fn a_subscription_under_policies_waits_while_postgresql_is_unreachable() {
    let (fixture, queries) = QueryLog::fixture("feed_unreachable", &Setup::without_polls()).await;
    let mut alice = fixture.table_with_policy().await;
    // Longer than all retries of a query by the service.
    queries.fail_as_users(25);
    fixture.run("INSERT INTO t VALUES (2)").await;
    assert_eq!(alice.event().await, "+{\"id\":2}");
    assert_eq!(queries.failures_left(), 0, "no policy was evaluated");
}
