//! Tests that advisory locks of a user delay nothing, because the service takes its own locks in a
//! database to which no user may log in.

use crate::fixture::Fixture;

/// Takes every advisory lock that a node of this release or an earlier one takes.
const ALL: &str = "\
    SELECT pg_advisory_lock(7133, n), pg_advisory_lock_shared(7133, n) FROM generate_series(1, 3) n; \
    SELECT pg_advisory_lock((7133::bigint << 32) | oid::bigint) FROM pg_database \
    WHERE datname = current_database()";

#[tokio::test]
async fn advisory_locks_of_a_user_delay_no_subscription() {
    let fixture = Fixture::new("feed_locks").await;
    fixture
        .run("CREATE TABLE t (id int PRIMARY KEY); GRANT SELECT ON t TO PUBLIC")
        .await;
    let user = fixture.session().await;
    user.batch_execute("SET ROLE \"feed_locks/alice\"")
        .await
        .unwrap();
    user.batch_execute(ALL).await.unwrap();
    // The first subscription of the database and of the table takes every lock.
    let mut listener = fixture.all("t", &["id"]).await;
    fixture.run("INSERT INTO t VALUES (1)").await;
    assert_eq!(listener.event().await, "+{\"id\":1}");
}
