//! What subscribing does to a database, and when it is refused.

use std::time::Duration;

use tidegate_feed::{Error, Operation, Settings};

use crate::scene::{Scene, Setup};

async fn identity(scene: &Scene, table: &str) -> String {
    let query = "SELECT relreplident::text FROM pg_class WHERE oid = $1::text::regclass";
    scene.sql.query_one(query, &[&table]).await.unwrap().get(0)
}

#[tokio::test]
async fn a_writer_that_was_open_is_waited_for_or_the_time_is_up() {
    let setup = Setup::with(Settings {
        patience: Duration::from_millis(1500),
        ..Settings::default()
    });
    let scene = Scene::with("feed_patience", &setup).await;
    scene
        .run("CREATE TABLE t (id int PRIMARY KEY, a int); GRANT SELECT ON t TO PUBLIC")
        .await;
    // The stream is there already, so that only the writer is in the way.
    scene
        .run("CREATE TABLE u (id int); GRANT SELECT ON u TO PUBLIC")
        .await;
    scene.first("u", &["id"]).await;
    let writer = scene.session().await;
    writer
        .batch_execute("BEGIN; INSERT INTO t VALUES (1)")
        .await
        .unwrap();
    let refused = scene
        .subscribe(scene.request("t", &["id"]).await)
        .await
        .err();
    assert!(
        matches!(refused, Some(Error::Timeout { .. })),
        "{refused:?}"
    );
    let request = scene.request("t", &["id"]).await;
    let (listener, ()) = tokio::join!(scene.subscribe(request), async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        writer.batch_execute("COMMIT").await.unwrap();
    });
    let mut listener = match listener {
        Ok(listener) => listener,
        // On a busy machine its time may be up a moment before.
        Err(_) => scene.first("t", &["id"]).await,
    };
    scene.run("INSERT INTO t VALUES (2)").await;
    // The transaction that was open may or may not be seen; what follows is.
    let mut event = listener.event().await;
    if event == "+{\"id\":1}" {
        event = listener.event().await;
    }
    assert_eq!(event, "+{\"id\":2}");
}

#[tokio::test]
async fn who_waits_for_a_writer_is_in_nobodys_way() {
    let scene = Scene::new("feed_in_the_way").await;
    scene
        .run(
            "CREATE TABLE t (id int PRIMARY KEY); CREATE TABLE live (id int PRIMARY KEY);
             CREATE TABLE other (id int PRIMARY KEY); GRANT SELECT ON t, live, other TO PUBLIC",
        )
        .await;
    let _live = scene.all("live", &["id"]).await;
    let writer = scene.session().await;
    let open = "BEGIN; INSERT INTO t VALUES (1)";
    writer.batch_execute(open).await.unwrap();
    let request = scene.request("t", &["id"]).await;
    let waiting = scene.subscribe(request);
    tokio::pin!(waiting);
    let (again, other) = (
        scene.request("live", &["id"]).await,
        scene.request("other", &["id"]).await,
    );
    let captured = "SELECT FROM pg_publication_tables WHERE tablename = 't'";
    tokio::select! {
        biased;
        early = &mut waiting => panic!("{:?}", early.err()),
        () = until(&scene, captured) => {}
    }
    tokio::select! {
        biased;
        early = &mut waiting => panic!("{:?}", early.err()),
        listener = scene.subscribe(again) => drop(listener.unwrap()),
    }
    writer.batch_execute("COMMIT").await.unwrap();
    waiting.await.unwrap();
    scene.subscribe(other).await.unwrap();
}

