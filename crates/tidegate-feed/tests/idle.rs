//! What a subscriber that waits costs PostgreSQL.

use std::time::Duration;

use tidegate_feed::Settings;
use tokio::time::{Instant, sleep};

use crate::asked::Asked;
use crate::scene::Setup;

#[tokio::test]
async fn a_subscriber_that_waits_costs_one_statement_a_second_at_most() {
    let (scene, asked) = Asked::scene("feed_idle", &Setup::default()).await;
    scene
        .run(
            "CREATE TYPE pair AS (a int, b int);
             CREATE TABLE t (id int PRIMARY KEY, p pair) PARTITION BY RANGE (id);
             CREATE TABLE t1 PARTITION OF t FOR VALUES FROM (0) TO (9);
             GRANT SELECT ON t TO PUBLIC; ALTER TABLE t ENABLE ROW LEVEL SECURITY;
             CREATE POLICY p ON t USING (true)",
        )
        .await;
    let mut listener = scene.all("t", &["id", "p"]).await;
    scene.run("INSERT INTO t VALUES (1, '(1,2)')").await;
    let row = listener.event().await;
    assert!(row.contains("\"id\":1"), "{row}");
    // Everything about the new table is known once it was looked at twice.
    asked.looked(2).await;
    let (before, begin) = (asked.statements(), Instant::now());
    // At least one round of everything that is done at intervals.
    sleep(Settings::default().recheck + Duration::from_millis(500)).await;
    asked.looked(1).await;
    let (asked, took) = (asked.statements() - before, begin.elapsed());
    #[expect(clippy::cast_precision_loss, reason = "a small number")]
    let rate = asked as f64 / took.as_secs_f64();
    assert!(rate <= 1.0, "{asked} statements in {took:?}");
}
