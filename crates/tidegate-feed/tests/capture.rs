//! Tests what a subscription changes in a database, and when it is refused.

use std::time::Duration;

use tidegate_feed::{Error, FeedSettings, Operation};
use tidegate_testkit::eventually;

use crate::fixture::{Fixture, Setup};

async fn identity(fixture: &Fixture, table: &str) -> String {
    let query = "SELECT relreplident::text FROM pg_class WHERE oid = $1::text::regclass";
    fixture
        .sql
        .query_one(query, &[&table])
        .await
        .unwrap()
        .get(0)
}

#[tokio::test]
async fn a_subscription_waits_for_open_writers_until_its_deadline() {
    let setup = Setup::with(FeedSettings {
        subscribe_timeout: Duration::from_millis(1500),
        ..FeedSettings::default()
    });
    let fixture = Fixture::with("feed_timeout", &setup).await;
    fixture
        .run("CREATE TABLE t (id int PRIMARY KEY, a int); GRANT SELECT ON t TO PUBLIC")
        .await;
    // The stream is open already, so only the writer delays the subscription.
    fixture
        .run("CREATE TABLE u (id int); GRANT SELECT ON u TO PUBLIC")
        .await;
    fixture.first("u", &["id"]).await;
    let writer = fixture.session().await;
    writer
        .batch_execute("BEGIN; INSERT INTO t VALUES (1)")
        .await
        .unwrap();
    let refused = fixture
        .subscribe(fixture.request("t", &["id"]).await)
        .await
        .err();
    assert!(
        matches!(refused, Some(Error::Timeout { .. })),
        "{refused:?}"
    );
    let request = fixture.request("t", &["id"]).await;
    let (listener, ()) = tokio::join!(fixture.subscribe(request), async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        writer.batch_execute("COMMIT").await.unwrap();
    });
    let mut listener = match listener {
        Ok(listener) => listener,
        // On a busy machine the subscription may time out before it starts to wait.
        Err(_) => fixture.first("t", &["id"]).await,
    };
    fixture.run("INSERT INTO t VALUES (2)").await;
    // The row of the open transaction may or may not be delivered; later rows must be.
    let mut event = listener.event().await;
    if event == "+{\"id\":1}" {
        event = listener.event().await;
    }
    assert_eq!(event, "+{\"id\":2}");
}

#[tokio::test]
async fn a_subscription_that_waits_for_a_writer_delays_no_other() {
    let fixture = Fixture::new("feed_in_the_way").await;
    fixture
        .run(
            "CREATE TABLE t (id int PRIMARY KEY); CREATE TABLE live (id int PRIMARY KEY);
             CREATE TABLE other (id int PRIMARY KEY); GRANT SELECT ON t, live, other TO PUBLIC",
        )
        .await;
    let _live = fixture.all("live", &["id"]).await;
    let writer = fixture.session().await;
    let open = "BEGIN; INSERT INTO t VALUES (1)";
    writer.batch_execute(open).await.unwrap();
    let request = fixture.request("t", &["id"]).await;
    let waiting = fixture.subscribe(request);
    tokio::pin!(waiting);
    let (again, other) = (
        fixture.request("live", &["id"]).await,
        fixture.request("other", &["id"]).await,
    );
    let captured = "SELECT FROM pg_publication_tables WHERE tablename = 't'";
    tokio::select! {
        biased;
        early = &mut waiting => panic!("{:?}", early.err()),
        () = until(&fixture, captured) => {}
    }
    tokio::select! {
        biased;
        early = &mut waiting => panic!("{:?}", early.err()),
        listener = fixture.subscribe(again) => drop(listener.unwrap()),
    }
    writer.batch_execute("COMMIT").await.unwrap();
    waiting.await.unwrap();
    fixture.subscribe(other).await.unwrap();
}

/// Waits until a query returns a row.
async fn until(fixture: &Fixture, query: &str) {
    let has_rows = async || !fixture.sql.query(query, &[]).await.unwrap().is_empty();
    eventually(query, has_rows).await;
}

