//! The reader that several nodes share.

use std::time::Duration;

use tidegate_changelog::{LogStart, SharedLog as _};
use tidegate_testkit::eventually;

use super::fixture::Fixture;

#[tokio::test]
async fn one_node_at_a_time_is_the_reader() {
    let fixture = Fixture::new("capture_reader").await;
    let (log, database) = (&fixture.log, &fixture.database);
    let open = || log.open_reader(database, LogStart::Now);
    let first = open().await.unwrap().expect("nobody reads yet");
    assert!(open().await.unwrap().is_none());
    // Another stream is still possible, and does not make anybody the reader.
    let other = fixture.open(None).await.unwrap();
    assert_eq!(other.identity(), first.identity());
    assert!(open().await.unwrap().is_none());
    drop(first);
    eventually(async || open().await.unwrap().is_some()).await;
}

#[tokio::test]
async fn a_silent_reader_is_closed_and_a_new_one_is_not() {
    let fixture = Fixture::new("capture_silent_reader").await;
    let (log, database) = (&fixture.log, &fixture.database);
    let mut reader = log
        .open_reader(database, LogStart::Now)
        .await
        .unwrap()
        .expect("nobody reads yet");
    let hour = Duration::from_hours(1);
    log.close_reader(database, hour).await.unwrap();
    let again = || log.open_reader(database, LogStart::Now);
    assert!(again().await.unwrap().is_none());
    log.close_reader(database, Duration::ZERO).await.unwrap();
    eventually(async || again().await.unwrap().is_some()).await;
    let mut batch = Vec::new();
    while reader.next(&mut batch).await.is_ok() {}
}