/// Waits until a query gives a row.
async fn until(scene: &Scene, query: &str) {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
    while scene.sql.query(query, &[]).await.unwrap().is_empty() {
        assert!(tokio::time::Instant::now() < deadline, "never: {query}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Before 13.21, 14.18, 15.13, 16.9 and 17.5 the decoding of a transaction that was open while a
/// publication changed left behind what the publication was before.
#[tokio::test]
async fn a_writer_that_was_open_leaves_no_old_definition_behind() {
    let scene = Scene::new("feed_stale").await;
    scene
        .run(
            "CREATE TABLE t (id int PRIMARY KEY, a text); CREATE TABLE u (id int); \
             INSERT INTO t VALUES (1, 'one'), (2, 'two'); GRANT SELECT ON t, u TO PUBLIC",
        )
        .await;
    scene.all("u", &["id"]).await;
    let published = "SELECT FROM pg_publication_tables WHERE tablename = 't'";
    let writer = scene.session().await;
    let open = "BEGIN; INSERT INTO t VALUES (3, 'before')";
    writer.batch_execute(open).await.unwrap();
    let request = scene.request("t", &["id"]).await;
    let (listener, ()) = tokio::join!(scene.subscribe(request), async {
        until(&scene, published).await;
        let rest = "INSERT INTO t VALUES (4, 'behind'); COMMIT";
        writer.batch_execute(rest).await.unwrap();
    });
    let mut listener = listener.unwrap();
    scene
        .run("INSERT INTO t VALUES (10, 'new'); DELETE FROM t WHERE id = 2")
        .await;
    while listener.event().await != "+{\"id\":10}" {}
    assert_eq!(listener.event().await, "-{\"id\":2}");
}

#[tokio::test]
async fn tables_without_a_key_keep_working_and_only_what_is_needed_is_raised() {
    let settings = Settings {
        linger: Duration::from_millis(100),
        retain: Duration::from_millis(50),
        ..Settings::default()
    };
    let setup = Setup {
        settings,
        ..Setup::default()
    };
    let scene = Scene::with("feed_keyless", &setup).await;
    scene
        .run("CREATE TABLE t (id int, a text); GRANT SELECT ON t TO PUBLIC")
        .await;
    let mut request = scene.request("t", &["id"]).await;
    request.operations = Operation::Insert.into();
    let inserts = scene.subscribe(request).await.unwrap();
    assert_eq!(identity(&scene, "t").await, "d");
    scene
        .run("INSERT INTO t VALUES (1, 'x'); UPDATE t SET a = 'y'")
        .await;
    let mut all = scene.all("t", &["id", "a"]).await;
    assert_eq!(identity(&scene, "t").await, "f");
    scene.run("UPDATE t SET a = 'z'; DELETE FROM t").await;
    assert_eq!(
        all.events(2).await,
        ["~{\"id\":1,\"a\":\"z\"}", "-{\"id\":1,\"a\":\"z\"}"]
    );
    drop((all, inserts));
    let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
    while identity(&scene, "t").await != "d" {
        assert!(
            tokio::time::Instant::now() < deadline,
            "the identity is never put back"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    scene
        .run("INSERT INTO t VALUES (2, 'x'); UPDATE t SET a = 'y'; DELETE FROM t")
        .await;
    let mut again = scene.all("t", &["id", "a"]).await;
    scene
        .run("INSERT INTO t VALUES (3, 'x'); DELETE FROM t")
        .await;
    assert_eq!(again.events(2).await[1], "-{\"id\":3,\"a\":\"x\"}");
}

#[tokio::test]
async fn the_owner_captures_its_own_tables() {
    let scene = Scene::new("feed_owner").await;
    scene
        .run(
            "CREATE TABLE t (id int PRIMARY KEY); GRANT SELECT ON t TO PUBLIC; \
             ALTER TABLE t OWNER TO feed_owner",
        )
        .await;
    let mut listener = scene.all("t", &["id"]).await;
    scene.run("INSERT INTO t VALUES (1)").await;
    assert_eq!(listener.event().await, "+{\"id\":1}");
    // Writers meet no trigger and no lock.
    let met = "SELECT (SELECT count(*) FROM pg_trigger) + (SELECT count(*) FROM pg_locks \
               WHERE relation = 't'::regclass AND pid <> pg_backend_pid())";
    let met: i64 = scene.sql.query_one(met, &[]).await.unwrap().get(0);
    assert_eq!(met, 0);
    let owner = "SELECT string_agg(DISTINCT pubowner::regrole::text, ',') FROM pg_publication";
    let owner: String = scene.sql.query_one(owner, &[]).await.unwrap().get(0);
    assert_eq!(owner, "feed_owner");
}

#[tokio::test]
async fn two_thousand_tables_can_be_subscribed_to() {
    // A tenth of them.
    let scene = Scene::new("feed_many").await;
    scene
        .run(
            "DO $$ BEGIN FOR i IN 1..200 LOOP \
                 EXECUTE format('CREATE TABLE t%s (id int PRIMARY KEY)', i); \
                 EXECUTE format('GRANT SELECT ON t%s TO PUBLIC', i); END LOOP; END $$",
        )
        .await;
    let mut listeners = Vec::new();
    for table in 1..=200 {
        listeners.push(scene.all(&format!("t{table}"), &["id"]).await);
    }
    scene
        .run(
            "DO $$ BEGIN FOR i IN 1..200 LOOP \
                 EXECUTE format('INSERT INTO t%s VALUES (%s)', i, i); END LOOP; END $$",
        )
        .await;
    for (listener, table) in listeners.iter_mut().zip(1..) {
        assert_eq!(listener.event().await, format!("+{{\"id\":{table}}}"));
    }
}

#[tokio::test]
async fn who_waits_for_a_reader_holds_others_up_for_moments_only() {
    let setup = Setup::with(Settings {
        patience: Duration::from_millis(1500),
        ..Settings::default()
    });
    let scene = Scene::with("feed_reader", &setup).await;
    scene
        .run(
            "CREATE TABLE t (id int PRIMARY KEY, a text); CREATE TABLE u (id int, a text);
             GRANT SELECT ON t, u TO PUBLIC",
        )
        .await;
    scene.first("u", &["id"]).await;
    let reader = scene.session().await;
    let read = "BEGIN; SELECT FROM t";
    reader.batch_execute(read).await.unwrap();
    // Whole old rows are needed, for which the table has to be locked, again and again.
    let request = scene.request("t", &["id", "a"]).await;
    let subscribe = async {
        for _ in 0..3 {
            let refused = scene.subscribe(request.clone()).await.err();
            let is_timeout =
                matches!(&refused, Some(Error::Timeout { what, .. }) if what.contains("locking"));
            assert!(is_timeout, "{refused:?}");
        }
    };
    let writer = scene.session().await;
    // A table beside it tells how slow the machine is.
    let (mut held_up, mut longest) = ([Duration::ZERO; 2], [Duration::ZERO; 2]);
    let write = async {
        for id in 1.. {
            for (nth, table) in ["t", "u"].iter().enumerate() {
                let begin = tokio::time::Instant::now();
                let insert = format!("INSERT INTO {table} VALUES ({id}, 'x')");
                writer.batch_execute(&insert).await.unwrap();
                let took = begin.elapsed();
                if took > Duration::from_millis(50) {
                    held_up[nth] += took;
                }
                longest[nth] = longest[nth].max(took);
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::select! {
        () = subscribe => {}
        () = write => {}
    }
    // One attempt for each subscription, as long as it may take, would hold them up for 4.5 s.
    let limits = [Duration::from_secs(1), Duration::from_millis(1500)];
    assert!(longest[0] < limits[0] + longest[1], "{longest:?}");
    assert!(held_up[0] < limits[1] + held_up[1], "{held_up:?}");
    reader.batch_execute("COMMIT").await.unwrap();
    let mut request = request.clone();
    request.after = None;
    let mut listener = loop {
        match scene.subscribe(request.clone()).await {
            Ok(listener) => break listener,
            Err(error) => assert!(matches!(error, Error::Timeout { .. }), "{error}"),
        }
    };
    scene.run("DELETE FROM t WHERE id = 1").await;
    assert_eq!(listener.event().await, "-{\"id\":1,\"a\":\"x\"}");
}
