//! Every way to change what a subscriber may see counts for the next row: no event is lost without
//! a word, and none comes that the role could not read.

use tidegate_feed::{Ended, Item, Operation};

use crate::scene::{Listener, Scene, Setup};

/// One way to show the rows of `t` to alice and to hide them again.
struct Way {
    /// Run before anything else, with the rows hidden.
    setup: &'static str,
    show: &'static str,
    hide: &'static str,
    /// Alice may not even subscribe while they are hidden.
    refused: bool,
}

const fn judged(setup: &'static str, show: &'static str, hide: &'static str) -> Way {
    Way {
        setup,
        show,
        hide,
        refused: false,
    }
}

const fn granted(setup: &'static str, show: &'static str, hide: &'static str) -> Way {
    Way {
        setup,
        show,
        hide,
        refused: true,
    }
}

/// Rows are hidden by row level security, but for those with negative numbers.
const HIDDEN: &str = "GRANT SELECT ON t TO PUBLIC; ALTER TABLE t ENABLE ROW LEVEL SECURITY; \
                      CREATE POLICY p ON t USING (id < 0)";

/// The others are shown to the role `team`.
const TEAM: &str = "GRANT SELECT ON t TO PUBLIC; ALTER TABLE t ENABLE ROW LEVEL SECURITY; \
                    CREATE POLICY s ON t USING (id < 0); CREATE POLICY p ON t TO \"feed_ways/team\" USING (true)";

const WAYS: [Way; 21] = [
    judged(
        HIDDEN,
        "ALTER TABLE t DISABLE ROW LEVEL SECURITY",
        "ALTER TABLE t ENABLE ROW LEVEL SECURITY",
    ),
    judged(
        "GRANT SELECT ON t TO PUBLIC; ALTER TABLE t ENABLE ROW LEVEL SECURITY; \
         CREATE POLICY s ON t USING (id < 0); \
         ALTER TABLE t OWNER TO \"feed_ways/alice\"; ALTER TABLE t FORCE ROW LEVEL SECURITY",
        "ALTER TABLE t NO FORCE ROW LEVEL SECURITY",
        "ALTER TABLE t FORCE ROW LEVEL SECURITY",
    ),
    judged(
        HIDDEN,
        "CREATE POLICY q ON t USING (true)",
        "DROP POLICY q ON t",
    ),
    judged(
        HIDDEN,
        "ALTER POLICY p ON t USING (id > 0)",
        "ALTER POLICY p ON t USING (id < 0)",
    ),
    judged(
        TEAM,
        "ALTER POLICY p ON t TO PUBLIC",
        "ALTER POLICY p ON t TO \"feed_ways/team\"",
    ),
    judged(
        "GRANT SELECT ON t TO PUBLIC; ALTER TABLE t ENABLE ROW LEVEL SECURITY; \
         CREATE POLICY p ON t USING (true); CREATE POLICY r ON t AS RESTRICTIVE USING (id < 0)",
        "DROP POLICY r ON t",
        "CREATE POLICY r ON t AS RESTRICTIVE USING (id < 0)",
    ),
    judged(
        HIDDEN,
        "ALTER TABLE t OWNER TO \"feed_ways/alice\"",
        "ALTER TABLE t OWNER TO \"feed_ways\"",
    ),
    judged(
        HIDDEN,
        "ALTER ROLE \"feed_ways/alice\" BYPASSRLS",
        "ALTER ROLE \"feed_ways/alice\" NOBYPASSRLS",
    ),
    judged(
        HIDDEN,
        "ALTER ROLE \"feed_ways/alice\" SUPERUSER",
        "ALTER ROLE \"feed_ways/alice\" NOSUPERUSER",
    ),
    judged(
        TEAM,
        "GRANT \"feed_ways/team\" TO \"feed_ways/alice\"",
        "REVOKE \"feed_ways/team\" FROM \"feed_ways/alice\"",
    ),
    judged(
        TEAM,
        "GRANT \"feed_ways/team\" TO \"feed_ways/above\"",
        "REVOKE \"feed_ways/team\" FROM \"feed_ways/above\"",
    ),
    judged(
        "GRANT SELECT ON t TO PUBLIC; ALTER TABLE t ENABLE ROW LEVEL SECURITY; \
         CREATE POLICY s ON t USING (id < 0); ALTER TABLE t OWNER TO \"feed_ways/team\"",
        "GRANT \"feed_ways/team\" TO \"feed_ways/above\"",
        "REVOKE \"feed_ways/team\" FROM \"feed_ways/above\"",
    ),
    granted(
        "",
        "GRANT SELECT ON t TO PUBLIC",
        "REVOKE SELECT ON t FROM PUBLIC",
    ),
    granted(
        "",
        "GRANT SELECT ON t TO \"feed_ways/alice\"",
        "REVOKE SELECT ON t FROM \"feed_ways/alice\"",
    ),
    granted(
        "GRANT SELECT (a) ON t TO PUBLIC",
        "GRANT SELECT (id) ON t TO \"feed_ways/alice\"",
        "REVOKE SELECT (id) ON t FROM \"feed_ways/alice\"",
    ),
    granted(
        "",
        "ALTER TABLE t OWNER TO \"feed_ways/alice\"",
        "ALTER TABLE t OWNER TO \"feed_ways\"",
    ),
    granted(
        "GRANT SELECT ON t TO \"feed_ways/team\"",
        "GRANT \"feed_ways/team\" TO \"feed_ways/alice\"",
        "REVOKE \"feed_ways/team\" FROM \"feed_ways/alice\"",
    ),
    granted(
        "GRANT SELECT ON t TO \"feed_ways/team\"",
        "GRANT \"feed_ways/team\" TO \"feed_ways/above\"",
        "REVOKE \"feed_ways/team\" FROM \"feed_ways/above\"",
    ),
    granted(
        "GRANT SELECT ON t TO \"feed_ways/above\"",
        "GRANT SELECT ON t TO \"feed_ways/above\"",
        "REVOKE SELECT ON t FROM \"feed_ways/above\"",
    ),
    granted(
        "",
        "GRANT pg_read_all_data TO \"feed_ways/alice\"",
        "REVOKE pg_read_all_data FROM \"feed_ways/alice\"",
    ),
    granted(
        "",
        "ALTER ROLE \"feed_ways/alice\" SUPERUSER",
        "ALTER ROLE \"feed_ways/alice\" NOSUPERUSER",
    ),
];

