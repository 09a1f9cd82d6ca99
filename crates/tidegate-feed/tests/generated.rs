//! Tests generated columns. From PostgreSQL 18 on, the change log contains the stored ones.

use tidegate_feed::{Error, Operation};

use crate::fixture::Fixture;

#[tokio::test]
async fn stored_generated_columns_are_delivered_where_the_server_publishes_them() {
    let fixture = Fixture::new("feed_stored").await;
    fixture
        .run(
            "CREATE TABLE t (id int PRIMARY KEY, twice int GENERATED ALWAYS AS (id * 2) STORED, \
             a text); GRANT SELECT ON t TO PUBLIC",
        )
        .await;
    let mut plain = fixture.all("t", &["id", "a"]).await;
    let stored = fixture.subscribe(fixture.request("t", &["twice", "a"]).await);
    if fixture.version() < 18 {
        let refused = stored.await.err();
        assert!(
            matches!(&refused, Some(Error::Unsupported(why)) if why.contains("`twice`")),
            "{refused:?}"
        );
    } else {
        let mut stored = stored.await.unwrap();
        fixture
            .run("INSERT INTO t VALUES (1); UPDATE t SET id = 2; DELETE FROM t")
            .await;
        let (one, two) = ("{\"twice\":2,\"a\":null}", "{\"twice\":4,\"a\":null}");
        let expected = [format!("+{one}"), format!("~{two}"), format!("-{two}")];
        assert_eq!(stored.events(3).await, expected);
        plain.events(3).await;
    }
    // PostgreSQL logs the whole old row, and does not reject writers.
    fixture
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
    let fixture = Fixture::new("feed_virtual").await;
    if fixture.version() < 18 {
        return;
    }
    let columns = "(id int PRIMARY KEY, a text, twice int GENERATED ALWAYS AS (id * 2) VIRTUAL)";
    fixture
        .run(&format!(
            "CREATE TABLE t {columns}; GRANT SELECT ON t TO PUBLIC; \
             CREATE TABLE full_rows {columns}; GRANT SELECT ON full_rows TO PUBLIC; \
             ALTER TABLE full_rows REPLICA IDENTITY FULL"
        ))
        .await;
    for (table, columns) in [
        ("t", &["id", "twice"][..]),
        // The columns of a deleted row would need the whole old row.
        ("t", &["id", "a"]),
        ("full_rows", &["id"]),
    ] {
        let refused = fixture
            .subscribe(fixture.request(table, columns).await)
            .await;
        let refused = refused.err();
        assert!(
            matches!(refused, Some(Error::Unsupported(_))),
            "{table}: {refused:?}"
        );
    }
    let mut keys = fixture.all("t", &["id"]).await;
    let mut request = fixture.request("full_rows", &["id", "a"]).await;
    request.operations = Operation::Insert.into();
    let mut inserts = fixture.subscribe(request).await.unwrap();
    for table in ["t", "full_rows"] {
        let write = format!(
            "INSERT INTO {table} VALUES (1, 'x'); UPDATE {table} SET a = 'y'; DELETE FROM {table}"
        );
        fixture.run(&write).await;
    }
    let row = "{\"id\":1}";
    let expected = [format!("+{row}"), format!("~{row}"), format!("-{row}")];
    assert_eq!(keys.events(3).await, expected);
    assert_eq!(inserts.event().await, "+{\"id\":1,\"a\":\"x\"}");
}