/// Before 13.21, 14.18, 15.13, 16.9 and 17.5 PostgreSQL kept the old publication in its cache after
/// it decoded a transaction that was open while the publication changed.
#[tokio::test]
async fn an_open_writer_leaves_no_stale_publication() {
    let fixture = Fixture::new("feed_stale").await;
    fixture
        .run(
            "CREATE TABLE t (id int PRIMARY KEY, a text); CREATE TABLE u (id int); \
             INSERT INTO t VALUES (1, 'one'), (2, 'two'); GRANT SELECT ON t, u TO PUBLIC",
        )
        .await;
    fixture.all("u", &["id"]).await;
    let published = "SELECT FROM pg_publication_tables WHERE tablename = 't'";
    let writer = fixture.session().await;
    let open = "BEGIN; INSERT INTO t VALUES (3, 'before')";
    writer.batch_execute(open).await.unwrap();
    let request = fixture.request("t", &["id"]).await;
    let (listener, ()) = tokio::join!(fixture.subscribe(request), async {
        until(&fixture, published).await;
        let rest = "INSERT INTO t VALUES (4, 'behind'); COMMIT";
        writer.batch_execute(rest).await.unwrap();
    });
    let mut listener = listener.unwrap();
    fixture
        .run("INSERT INTO t VALUES (10, 'new'); DELETE FROM t WHERE id = 2")
        .await;
    while listener.event().await != "+{\"id\":10}" {}
    assert_eq!(listener.event().await, "-{\"id\":2}");
}

#[tokio::test]
async fn tables_without_a_key_keep_working_and_the_replica_identity_is_raised_only_if_needed() {
    let settings = FeedSettings {
        idle_timeout: Duration::from_millis(100),
        retention_interval: Duration::from_millis(50),
        ..FeedSettings::default()
    };
    let setup = Setup {
        settings,
        ..Setup::default()
    };
    let fixture = Fixture::with("feed_keyless", &setup).await;
    fixture
        .run("CREATE TABLE t (id int, a text); GRANT SELECT ON t TO PUBLIC")
        .await;
    let mut request = fixture.request("t", &["id"]).await;
    request.operations = Operation::Insert.into();
    let inserts = fixture.subscribe(request).await.unwrap();
    assert_eq!(identity(&fixture, "t").await, "d");
    fixture
        .run("INSERT INTO t VALUES (1, 'x'); UPDATE t SET a = 'y'")
        .await;
    let mut all = fixture.all("t", &["id", "a"]).await;
    assert_eq!(identity(&fixture, "t").await, "f");
    fixture.run("UPDATE t SET a = 'z'; DELETE FROM t").await;
    assert_eq!(
        all.events(2).await,
        ["~{\"id\":1,\"a\":\"z\"}", "-{\"id\":1,\"a\":\"z\"}"]
    );
    drop((all, inserts));
    let restored = async || identity(&fixture, "t").await == "d";
    eventually("the replica identity is restored", restored).await;
    fixture
        .run("INSERT INTO t VALUES (2, 'x'); UPDATE t SET a = 'y'; DELETE FROM t")
        .await;
    let mut again = fixture.all("t", &["id", "a"]).await;
    fixture
        .run("INSERT INTO t VALUES (3, 'x'); DELETE FROM t")
        .await;
    assert_eq!(again.events(2).await[1], "-{\"id\":3,\"a\":\"x\"}");
}

