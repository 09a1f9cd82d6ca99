//! A table that somebody takes out of the capture while subscribers come.

use std::time::Duration;

use tidegate_feed::{Operation, Operations, Resync, Settings};
use tidegate_sql::DatabaseName;

use crate::asked::Asked;
use crate::scene::{Scene, Setup, Source};

const TABLE: &str = "CREATE TABLE t (id int PRIMARY KEY); GRANT SELECT ON t TO PUBLIC";

/// Takes `t` out of the capture of INSERTs, and writes what nobody is told.
pub(crate) const TAKE_OUT: &str = match crate::SOURCE {
    Source::Log => "ALTER PUBLICATION tidegate_inserts DROP TABLE t; INSERT INTO t VALUES (4)",
    Source::Outbox => "ALTER TABLE t DISABLE TRIGGER ALL; INSERT INTO t VALUES (4)",
};

#[tokio::test]
async fn what_others_need_of_a_table_on_the_same_node_is_no_gap() {
    let scene = Scene::new("feed_more_needed_here").await;
    scene.run(TABLE).await;
    let mut request = scene.request("t", &["id"]).await;
    request.operations = Operation::Insert.into();
    let mut inserts = scene.subscribe(request.clone()).await.unwrap();
    request.operations = Operations::ALL;
    let mut all = scene.subscribe(request).await.unwrap();
    scene.run("INSERT INTO t VALUES (1)").await;
    for listener in [&mut inserts, &mut all] {
        assert_eq!(listener.event().await, "+{\"id\":1}");
    }
}

/// Whoever finds a table taken out tells those of it who were there before, and them alone.
#[tokio::test]
async fn who_came_after_a_table_was_captured_anew_is_told_of_no_gap() {
    let setup = Setup::with(Settings {
        standing: Duration::from_hours(1),
        ..Settings::default()
    });
    let (scene, asked) = Asked::scene("feed_taken_out_before", &setup).await;
    scene.run(TABLE).await;
    let mut request = scene.request("t", &["id"]).await;
    request.operations = Operation::Insert.into();
    let mut early = scene.subscribe(request.clone()).await.unwrap();
    scene.run(TAKE_OUT).await;
    let database = DatabaseName::new(&scene.name);
    let held = asked.hold().await;
    scene.feed.redefined(&database);
    asked.held().await;
    // It needs more than the first, and so captures the table before what was found is heard.
    request.operations = Operations::ALL;
    let mut late = scene.subscribe(request).await.unwrap();
    assert_eq!(early.resync().await, Resync::Interrupted);
    drop(held);
    for _ in 0..3 {
        scene.feed.redefined(&database);
        asked.looked(1).await;
    }
    scene.run("INSERT INTO t VALUES (5)").await;
    for listener in [&mut late, &mut early] {
        let told = match crate::SOURCE {
            Source::Log => listener.event().await,
            // An outbox notes that it lacked triggers, and tells whoever is there when it reads
            // that.
            Source::Outbox => listener.event_behind_gaps().await,
        };
        assert_eq!(told, "+{\"id\":5}");
    }
}
