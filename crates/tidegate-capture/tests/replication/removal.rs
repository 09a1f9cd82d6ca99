//! Tests what an operator sees of the feed in a database, and its removal.

use std::time::{Duration, Instant};

use tidegate_capture::{DatabaseCapture, Removal, Replication, ReplicationSettings};
use tidegate_changelog::{ChangeLog as _, LogError, LogStart};
use tidegate_embedded::testing;
use tidegate_wire::Secret;

use super::fixture::{Fixture, StreamReader, config};

/// Captures tables with each kind of replica identity, which raises it.
async fn captured(fixture: &Fixture) {
    fixture
        .run(
            "CREATE TABLE keyless (a text); CREATE TABLE \"In serts\" (a int);
             CREATE TABLE n (a text); ALTER TABLE n REPLICA IDENTITY NOTHING;
             CREATE TABLE i (a int NOT NULL, b text); CREATE UNIQUE INDEX \"I x\" ON i (a);
             ALTER TABLE i REPLICA IDENTITY USING INDEX \"I x\";
             CREATE TABLE own (a text); ALTER TABLE own REPLICA IDENTITY FULL",
        )
        .await;
    for table in ["keyless", "n", "own"] {
        fixture.capture(table, true, false).await.unwrap();
    }
    fixture.capture("i", true, true).await.unwrap();
    fixture.capture("\"In serts\"", false, false).await.unwrap();
}

