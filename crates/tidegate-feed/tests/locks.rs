//! A user's advisory locks are in nobody's way: those of the service are where no user may log in.

use crate::scene::Scene;

/// Every advisory lock that a node of this release, or of an earlier one, asks for.
const ALL: &str = "\
    SELECT pg_advisory_lock(7133, n), pg_advisory_lock_shared(7133, n) FROM generate_series(1, 3) n; \
    SELECT pg_advisory_lock((7133::bigint << 32) | oid::bigint) FROM pg_database \
    WHERE datname = current_database()";

#[tokio::test]
async fn advisory_locks_of_a_user_delay_no_subscription() {
    let scene = Scene::new("feed_locks").await;
    scene
        .run("CREATE TABLE t (id int PRIMARY KEY); GRANT SELECT ON t TO PUBLIC")
        .await;
    let user = scene.session().await;
    user.batch_execute("SET ROLE \"feed_locks/alice\"")
        .await
        .unwrap();
    user.batch_execute(ALL).await.unwrap();
    // The first one of the database, and of the table, takes every lock that there is to take.
    let mut listener = scene.all("t", &["id"]).await;
    scene.run("INSERT INTO t VALUES (1)").await;
    assert_eq!(listener.event().await, "+{\"id\":1}");
}
