//! Gaps that cannot be told at once, because the stream has yet to come there.

use std::time::Duration;

use tidegate_feed::{Error, Item, Operation, Operations, Request, Resync, Settings};
use tokio::sync::OwnedRwLockWriteGuard;
use tokio::time::{Instant, timeout};

use crate::asked::{Asked, TYPES};
use crate::scene::{Listener, Scene, Setup, Source, listen, node};
use crate::taken_out::TAKE_OUT;

/// How long something may take that comes.
const SOON: Duration = Duration::from_secs(30);

/// A table `t` that was taken out of the capture of INSERTs, somebody who listens to these, and a
/// stream that stays before that, live, until what is returned is dropped.
async fn behind(name: &str) -> (Scene, Listener, OwnedRwLockWriteGuard<()>) {
    let setup = Setup::with(Settings {
        patience: Duration::from_secs(1),
        standing: Duration::from_hours(1),
        ..Settings::default()
    });
    let (scene, asked) = Asked::scene(name, &setup).await;
    scene
        .run(
            "CREATE TYPE mood AS ENUM ('glad'); CREATE TABLE slow (id int PRIMARY KEY, m mood);
             CREATE TABLE t (id int PRIMARY KEY); GRANT SELECT ON slow, t TO PUBLIC",
        )
        .await;
    scene.first("slow", &["id", "m"]).await;
    let early = in_time(&scene, inserts(&scene).await).await;
    let held = asked.hold_what_has(TYPES).await;
    scene.run("INSERT INTO slow VALUES (1, 'glad')").await;
    asked.held().await;
    scene.run(TAKE_OUT).await;
    (scene, early, held)
}

async fn inserts(scene: &Scene) -> Request {
    let mut request = scene.request("t", &["id"]).await;
    request.operations = Operation::Insert.into();
    request
}

/// Subscribes, again where a busy machine needs more time than a feed gives.
async fn in_time(scene: &Scene, request: Request) -> Listener {
    let deadline = Instant::now() + SOON;
    loop {
        match scene.subscribe(request.clone()).await {
            Err(Error::Timeout { .. } | Error::Unavailable(_)) if Instant::now() < deadline => {}
            outcome => return outcome.unwrap(),
        }
    }
}

/// Subscribes to more than INSERTs, which captures the table anew, in vain: the stream stays
/// behind. On a busy machine something before that may time out.
async fn in_vain(scene: &Scene) {
    let mut request = inserts(scene).await;
    request.operations = Operations::ALL;
    let deadline = Instant::now() + SOON;
    loop {
        let refused = timeout(SOON, scene.subscribe(request.clone())).await;
        let refused = refused.expect("who captures a table waits for ever").err();
        match &refused {
            Some(Error::Timeout { what, .. }) if what.contains("stream") => return,
            Some(Error::Timeout { .. } | Error::Unavailable(_)) if Instant::now() < deadline => {}
            _ => panic!("{refused:?}"),
        }
    }
}

#[tokio::test]
async fn who_finds_a_gap_waits_for_the_stream_as_long_as_everybody() {
    let (scene, mut early, held) = behind("feed_untold_late").await;
    in_vain(&scene).await;
    drop(held);
    // Whoever found it has gone.
    assert_eq!(early.resync().await, Resync::Interrupted);
}

#[tokio::test]
async fn a_table_with_a_gap_is_captured_anew_once_however_many_come() {
    let (scene, mut early, held) = behind("feed_untold_once").await;
    in_vain(&scene).await;
    // Another node is not behind.
    let other = node(&Setup::default());
    let mut there = listen(&other, inserts(&scene).await).await.unwrap();
    scene.run("INSERT INTO t VALUES (5)").await;
    assert_eq!(there.event_behind_gaps().await, "+{\"id\":5}");
    let mut request = inserts(&scene).await;
    request.after = Some(there.cursor);
    scene.run("INSERT INTO t VALUES (6)").await;
    for _ in 0..3 {
        in_vain(&scene).await;
    }
    drop(held);
    // Events of later commits may come before the gap. Behind both of these the stream has come past
    // the cursor: a subscription waits for that a second only, and is told of a gap otherwise.
    // The stream of an outbox may begin anew, and leave that event in the gap.
    let (mut is_told, mut has_passed) = (false, crate::SOURCE == Source::Outbox);
    while !(is_told && has_passed) {
        match early.next().await {
            Item::Resync { .. } => is_told = true,
            Item::Event { row, .. } => has_passed |= row == "{\"id\":6}",
            other => panic!("{other:?}"),
        }
    }
    // Nothing was missed behind the first capture.
    let mut late = in_time(&scene, request).await;
    match late.next().await {
        Item::Event { row, .. } => assert_eq!(row, "{\"id\":6}"),
        // An outbox notes that it lacked triggers; a stream that reads that begins anew.
        Item::Resync { .. } if crate::SOURCE == Source::Outbox => {}
        other => panic!("{other:?}"),
    }
    scene.run("INSERT INTO t VALUES (7)").await;
    for listener in [&mut early, &mut late] {
        let mut event = async || match crate::SOURCE {
            Source::Log => listener.event().await,
            Source::Outbox => listener.event_behind_gaps().await,
        };
        while event().await != "+{\"id\":7}" {}
    }
}
