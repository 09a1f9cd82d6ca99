//! What an operator sees of the feed, and takes out of a database.

use std::time::{Duration, Instant};

use tidegate_capture::{DatabaseCapture, Removal, Replication, ReplicationSettings};
use tidegate_changelog::{ChangeLog as _, LogError, LogStart};
use tidegate_embedded::testing;
use tidegate_wire::Secret;

use super::scene::{Reader, Scene, config};

/// Tables of every kind of identity, captured with theirs raised.
async fn captured(scene: &Scene) {
    scene
        .run(
            "CREATE TABLE keyless (a text); CREATE TABLE \"In serts\" (a int);
             CREATE TABLE n (a text); ALTER TABLE n REPLICA IDENTITY NOTHING;
             CREATE TABLE i (a int NOT NULL, b text); CREATE UNIQUE INDEX \"I x\" ON i (a);
             ALTER TABLE i REPLICA IDENTITY USING INDEX \"I x\";
             CREATE TABLE own (a text); ALTER TABLE own REPLICA IDENTITY FULL",
        )
        .await;
    for table in ["keyless", "n", "own"] {
        scene.capture(table, true, false).await.unwrap();
    }
    scene.capture("i", true, true).await.unwrap();
    scene.capture("\"In serts\"", false, false).await.unwrap();
}

