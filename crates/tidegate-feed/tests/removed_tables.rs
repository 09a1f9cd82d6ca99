//! Tests a table that is removed from the publication while subscriptions are started.

use std::time::Duration;

use tidegate_feed::{FeedSettings, Operation, Operations, Resync};
use tidegate_sql::DatabaseName;

use crate::fixture::{Fixture, LogSource, Setup};
use crate::query_log::QueryLog;

const TABLE: &str = "CREATE TABLE t (id int PRIMARY KEY); GRANT SELECT ON t TO PUBLIC";

/// Removes `t` from the capture of INSERTs, and writes a row that is not captured.
pub(crate) const REMOVE: &str = match crate::SOURCE {
    LogSource::Log => "ALTER PUBLICATION tidegate_inserts DROP TABLE t; INSERT INTO t VALUES (4)",
    LogSource::Outbox => "ALTER TABLE t DISABLE TRIGGER ALL; INSERT INTO t VALUES (4)",
};

#[tokio::test]
async fn a_wider_capture_by_the_same_node_is_no_gap() {
    let fixture = Fixture::new("feed_more_needed_here").await;
    fixture.run(TABLE).await;
    let mut request = fixture.request("t", &["id"]).await;
    request.operations = Operation::Insert.into();
    let mut inserts = fixture.subscribe(request.clone()).await.unwrap();
    request.operations = Operations::ALL;
    let mut all = fixture.subscribe(request).await.unwrap();
    fixture.run("INSERT INTO t VALUES (1)").await;
    for listener in [&mut inserts, &mut all] {
        assert_eq!(listener.event().await, "+{\"id\":1}");
    }
}

/// Only subscriptions that started before the table was captured again get the gap.
#[tokio::test]
async fn a_subscription_after_the_table_was_captured_again_gets_no_gap() {
    let setup = Setup::with(FeedSettings {
        poll_interval: Duration::from_hours(1),
        ..FeedSettings::default()
    });
    let (fixture, queries) = QueryLog::fixture("feed_taken_out_before", &setup).await;
    fixture.run(TABLE).await;
    let mut request = fixture.request("t", &["id"]).await;
    request.operations = Operation::Insert.into();
    let mut early = fixture.subscribe(request.clone()).await.unwrap();
    fixture.run(REMOVE).await;
    let database = DatabaseName::new(&fixture.name);
    let held = queries.hold_poll().await;
    fixture.feed.schema_changed(&database);
    queries.held().await;
    // This subscription needs more than the first one, and so captures the table before the result
    // of the poll is used.
    request.operations = Operations::ALL;
    let mut late = fixture.subscribe(request).await.unwrap();
    assert_eq!(early.resync().await, Resync::Interrupted);
    drop(held);
    for _ in 0..3 {
        fixture.feed.schema_changed(&database);
        queries.polled(1).await;
    }
    fixture.run("INSERT INTO t VALUES (5)").await;
    for listener in [&mut late, &mut early] {
        let reported = match crate::SOURCE {
            LogSource::Log => listener.event().await,
            // An outbox records that its triggers were missing, and reports a gap to all
            // subscriptions when a stream reads that record.
            LogSource::Outbox => listener.event_after_gaps().await,
        };
        assert_eq!(reported, "+{\"id\":5}");
    }
}
