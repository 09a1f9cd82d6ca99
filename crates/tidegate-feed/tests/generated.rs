//! Columns that PostgreSQL computes: the log has the stored ones from version 18 on.

use tidegate_feed::{Error, Operation};

use crate::scene::Scene;

#[tokio::test]
async fn stored_generated_columns_are_told_where_the_server_publishes_them() {
    let scene = Scene::new("feed_stored").await;
    scene
        .run(
            "CREATE TABLE t (id int PRIMARY KEY, twice int GENERATED ALWAYS AS (id * 2) STORED, \
             a text); GRANT SELECT ON t TO PUBLIC",
        )
        .await;
    let mut plain = scene.all("t", &["id", "a"]).await;
    let told = scene.subscribe(scene.request("t", &["twice", "a"]).await);
    if scene.version() < 18 {
        let refused = told.await.err();
        assert!(
            matches!(&refused, Some(Error::Unsupported(why)) if why.contains("`twice`")),
            "{refused:?}"
        );
    } else {
        let mut told = told.await.unwrap();
        scene
            .run("INSERT INTO t VALUES (1); UPDATE t SET id = 2; DELETE FROM t")
            .await;
        let (one, two) = ("{\"twice\":2,\"a\":null}", "{\"twice\":4,\"a\":null}");
        let expected = [format!("+{one}"), format!("~{two}"), format!("-{two}")];
        assert_eq!(told.events(3).await, expected);
        plain.events(3).await;
    }
    // The whole old row is written, and writers are not refused for that.
    scene
        .run("INSERT INTO t VALUES (3, DEFAULT, 'x'); DELETE FROM t")
        .await;
    let row = "{\"id\":3,\"a\":\"x\"}";
    assert_eq!(
        plain.events(2).await,
        [format!("+{row}"), format!("-{row}")]
    );
}

#[tokio::test]
async fn a_table_with_a_virtual_column_keeps_working_for_writers() {
    let scene = Scene::new("feed_virtual").await;
    if scene.version() < 18 {
        return;
    }
    let columns = "(id int PRIMARY KEY, a text, twice int GENERATED ALWAYS AS (id * 2) VIRTUAL)";
    scene
        .run(&format!(
            "CREATE TABLE t {columns}; GRANT SELECT ON t TO PUBLIC; \
             CREATE TABLE full_rows {columns}; GRANT SELECT ON full_rows TO PUBLIC; \
             ALTER TABLE full_rows REPLICA IDENTITY FULL"
        ))
        .await;
    for (table, columns) in [
        ("t", &["id", "twice"][..]),
        // A deleted row's columns would need the whole old row.
        ("t", &["id", "a"]),
        ("full_rows", &["id"]),
    ] {
        let refused = scene.subscribe(scene.request(table, columns).await).await;
        let refused = refused.err();
        assert!(
            matches!(refused, Some(Error::Unsupported(_))),
            "{table}: {refused:?}"
        );
    }
    let mut keys = scene.all("t", &["id"]).await;
    let mut request = scene.request("full_rows", &["id", "a"]).await;
    request.operations = Operation::Insert.into();
    let mut inserts = scene.subscribe(request).await.unwrap();
    for table in ["t", "full_rows"] {
        let write = format!(
            "INSERT INTO {table} VALUES (1, 'x'); UPDATE {table} SET a = 'y'; DELETE FROM {table}"
        );
        scene.run(&write).await;
    }
    let row = "{\"id\":1}";
    let expected = [format!("+{row}"), format!("~{row}"), format!("-{row}")];
    assert_eq!(keys.events(3).await, expected);
    assert_eq!(inserts.event().await, "+{\"id\":1,\"a\":\"x\"}");
}