#[tokio::test]
async fn the_owner_captures_its_own_tables() {
    let fixture = Fixture::new("feed_owner").await;
    fixture
        .run(
            "CREATE TABLE t (id int PRIMARY KEY); GRANT SELECT ON t TO PUBLIC; \
             ALTER TABLE t OWNER TO feed_owner",
        )
        .await;
    let mut listener = fixture.all("t", &["id"]).await;
    fixture.run("INSERT INTO t VALUES (1)").await;
    assert_eq!(listener.event().await, "+{\"id\":1}");
    // The feed needs no trigger, and holds no lock that writers wait for.
    let met = "SELECT (SELECT count(*) FROM pg_trigger) + (SELECT count(*) FROM pg_locks \
               WHERE relation = 't'::regclass AND pid <> pg_backend_pid())";
    let met: i64 = fixture.sql.query_one(met, &[]).await.unwrap().get(0);
    assert_eq!(met, 0);
    let owner = "SELECT string_agg(DISTINCT pubowner::regrole::text, ',') FROM pg_publication";
    let owner: String = fixture.sql.query_one(owner, &[]).await.unwrap().get(0);
    assert_eq!(owner, "feed_owner");
}

#[tokio::test]
async fn two_thousand_tables_can_be_subscribed_to() {
    // To be fast, the test creates a tenth of the two thousand tables.
    let fixture = Fixture::new("feed_many").await;
    fixture
        .run(
            "DO $$ BEGIN FOR i IN 1..200 LOOP \
                 EXECUTE format('CREATE TABLE t%s (id int PRIMARY KEY)', i); \
                 EXECUTE format('GRANT SELECT ON t%s TO PUBLIC', i); END LOOP; END $$",
        )
        .await;
    let mut listeners = Vec::new();
    for table in 1..=200 {
        listeners.push(fixture.all(&format!("t{table}"), &["id"]).await);
    }
    fixture
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
async fn a_subscription_that_waits_for_a_reader_delays_writers_only_briefly() {
    let setup = Setup::with(FeedSettings {
        subscribe_timeout: Duration::from_millis(1500),
        ..FeedSettings::default()
    });
    let fixture = Fixture::with("feed_reader", &setup).await;
    fixture
        .run(
            "CREATE TABLE t (id int PRIMARY KEY, a text); CREATE TABLE u (id int, a text);
             GRANT SELECT ON t, u TO PUBLIC",
        )
        .await;
    fixture.first("u", &["id"]).await;
    let reader = fixture.session().await;
    let read = "BEGIN; SELECT FROM t";
    reader.batch_execute(read).await.unwrap();
    // The demand for whole old rows needs a lock of the table. Each attempt to get it is short.
    let request = fixture.request("t", &["id", "a"]).await;
    let subscribe = async {
        for _ in 0..3 {
            let refused = fixture.subscribe(request.clone()).await.err();
            let is_timeout =
                matches!(&refused, Some(Error::Timeout { what, .. }) if what.contains("locking"));
            assert!(is_timeout, "{refused:?}");
        }
    };
    let writer = fixture.session().await;
    // Writes to a second table measure how slow the machine is.
    let (mut delayed, mut longest) = ([Duration::ZERO; 2], [Duration::ZERO; 2]);
    let write = async {
        for id in 1.. {
            for (nth, table) in ["t", "u"].iter().enumerate() {
                let begin = tokio::time::Instant::now();
                let insert = format!("INSERT INTO {table} VALUES ({id}, 'x')");
                writer.batch_execute(&insert).await.unwrap();
                let took = begin.elapsed();
                if took > Duration::from_millis(50) {
                    delayed[nth] += took;
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
    // A single long attempt for each subscription would delay writers by 4.5 s.
    let limits = [Duration::from_secs(1), Duration::from_millis(1500)];
    assert!(longest[0] < limits[0] + longest[1], "{longest:?}");
    assert!(delayed[0] < limits[1] + delayed[1], "{delayed:?}");
    reader.batch_execute("COMMIT").await.unwrap();
    let mut request = request.clone();
    request.after = None;
    let mut listener = loop {
        match fixture.subscribe(request.clone()).await {
            Ok(listener) => break listener,
            Err(error) => assert!(matches!(error, Error::Timeout { .. }), "{error}"),
        }
    };
    fixture.run("DELETE FROM t WHERE id = 1").await;
    assert_eq!(listener.event().await, "-{\"id\":1,\"a\":\"x\"}");
}