#[tokio::test]
async fn what_the_feed_keeps_is_shown_and_taken_back() {
    let scene = Scene::new("log_removal").await;
    let mut reader = Reader::new(scene.open(None).await.unwrap());
    captured(&scene).await;
    let capture = scene.log.captured(&scene.database).await.unwrap();
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
    // `own` was FULL before: it is nothing that the service would have to put back.
    assert_eq!(
        raised,
        [
            ("public.i", "USING INDEX \"I x\""),
            ("public.keyless", "DEFAULT"),
            ("public.n", "NOTHING")
        ]
    );

    let streaming = scene.log.remove(&scene.database, false).await.unwrap();
    match streaming {
        Removal::Streaming(servers) => assert_eq!(servers.len(), 1, "{servers:?}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(scene.identity("keyless").await, "f", "nothing was changed");
    scene.run("INSERT INTO own VALUES ('still read')").await;
    while !reader.rows.iter().any(|row| row.ends_with("still read")) {
        reader.step().await.unwrap();
    }
    drop(reader);
    let deadline = Instant::now() + Duration::from_secs(20);
    let (removed, slots) = loop {
        match scene.log.remove(&scene.database, false).await.unwrap() {
            Removal::Done { removed, slots } => break (removed, slots),
            Removal::Streaming(_) if Instant::now() < deadline => {}
            other => panic!("{other:?}"),
        }
    };
    assert_eq!((removed, slots.len()), (capture, 1));
    for (table, identity) in [("keyless", "d"), ("n", "n"), ("i", "i"), ("own", "f")] {
        assert_eq!(scene.identity(table).await, identity, "{table}");
    }
    nothing_is_left(&scene).await;
    let again = scene.log.remove(&scene.database, false).await.unwrap();
    let nothing = Removal::Done {
        removed: DatabaseCapture::default(),
        slots: Vec::new(),
    };
    assert_eq!(again, nothing);
}

async fn nothing_is_left(scene: &Scene) {
    let slots = format!(
        "SELECT count(*)::text FROM pg_replication_slots WHERE database = '{}'",
        scene.database
    );
    assert_eq!(scene.value(&slots).await, "0");
    let publications = "SELECT count(*)::text FROM pg_publication";
    assert_eq!(scene.value(publications).await, "0");
}

#[tokio::test]
async fn a_stream_that_is_open_is_ended_when_that_is_asked_for() {
    let scene = Scene::new("log_ended").await;
    let mut reader = Reader::new(scene.open(None).await.unwrap());
    captured(&scene).await;
    let removed = scene.log.remove(&scene.database, true).await.unwrap();
    assert!(matches!(removed, Removal::Done { .. }), "{removed:?}");
    while reader.step().await.is_ok() {}
    assert_eq!(scene.identity("keyless").await, "d");
    nothing_is_left(&scene).await;
}

#[tokio::test]
async fn servers_that_come_back_meanwhile_are_no_lack_of_rights() {
    let scene = Scene::new("log_back").await;
    let server = async || loop {
        if let Ok(stream) = scene.log.open(&scene.database, LogStart::Now).await {
            let mut reader = Reader::new(stream);
            while reader.step().await.is_ok() {}
        }
    };
    let removals = async {
        let mut came_back = 0;
        while came_back < 3 {
            scene.run("CREATE TABLE t (a text)").await;
            // Whoever opens a stream makes the publications.
            while let Err(error) = scene.capture("t", true, false).await {
                assert!(matches!(error, LogError::Gone), "{error:?}");
            }
            match scene.log.remove(&scene.database, true).await.unwrap() {
                Removal::CameBack => came_back += 1,
                Removal::Done { .. } => {}
                other => panic!("{other:?}"),
            }
            scene.run("DROP TABLE t").await;
        }
    };
    // While two read, nobody takes anything out of the capture.
    tokio::select! {
        () = removals => {}
        () = server() => {}
        () = server() => {}
    }
}

#[tokio::test]
async fn a_reader_of_its_own_ends_its_stream_where_users_may_end_nobody() {
    let scene = Scene::new("log_ended_by_reader").await;
    // The second argument, a time to wait, came with 14.
    let arguments = match testing::cluster().version().major {
        13 => "int",
        _ => "int, bigint",
    };
    scene
        .run(&format!(
            "CREATE ROLE log_reader LOGIN REPLICATION PASSWORD 'x'; CREATE TABLE t (a text);
             REVOKE EXECUTE ON FUNCTION pg_terminate_backend({arguments}) FROM PUBLIC"
        ))
        .await;
    let admin = config(scene.cluster);
    let reader = admin.clone().with_login("log_reader", Secret::new("x"));
    let log = Replication::new(reader, admin, None, ReplicationSettings::default());
    let stream = log.open(&scene.database, LogStart::Now).await.unwrap();
    let mut stream = Reader::new(stream);
    let demand = scene.demand("t", true, false).await;
    log.capture(&scene.database, &demand).await.unwrap();
    let removed = log.remove(&scene.database, true).await.unwrap();
    assert!(matches!(removed, Removal::Done { .. }), "{removed:?}");
    while stream.step().await.is_ok() {}
    nothing_is_left(&scene).await;
}

#[tokio::test]
async fn slots_are_shown_with_what_they_keep() {
    let scene = Scene::new("log_slots").await;
    let _reader = scene.open(None).await.unwrap();
    scene
        .run("CREATE TABLE t AS SELECT repeat('x', 100) FROM generate_series(1, 5000)")
        .await;
    let cluster = scene.log.cluster().await.unwrap();
    let setting = |name: &str| {
        let found = cluster.settings.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    };
    assert_eq!(setting("wal_level"), Some("logical"));
    assert_eq!(setting("max_replication_slots"), Some("100"));
    assert_eq!(setting("max_wal_senders"), Some("100"));
    assert!(setting("max_slot_wal_keep_size").is_some());
    let oid: String = scene
        .value("SELECT oid::text FROM pg_database WHERE datname = current_database()")
        .await;
    let mine: Vec<_> = cluster
        .slots
        .iter()
        .filter(|slot| slot.database == scene.database)
        .collect();
    let [anchor, stream] = mine[..] else {
        panic!("{mine:?}");
    };
    assert_eq!(anchor.name, format!("tidegate_{oid}"));
    assert_eq!(anchor.active, None);
    assert!(anchor.retained >= Some(500_000), "{anchor:?}");
    assert!(anchor.restart <= anchor.confirmed && anchor.restart.is_some());
    assert!(anchor.wal_status.is_some());
    let process = stream.active.unwrap();
    assert_eq!(stream.name, format!("tidegate_{oid}_{process}"));
    assert!(cluster.slots_used >= 2 && cluster.senders_used >= 1);
}

#[tokio::test]
async fn what_nobody_may_change_is_left_and_named() {
    let scene = Scene::new("log_left").await;
    scene
        .run(
            "CREATE ROLE left_admin LOGIN REPLICATION PASSWORD 'x'; CREATE ROLE left_owner;
             GRANT CREATE ON DATABASE log_left TO left_admin; GRANT left_owner TO left_admin;
             CREATE TABLE t (a int); ALTER TABLE t OWNER TO left_owner",
        )
        .await;
    let config = config(scene.cluster);
    let config = config.with_login("left_admin", Secret::new("x"));
    let log = Replication::new(config.clone(), config, None, ReplicationSettings::default());
    let stream = log.open(&scene.database, LogStart::Now).await.unwrap();
    let demand = scene.demand("t", true, true).await;
    log.capture(&scene.database, &demand).await.unwrap();
    drop(stream);
    scene.run("REVOKE left_owner FROM left_admin").await;
    match log.remove(&scene.database, true).await.unwrap() {
        Removal::Left(left) => {
            let sql = "ALTER TABLE ONLY public.t REPLICA IDENTITY DEFAULT;";
            assert_eq!(left.raised[0].sql, sql);
            scene.run(sql).await;
        }
        other => panic!("{other:?}"),
    }
    let removed = log.remove(&scene.database, true).await.unwrap();
    assert!(matches!(removed, Removal::Done { .. }), "{removed:?}");
    nothing_is_left(&scene).await;
}
