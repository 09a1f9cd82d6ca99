//! Tests what an idle subscription costs PostgreSQL.

use std::time::Duration;

use tidegate_feed::FeedSettings;
use tokio::time::{Instant, sleep};

use crate::fixture::Setup;
use crate::query_log::QueryLog;

#[tokio::test]
async fn an_idle_subscription_costs_one_statement_a_second_at_most() {
    let (fixture, queries) = QueryLog::fixture("feed_idle", &Setup::default()).await;
    fixture
        .run(
            "CREATE TYPE pair AS (a int, b int);
             CREATE TABLE t (id int PRIMARY KEY, p pair) PARTITION BY RANGE (id);
             CREATE TABLE t1 PARTITION OF t FOR VALUES FROM (0) TO (9);
             GRANT SELECT ON t TO PUBLIC; ALTER TABLE t ENABLE ROW LEVEL SECURITY;
             CREATE POLICY p ON t USING (true)",
        )
        .await;
    let mut listener = fixture.all("t", &["id", "p"]).await;
    fixture.run("INSERT INTO t VALUES (1, '(1,2)')").await;
    let row = listener.event().await;
    assert!(row.contains("\"id\":1"), "{row}");
    // After two polls the feed has read everything about the new table.
    queries.polled(2).await;
    let (before, begin) = (queries.statements(), Instant::now());
    // The time includes at least one round of all periodic tasks.
    sleep(FeedSettings::default().recheck_interval + Duration::from_millis(500)).await;
    queries.polled(1).await;
    let (count, took) = (queries.statements() - before, begin.elapsed());
    #[expect(clippy::cast_precision_loss, reason = "a small number")]
    let rate = count as f64 / took.as_secs_f64();
    assert!(rate <= 1.0, "{count} statements in {took:?}");
}