/// Nothing is looked at by itself: only the next change counts.
async fn scene(name: &str) -> Scene {
    Scene::with(name, &Setup::never_looking()).await
}

async fn insert(scene: &Scene, id: i32) {
    scene.run(&format!("INSERT INTO t VALUES ({id})")).await;
}

/// A row that is shown comes next.
async fn sees(listener: &mut Listener, id: i32, what: &str) {
    let row = listener.event().await;
    assert_eq!(row, format!("+{{\"id\":{id},\"a\":null}}"), "{what}");
}

/// Hides the rows: alice's subscription ends before the next one, or goes on without it.
async fn hides(scene: &Scene, listener: &mut Listener, way: &Way, id: i32) {
    scene.run(way.hide).await;
    insert(scene, id).await;
    // What everybody may see comes behind what is hidden.
    insert(scene, -id).await;
    match listener.next().await {
        Item::Ended(Ended::NotAllowed) if way.refused => {}
        Item::Ended(Ended::Changed { .. }) if !way.refused => {}
        Item::Event { row, .. } if !way.refused => {
            let row = String::from_utf8_lossy(&row).into_owned();
            assert_eq!(
                row,
                format!("{{\"id\":{},\"a\":null}}", -id),
                "{}",
                way.hide
            );
        }
        other => panic!("{}: {other:?}", way.hide),
    }
}

#[tokio::test]
async fn what_a_role_may_see_counts_from_the_next_row_on() {
    let scene = scene("feed_ways").await;
    scene.role("/team", "").await;
    scene.role("/above", "").await;
    scene
        .run("GRANT \"feed_ways/above\" TO \"feed_ways/alice\"")
        .await;
    for way in &WAYS {
        scene
            .run("CREATE TABLE t (id int PRIMARY KEY, a text)")
            .await;
        scene.run(way.setup).await;
        // Shown first, then hidden.
        scene.run(way.show).await;
        let mut alice = scene.all("t", &["id", "a"]).await;
        insert(&scene, 1).await;
        sees(&mut alice, 1, way.show).await;
        hides(&scene, &mut alice, way, 2).await;
        // Hidden first, then shown, and hidden once more.
        if !way.refused {
            let mut alice = scene.all("t", &["id", "a"]).await;
            insert(&scene, 3).await;
            insert(&scene, -3).await;
            sees(&mut alice, -3, way.hide).await;
            scene.run(way.show).await;
            insert(&scene, 4).await;
            sees(&mut alice, 4, way.show).await;
            hides(&scene, &mut alice, way, 5).await;
        }
        scene.run("DROP TABLE t").await;
    }
}

#[tokio::test]
async fn a_policy_that_needs_more_than_is_captured_ends_the_subscription() {
    let scene = scene("feed_more").await;
    scene
        .run(
            "CREATE TABLE t (id int PRIMARY KEY, a text); GRANT SELECT ON t TO PUBLIC;
             ALTER TABLE t ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON t USING (id > 0)",
        )
        .await;
    let mut request = scene.request("t", &["id"]).await;
    request.operations = Operation::Update.into();
    let mut alice = scene.subscribe(request).await.unwrap();
    scene
        .run("INSERT INTO t VALUES (1, 'x'); UPDATE t SET id = 2")
        .await;
    assert_eq!(alice.event().await, "~{\"id\":2}");
    // An UPDATE that leaves a long value alone does not bring it.
    scene
        .run("ALTER POLICY p ON t USING (a = 'x'); UPDATE t SET id = 3")
        .await;
    let item = alice.next().await;
    assert!(
        matches!(item, Item::Ended(Ended::Changed { .. })),
        "{item:?}"
    );
}

#[tokio::test]
async fn verdicts_of_a_policy_are_forgotten_with_it() {
    let scene = scene("feed_verdicts").await;
    let mut alice = scene.judged().await;
    let before = alice.cursor;
    scene.run("INSERT INTO t VALUES (2)").await;
    assert_eq!(alice.event().await, "+{\"id\":2}");
    scene
        .run("ALTER POLICY p ON t USING (id <> 2); INSERT INTO t VALUES (3)")
        .await;
    assert_eq!(alice.event().await, "+{\"id\":3}");
    // What the first subscription was shown is judged anew for one that comes back.
    let mut request = scene.request("t", &["id"]).await;
    request.after = Some(before);
    let mut again = scene.subscribe(request).await.unwrap();
    assert_eq!(again.event().await, "+{\"id\":3}");
}
