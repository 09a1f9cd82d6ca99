//! Tests gaps that cannot be reported at once, because the stream has not reached them.

use std::time::Duration;

use tidegate_feed::{Error, FeedSettings, Item, Operation, Operations, Resync, SubscribeRequest};
use tokio::sync::OwnedRwLockWriteGuard;
use tokio::time::{Instant, timeout};

use crate::fixture::{Fixture, Listener, LogSource, Setup, listen, node};
use crate::query_log::{QueryLog, TYPES};
use crate::removed_tables::REMOVE;

/// The deadline for the events that a test waits for.
const SOON: Duration = Duration::from_secs(30);

/// Creates a table `t`, a subscription to its INSERTs, and removes the table from the capture. The
/// stream is live, but stays before the removal until the returned guard is dropped.
async fn stream_before_removal(name: &str) -> (Fixture, Listener, OwnedRwLockWriteGuard<()>) {
    let setup = Setup::with(FeedSettings {
        subscribe_timeout: Duration::from_secs(1),
        poll_interval: Duration::from_hours(1),
        ..FeedSettings::default()
    });
    let (fixture, queries) = QueryLog::fixture(name, &setup).await;
    fixture
        .run(
            "CREATE TYPE mood AS ENUM ('glad'); CREATE TABLE slow (id int PRIMARY KEY, m mood);
             CREATE TABLE t (id int PRIMARY KEY); GRANT SELECT ON slow, t TO PUBLIC",
        )
        .await;
    fixture.first("slow", &["id", "m"]).await;
    let early = in_time(&fixture, inserts(&fixture).await).await;
    let held = queries.hold_query(TYPES).await;
    fixture.run("INSERT INTO slow VALUES (1, 'glad')").await;
    queries.held().await;
    fixture.run(REMOVE).await;
    (fixture, early, held)
}

async fn inserts(fixture: &Fixture) -> SubscribeRequest {
    let mut request = fixture.request("t", &["id"]).await;
    request.operations = Operation::Insert.into();
    request
}

/// Subscribes. Retries, because a busy machine may need more time than the feed allows.
async fn in_time(fixture: &Fixture, request: SubscribeRequest) -> Listener {
    let deadline = Instant::now() + SOON;
    loop {
        match fixture.subscribe(request.clone()).await {
            Err(Error::Timeout { .. } | Error::Unavailable(_)) if Instant::now() < deadline => {}
            outcome => return outcome.unwrap(),
        }
    }
}

/// Subscribes to more than INSERTs. That captures the table again, and times out because the stream
/// stays behind. On a busy machine an earlier step may time out.
async fn subscribe_until_timeout(fixture: &Fixture) {
    let mut request = inserts(fixture).await;
    request.operations = Operations::ALL;
    let deadline = Instant::now() + SOON;
    loop {
        let refused = timeout(SOON, fixture.subscribe(request.clone())).await;
        let refused = refused.expect("a subscription waits forever").err();
        match &refused {
            Some(Error::Timeout { what, .. }) if what.contains("stream") => return,
            Some(Error::Timeout { .. } | Error::Unavailable(_)) if Instant::now() < deadline => {}
            _ => panic!("{refused:?}"),
        }
    }
}

#[tokio::test]
async fn a_gap_is_reported_although_the_subscription_that_found_it_timed_out() {
    let (fixture, mut early, held) = stream_before_removal("feed_untold_late").await;
    subscribe_until_timeout(&fixture).await;
    drop(held);
    // The subscription that found the gap has timed out; the earlier one gets the report.
    assert_eq!(early.resync().await, Resync::Interrupted);
}

#[tokio::test]
async fn a_table_with_a_gap_is_captured_again_only_once() {
    let (fixture, mut early, held) = stream_before_removal("feed_untold_once").await;
    subscribe_until_timeout(&fixture).await;
    // The stream of another node has read further.
    let other = node(&Setup::default());
    let mut there = listen(&other, inserts(&fixture).await).await.unwrap();
    fixture.run("INSERT INTO t VALUES (5)").await;
    assert_eq!(there.event_after_gaps().await, "+{\"id\":5}");
    let mut request = inserts(&fixture).await;
    request.after = Some(there.cursor);
    fixture.run("INSERT INTO t VALUES (6)").await;
    for _ in 0..3 {
        subscribe_until_timeout(&fixture).await;
    }
    drop(held);
    // Events of later commits may come before the gap. After the gap and the event, the stream has
    // passed the cursor, for which a subscription waits only a second before it gets a gap. The
    // stream of an outbox may be opened again, and the event may then be lost in the gap.
    let (mut has_gap, mut has_passed) = (false, crate::SOURCE == LogSource::Outbox);
    while !(has_gap && has_passed) {
        match early.next().await {
            Item::Resync { .. } => has_gap = true,
            Item::Event { row, .. } => has_passed |= row == "{\"id\":6}",
            other => panic!("{other:?}"),
        }
    }
    // No event is missing after the first capture.
    let mut late = in_time(&fixture, request).await;
    match late.next().await {
        Item::Event { row, .. } => assert_eq!(row, "{\"id\":6}"),
        // An outbox records that its triggers were missing. A stream that reads that record is
        // opened again.
        Item::Resync { .. } if crate::SOURCE == LogSource::Outbox => {}
        other => panic!("{other:?}"),
    }
    fixture.run("INSERT INTO t VALUES (7)").await;
    for listener in [&mut early, &mut late] {
        let mut event = async || match crate::SOURCE {
            LogSource::Log => listener.event().await,
            LogSource::Outbox => listener.event_after_gaps().await,
        };
        while event().await != "+{\"id\":7}" {}
    }
}
