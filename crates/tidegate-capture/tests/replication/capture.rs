//! Tests adding tables to the capture and removing them.

use std::time::Duration;

use tidegate_capture::{Replication, ReplicationSettings};
use tidegate_changelog::{ChangeLog as _, Demand, LogError, LogStart};
use tidegate_wire::Secret;

use super::fixture::{Fixture, StreamReader, config};

#[tokio::test]
async fn an_open_writer_is_waited_for() {
    let fixture = Fixture::new("log_writer").await;
    fixture.run("CREATE TABLE t (id int PRIMARY KEY)").await;
    let mut reader = StreamReader::new(fixture.open(None).await.unwrap());
    let writer = fixture.session().await;
    writer
        .batch_execute("BEGIN; INSERT INTO t VALUES (1)")
        .await
        .unwrap();
    let demand = Demand {
        relation: fixture.oid("t").await,
        changes: true,
        old_rows: false,
        timeout: Duration::from_millis(300),
    };
    let refused = fixture.log.capture(&fixture.database, &demand).await;
    assert!(
        matches!(refused, Err(LogError::TimedOut { .. })),
        "{refused:?}"
    );
    let capture = fixture.capture("t", true, false);
    let commit = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        writer
            .batch_execute("INSERT INTO t VALUES (2); COMMIT")
            .await
            .unwrap();
    };
    let (captured, ()) = tokio::join!(capture, commit);
    let captured = captured.unwrap();
    reader.reach(captured.barrier).await;
    let before = reader.rows.len();
    fixture.run("INSERT INTO t VALUES (3)").await;
    while reader.rows.len() == before {
        reader.step().await.unwrap();
    }
    assert!(reader.rows[before].ends_with('3'));
    // Once the table is captured without a gap, capturing it again does not wait.
    writer
        .batch_execute("BEGIN; INSERT INTO t VALUES (4)")
        .await
        .unwrap();
    assert_eq!(
        fixture.capture("t", true, false).await.unwrap().since,
        captured.since
    );
}

/// If each node stored a position of its own, the others would take the later one for a gap when
/// they open their next stream.
#[tokio::test]
async fn nodes_that_capture_a_table_at_the_same_time_get_the_same_position() {
    let fixture = Fixture::new("log_same_time").await;
    fixture.run("CREATE TABLE t (id int PRIMARY KEY)").await;
    let _stream = fixture.open(None).await.unwrap();
    let writer = fixture.session().await;
    writer
        .batch_execute("BEGIN; INSERT INTO t VALUES (1)")
        .await
        .unwrap();
    let waiting = "SELECT count(*)::text FROM pg_stat_activity \
                   WHERE datname = 'log_same_time' AND query LIKE '%pg_prepared_xacts%' \
                   AND pid <> pg_backend_pid()";
    let commit = async {
        while fixture.value(waiting).await != "4" {}
        writer.batch_execute("COMMIT").await.unwrap();
    };
    let inserts = async || fixture.capture("t", false, false).await.unwrap().since;
    let changes = async || fixture.capture("t", true, false).await.unwrap().since;
    let (one, two, three, four, ()) =
        tokio::join!(inserts(), changes(), inserts(), changes(), commit);
    assert_eq!([two, three, four], [one; 3]);
    assert_eq!([inserts().await, changes().await], [one; 2]);
}

#[tokio::test]
async fn inserts_stay_captured_from_their_position_when_changes_are_captured_too() {
    let fixture = Fixture::new("log_widened").await;
    fixture
        .run("CREATE TABLE t (id int PRIMARY KEY); CREATE TABLE keyless (id int)")
        .await;
    let _stream = fixture.open(None).await.unwrap();
    for table in ["t", "keyless"] {
        let since = async |changes| fixture.capture(table, changes, false).await.unwrap().since;
        let inserts = since(false).await;
        let changes = since(true).await;
        assert!(changes > inserts, "{table}");
        assert_eq!(since(false).await, inserts, "{table}");
        assert_eq!(since(true).await, changes, "{table}");
    }
    // If someone removes operations from a publication, INSERTs may be missing as well.
    let before = fixture.capture("t", false, false).await.unwrap().since;
    fixture
        .run("ALTER PUBLICATION tidegate_inserts SET (publish = 'delete')")
        .await;
    assert!(fixture.capture("t", false, false).await.unwrap().since > before);
}

