//! Gaps that cannot be reported at once, because the stream has not reached them.

use std::time::Duration;

use tidegate_feed::{Error, FeedSettings, Item, Operation, Operations, Resync, SubscribeRequest};
use tokio::sync::OwnedRwLockWriteGuard;
use tokio::time::{Instant, timeout};

use crate::fixture::{Fixture, Listener, LogSource, Setup, listen, node};
use crate::query_log::{QueryLog, TYPES};
use crate::removed_tables::REMOVE;

/// The deadline of what a test waits for.
const SOON: Duration = Duration::from_secs(30);

/// A table `t` that was removed from the capture of INSERTs, a subscription to these, and a stream that
/// stays before the removal, although live, until the return value is dropped.
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

/// Subscribes, repeatedly on a busy machine that needs more time than the feed allows.
async fn in_time(fixture: &Fixture, request: SubscribeRequest) -> Listener {
    let deadline = Instant::now() + SOON;
    loop {
        match fixture.subscribe(request.clone()).await {
            Err(Error::Timeout { .. } | Error::Unavailable(_)) if Instant::now() < deadline => {}
            outcome => return outcome.unwrap(),
        }
    }
}

/// Subscribes to more than INSERTs, which captures the table again, and times out because the stream
/// stays behind. On a busy machine something before that may time out.
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
    // The subscription that found the gap has timed out.
    assert_eq!(early.resync().await, Resync::Interrupted);
}

#[tokio::test]
async fn a_table_with_a_gap_is_captured_again_only_once() {
    let (fixture, mut early, held) = stream_before_removal("feed_untold_once").await;
    subscribe_until_timeout(&fixture).await;
    // Another node has read further.
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
    // Events of later commits may come before the gap. After both, the stream has passed the cursor:
    // a subscription waits for that a second only, and gets a gap otherwise. The stream of an outbox
    // may be opened again, and leave that event in the gap.
    let (mut has_gap, mut has_passed) = (false, crate::SOURCE == LogSource::Outbox);
    while !(has_gap && has_passed) {
        match early.next().await {
            Item::Resync { .. } => has_gap = true,
            Item::Event { row, .. } => has_passed |= row == "{\"id\":6}",
            other => panic!("{other:?}"),
        }
    }
    // Nothing is missing after the first capture.
    let mut late = in_time(&fixture, request).await;
    match late.next().await {
        Item::Event { row, .. } => assert_eq!(row, "{\"id\":6}"),
        // An outbox records that its triggers were missing; a stream that reads that is opened again.
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