#[tokio::test]
async fn what_the_feed_keeps_is_shown_and_taken_back() {
    let fixture = Fixture::new("log_removal").await;
    let mut reader = StreamReader::new(fixture.open(None).await.unwrap());
    captured(&fixture).await;
    let capture = fixture.log.captured(&fixture.database).await.unwrap();
    let [everything, inserts] = &capture.publications[..] else {
        panic!("{capture:?}");
    };
    assert_eq!(everything.name, "tidegate");
    assert_eq!(
        everything.tables,
        ["public.i", "public.keyless", "public.n", "public.own"]
    );
    assert_eq!(inserts.name, "tidegate_inserts");
    assert_eq!(inserts.tables, ["public.\"In serts\""]);
    let raised: Vec<_> = capture
        .raised
        .iter()
        .map(|raised| (raised.table.as_str(), raised.before()))
        .collect();
    // The replica identity of `own` was FULL before, so the service has nothing to restore.
    assert_eq!(
        raised,
        [
            ("public.i", "USING INDEX \"I x\""),
            ("public.keyless", "DEFAULT"),
            ("public.n", "NOTHING")
        ]
    );

    let streaming = fixture.log.remove(&fixture.database, false).await.unwrap();
    match streaming {
        Removal::Streaming(servers) => assert_eq!(servers.len(), 1, "{servers:?}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(fixture.identity("keyless").await, "f", "unchanged");
    fixture.run("INSERT INTO own VALUES ('still read')").await;
    while !reader.rows.iter().any(|row| row.ends_with("still read")) {
        reader.step().await.unwrap();
    }
    drop(reader);
    let deadline = Instant::now() + Duration::from_secs(20);
    let (removed, slots) = loop {
        match fixture.log.remove(&fixture.database, false).await.unwrap() {
            Removal::Done { removed, slots } => break (removed, slots),
            Removal::Streaming(_) if Instant::now() < deadline => {}
            other => panic!("{other:?}"),
        }
    };
    assert_eq!((removed, slots.len()), (capture, 1));
    for (table, identity) in [("keyless", "d"), ("n", "n"), ("i", "i"), ("own", "f")] {
        assert_eq!(fixture.identity(table).await, identity, "{table}");
    }
    nothing_is_left(&fixture).await;
    let again = fixture.log.remove(&fixture.database, false).await.unwrap();
    let nothing = Removal::Done {
        removed: DatabaseCapture::default(),
        slots: Vec::new(),
    };
    assert_eq!(again, nothing);
}

async fn nothing_is_left(fixture: &Fixture) {
    let slots = format!(
        "SELECT count(*)::text FROM pg_replication_slots WHERE database = '{}'",
        fixture.database
    );
    assert_eq!(fixture.value(&slots).await, "0");
    let publications = "SELECT count(*)::text FROM pg_publication";
    assert_eq!(fixture.value(publications).await, "0");
}

#[tokio::test]
async fn a_stream_that_is_open_is_ended_when_that_is_asked_for() {
    let fixture = Fixture::new("log_ended").await;
    let mut reader = StreamReader::new(fixture.open(None).await.unwrap());
    captured(&fixture).await;
    let removed = fixture.log.remove(&fixture.database, true).await.unwrap();
    assert!(matches!(removed, Removal::Done { .. }), "{removed:?}");
    while reader.step().await.is_ok() {}
    assert_eq!(fixture.identity("keyless").await, "d");
    nothing_is_left(&fixture).await;
}

#[tokio::test]
async fn servers_that_come_back_meanwhile_are_no_lack_of_rights() {
    let fixture = Fixture::new("log_back").await;
    let server = async || loop {
        if let Ok(stream) = fixture.log.open(&fixture.database, LogStart::Now).await {
            let mut reader = StreamReader::new(stream);
            while reader.step().await.is_ok() {}
        }
    };
    let removals = async {
        let mut recreated = 0;
        while recreated < 3 {
            fixture.run("CREATE TABLE t (a text)").await;
            // Captures fail until a node opens a stream, which creates the publications.
            while let Err(error) = fixture.capture("t", true, false).await {
                assert!(matches!(error, LogError::Gone), "{error:?}");
            }
            match fixture.log.remove(&fixture.database, true).await.unwrap() {
                Removal::Recreated => recreated += 1,
                Removal::Done { .. } => {}
                other => panic!("{other:?}"),
            }
            fixture.run("DROP TABLE t").await;
        }
    };
    // While two nodes read, no table is removed from the capture.
    tokio::select! {
        () = removals => {}
        () = server() => {}
        () = server() => {}
    }
}

#[tokio::test]
async fn a_replication_login_ends_its_own_stream() {
    let fixture = Fixture::new("log_ended_by_reader").await;
    // The second argument, a timeout, exists from PostgreSQL 14 on.
    let arguments = match testing::cluster().version().major {
        13 => "int",
        _ => "int, bigint",
    };
    fixture
        .run(&format!(
            "CREATE ROLE log_reader LOGIN REPLICATION PASSWORD 'x'; CREATE TABLE t (a text);
             REVOKE EXECUTE ON FUNCTION pg_terminate_backend({arguments}) FROM PUBLIC"
        ))
        .await;
    let admin = config(fixture.cluster);
    let reader = admin.clone().with_login("log_reader", Secret::new("x"));
    let log = Replication::new(reader, admin, None, ReplicationSettings::default());
    let stream = log.open(&fixture.database, LogStart::Now).await.unwrap();
    let mut stream = StreamReader::new(stream);
    let demand = fixture.demand("t", true, false).await;
    log.capture(&fixture.database, &demand).await.unwrap();
    let removed = log.remove(&fixture.database, true).await.unwrap();
    assert!(matches!(removed, Removal::Done { .. }), "{removed:?}");
    while stream.step().await.is_ok() {}
    nothing_is_left(&fixture).await;
}

#[tokio::test]
async fn slots_are_shown_with_what_they_keep() {
    let fixture = Fixture::new("log_slots").await;
    let _reader = fixture.open(None).await.unwrap();
    fixture
        .run("CREATE TABLE t AS SELECT repeat('x', 100) FROM generate_series(1, 5000)")
        .await;
    let cluster = fixture.log.cluster().await.unwrap();
    let setting = |name: &str| {
        let found = cluster.settings.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    };
    assert_eq!(setting("wal_level"), Some("logical"));
    assert_eq!(setting("max_replication_slots"), Some("200"));
    assert_eq!(setting("max_wal_senders"), Some("100"));
    assert!(setting("max_slot_wal_keep_size").is_some());
    let oid: String = fixture
        .value("SELECT oid::text FROM pg_database WHERE datname = current_database()")
        .await;
    let mine: Vec<_> = cluster
        .slots
        .iter()
        .filter(|slot| slot.database == fixture.database)
        .collect();
    let [retention_slot, stream] = mine[..] else {
        panic!("{mine:?}");
    };
    assert_eq!(retention_slot.name, format!("tidegate_{oid}"));
    assert_eq!(retention_slot.active, None);
    assert!(
        retention_slot.retained >= Some(500_000),
        "{retention_slot:?}"
    );
    assert!(retention_slot.restart <= retention_slot.confirmed && retention_slot.restart.is_some());
    assert!(retention_slot.wal_status.is_some());
    let process = stream.active.unwrap();
    assert_eq!(stream.name, format!("tidegate_{oid}_{process}"));
    assert!(cluster.slots_used >= 2 && cluster.senders_used >= 1);
}

#[tokio::test]
async fn objects_that_cannot_be_changed_are_left_and_named() {
    let fixture = Fixture::new("log_left").await;
    fixture
        .run(
            "CREATE ROLE left_admin LOGIN REPLICATION PASSWORD 'x'; CREATE ROLE left_owner;
             GRANT CREATE ON DATABASE log_left TO left_admin; GRANT left_owner TO left_admin;
             CREATE TABLE t (a int); ALTER TABLE t OWNER TO left_owner",
        )
        .await;
    let config = config(fixture.cluster);
    let config = config.with_login("left_admin", Secret::new("x"));
    let log = Replication::new(config.clone(), config, None, ReplicationSettings::default());
    let stream = log.open(&fixture.database, LogStart::Now).await.unwrap();
    let demand = fixture.demand("t", true, true).await;
    log.capture(&fixture.database, &demand).await.unwrap();
    drop(stream);
    fixture.run("REVOKE left_owner FROM left_admin").await;
    match log.remove(&fixture.database, true).await.unwrap() {
        Removal::Left(left) => {
            let sql = "ALTER TABLE ONLY public.t REPLICA IDENTITY DEFAULT;";
            assert_eq!(left.raised[0].sql, sql);
            fixture.run(sql).await;
        }
        other => panic!("{other:?}"),
    }
    let removed = log.remove(&fixture.database, true).await.unwrap();
    assert!(matches!(removed, Removal::Done { .. }), "{removed:?}");
    nothing_is_left(&fixture).await;
}