#[tokio::test]
async fn a_table_without_a_key_stays_writable_and_gets_its_identity_back() {
    let fixture = Fixture::new("log_keyless").await;
    fixture
        .run(
            "CREATE TABLE t (a text); INSERT INTO t VALUES ('old');
             CREATE TABLE n (a text); ALTER TABLE n REPLICA IDENTITY NOTHING;
             CREATE TABLE i (a int NOT NULL, b text); CREATE UNIQUE INDEX \"I x\" ON i (a);
             ALTER TABLE i REPLICA IDENTITY USING INDEX \"I x\"",
        )
        .await;
    let mut reader = StreamReader::new(fixture.open(None).await.unwrap());
    // If only INSERT is needed, the table does not change.
    fixture.capture("t", false, false).await.unwrap();
    assert_eq!(fixture.identity("t").await, "d");
    fixture.run("UPDATE t SET a = 'free'").await;
    for table in ["t", "n"] {
        fixture.capture(table, true, false).await.unwrap();
        assert_eq!(fixture.identity(table).await, "f");
    }
    fixture.capture("i", true, false).await.unwrap();
    assert_eq!(fixture.identity("i").await, "i");
    fixture.capture("i", true, true).await.unwrap();
    assert_eq!(fixture.identity("i").await, "f");
    fixture.run("UPDATE t SET a = 'new'; DELETE FROM t").await;
    while !reader.rows.iter().any(|row| row.starts_with('D')) {
        reader.step().await.unwrap();
    }
    let update = reader.rows.iter().find(|row| row.starts_with('U')).unwrap();
    assert!(
        update.contains("free") && update.contains("new"),
        "{update:?}"
    );

    let kept = [fixture.oid("n").await];
    fixture.log.release(&fixture.database, &kept).await.unwrap();
    assert_eq!(fixture.identity("t").await, "d");
    assert_eq!(fixture.identity("n").await, "f");
    assert_eq!(fixture.identity("i").await, "i");
    let published = "SELECT string_agg(tablename, ',') FROM pg_publication_tables";
    assert_eq!(fixture.value(published).await, "n");
}

#[tokio::test]
async fn nothing_is_released_while_another_node_reads() {
    let fixture = Fixture::new("log_nodes").await;
    fixture.run("CREATE TABLE t (a text)").await;
    let mine = fixture.open(None).await.unwrap();
    let theirs = fixture.open(None).await.unwrap();
    fixture.capture("t", true, true).await.unwrap();
    fixture.log.release(&fixture.database, &[]).await.unwrap();
    assert_eq!(fixture.identity("t").await, "f");
    drop(theirs);
    while fixture
        .value("SELECT count(*)::text FROM pg_replication_slots WHERE database = 'log_nodes'")
        .await
        != "2"
    {}
    fixture.log.release(&fixture.database, &[]).await.unwrap();
    assert_eq!(fixture.identity("t").await, "d");
    drop(mine);
}

#[tokio::test]
async fn what_gives_no_changes_is_refused() {
    let fixture = Fixture::new("log_kinds").await;
    fixture
        .run(
            "CREATE VIEW v AS SELECT 1 AS a; CREATE UNLOGGED TABLE u (a int);
             CREATE TABLE p (a int) PARTITION BY LIST (a);
             CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1);
             CREATE TABLE k (a int PRIMARY KEY) PARTITION BY LIST (a);
             CREATE TABLE k1 PARTITION OF k FOR VALUES IN (1)",
        )
        .await;
    let _stream = fixture.open(None).await.unwrap();
    for (table, words) in [
        ("v", "a view"),
        ("u", "unlogged"),
        ("p1", "a partition"),
        ("p", "without a primary key"),
    ] {
        match fixture.capture(table, true, false).await {
            Err(LogError::Unsupported(reason)) => assert!(reason.contains(words), "{reason}"),
            other => panic!("{table}: {other:?}"),
        }
    }
    // Capturing the table must not make writes fail to a partition that is created later.
    fixture.capture("p", false, false).await.unwrap();
    fixture.capture("k", true, true).await.unwrap();
    fixture
        .run(
            "CREATE TABLE p2 PARTITION OF p FOR VALUES IN (2);
             CREATE TABLE k2 PARTITION OF k FOR VALUES IN (2);
             INSERT INTO p VALUES (1), (2); UPDATE p SET a = a; DELETE FROM p;
             INSERT INTO k VALUES (1), (2); UPDATE k SET a = a; DELETE FROM k",
        )
        .await;
    assert_eq!(fixture.identity("k1").await, "f");
    let demand = Demand {
        relation: 1,
        changes: true,
        old_rows: false,
        timeout: Duration::from_secs(1),
    };
    let nobody = fixture.log.capture(&fixture.database, &demand).await;
    assert!(matches!(nobody, Err(LogError::NoTable)), "{nobody:?}");
}

#[tokio::test]
async fn a_missing_right_is_named() {
    let fixture = Fixture::new("log_rights").await;
    fixture
        .run(
            "CREATE ROLE log_admin LOGIN REPLICATION PASSWORD 'x'; CREATE ROLE log_owner;
             GRANT CREATE ON DATABASE log_rights TO log_admin;
             CREATE TABLE t (a int PRIMARY KEY); ALTER TABLE t OWNER TO log_owner",
        )
        .await;
    let config = config(fixture.cluster);
    let config = config.with_login("log_admin", Secret::new("x"));
    let log = Replication::new(config.clone(), config, None, ReplicationSettings::default());
    let _stream = log.open(&fixture.database, LogStart::Now).await.unwrap();
    let demand = Demand {
        relation: fixture.oid("t").await,
        changes: true,
        old_rows: false,
        timeout: Duration::from_secs(5),
    };
    match log.capture(&fixture.database, &demand).await {
        Err(LogError::NotAllowed { remedy, .. }) => {
            assert_eq!(remedy, "run GRANT \"log_owner\" TO \"log_admin\"");
        }
        other => panic!("{other:?}"),
    }
    fixture.run("GRANT log_owner TO log_admin").await;
    log.capture(&fixture.database, &demand).await.unwrap();
}
