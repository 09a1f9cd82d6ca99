//! Tests the outbox on a server whose WAL contains no row changes for decoding.

mod promotion;

use std::sync::OnceLock;
use std::time::Duration;

use tidegate_capture::{Outbox, OutboxRemoval, OutboxSettings};
use tidegate_changelog::{
    Captured, ChangeLog as _, Demand, LogError, LogIdentity, LogPosition, LogResult, LogStart,
};
use tidegate_embedded::{Cluster, testing};
use tidegate_sql::DatabaseName;
use tidegate_testkit::{config, connect, database_on};
use tidegate_wire::{Config, Secret};
use tokio_postgres::Client;

use crate::replication::fixture::StreamReader;

fn cluster() -> &'static Cluster {
    static SHARED: OnceLock<Cluster> = OnceLock::new();
    SHARED.get_or_init(|| {
        let settings = testing::settings().with("wal_level", "replica");
        Cluster::start_blocking(&settings).unwrap()
    })
}

struct Fixture {
    database: DatabaseName,
    outbox: Outbox,
    sql: Client,
}

impl Fixture {
    async fn new(name: &str) -> Self {
        database_on(cluster(), name, "").await;
        Self::of(name, superuser(), OutboxSettings::default()).await
    }

    async fn of(name: &str, admin: Config, settings: OutboxSettings) -> Self {
        Self {
            database: DatabaseName::new(name),
            outbox: Outbox::new(admin, None, settings),
            sql: connect(&cluster().url(name)).await,
        }
    }

    async fn run(&self, sql: &str) {
        self.sql.batch_execute(sql).await.unwrap();
    }

    async fn number(&self, query: &str) -> i64 {
        self.sql.query_one(query, &[]).await.unwrap().get(0)
    }

    async fn open(&self, start: LogStart) -> LogResult<StreamReader> {
        let stream = self.outbox.open(&self.database, start).await;
        stream.map(StreamReader::new)
    }

    async fn capture(&self, table: &str) -> LogResult<Captured> {
        let query = format!("SELECT '{table}'::regclass::oid::int8");
        let relation = u32::try_from(self.number(&query).await).unwrap();
        let demand = Demand {
            relation,
            changes: true,
            old_rows: false,
            timeout: Duration::from_secs(10),
        };
        self.outbox.capture(&self.database, &demand).await
    }
}

fn superuser() -> Config {
    config(&cluster().socket_url("postgres"), "postgres")
}

#[tokio::test]
async fn transactions_of_any_size_come_whole_and_in_order() {
    let fixture = Fixture::new("box_size").await;
    fixture.run("CREATE TABLE t (id int, pad text)").await;
    let mut reader = fixture.open(LogStart::Now).await.unwrap();
    fixture.capture("t").await.unwrap();
    fixture
        .run(
            "INSERT INTO t SELECT i FROM generate_series(1, 5000) i; \
             INSERT INTO t VALUES (5001, repeat('x', 6000000)); \
             INSERT INTO t SELECT i FROM generate_series(5002, 5010) i",
        )
        .await;
    for id in 5011..=5050 {
        fixture.run(&format!("INSERT INTO t VALUES ({id})")).await;
    }
    // All statements of a simple query are one transaction.
    reader.read(41).await;
    assert_eq!(reader.rows.len(), 5050);
    for (row, id) in reader.rows.iter().zip(1..) {
        let is_it = match id {
            5001 => row.len() > 6_000_000 && row.contains("5001"),
            _ => row.ends_with(&format!("{id}n")),
        };
        assert!(is_it, "{id}: {:?}", row.get(..60));
    }
    assert!(reader.commits.is_sorted());
}

#[tokio::test]
async fn a_stream_resumes_within_the_window_and_nowhere_else() {
    let fixture = Fixture::new("box_window").await;
    fixture.run("CREATE TABLE t (id int)").await;
    let mut reader = fixture.open(LogStart::Now).await.unwrap();
    let since = fixture.capture("t").await.unwrap().since;
    for id in 1..=5 {
        fixture.run(&format!("INSERT INTO t VALUES ({id})")).await;
    }
    reader.read(5).await;
    let seen = reader.commits.clone();
    let log = reader.stream.lineage().log;
    let at = |position| LogStart::At { log, position };
    let mut again = fixture.open(at(seen[2])).await.unwrap();
    again.read(2).await;
    assert_eq!(again.commits, seen[3..]);
    assert_eq!(again.stream.lineage().log, reader.stream.lineage().log);
    // Changes that the stream has not confirmed are kept, whatever position is passed.
    let now = fixture
        .outbox
        .retain(&fixture.database, seen[4])
        .await
        .unwrap();
    assert_eq!(now, seen[4]);
    assert!(fixture.open(at(since)).await.is_ok());
    reader.stream.confirm(seen[3]);
    drop(again);
    let kept = "SELECT count(*) FROM tidegate_outbox.change";
    fixture
        .outbox
        .retain(&fixture.database, seen[4])
        .await
        .unwrap();
    assert_eq!(fixture.number(kept).await, 1);
    let gone = fixture.open(at(since)).await;
    assert!(matches!(gone.err(), Some(LogError::Gone)));
    let later = fixture.open(at(LogPosition(now.0 + 1))).await;
    assert!(matches!(later.err(), Some(LogError::Gone)));
    let other = LogStart::At {
        log: LogIdentity(log.0 ^ 1),
        position: seen[4],
    };
    let other = fixture.open(other).await;
    assert!(matches!(other.err(), Some(LogError::Gone)));
    assert!(fixture.open(LogStart::Earliest).await.is_ok());
}

#[tokio::test]
async fn what_is_missing_to_an_administrator_is_named() {
    let fixture = Fixture::new("box_rights").await;
    fixture
        .run(
            "CREATE ROLE box_admin LOGIN PASSWORD 'service'; CREATE ROLE box_owner; \
             CREATE TABLE t (id int); ALTER TABLE t OWNER TO box_owner",
        )
        .await;
    let admin = superuser().with_login("box_admin", Secret::new("service"));
    let poor = Fixture::of("box_rights", admin, OutboxSettings::default()).await;
    for lacks in ["GRANT CREATE ON DATABASE", "GRANT \"box_owner\" TO"] {
        let refused = match poor.open(LogStart::Now).await {
            Ok(_) => poor.capture("t").await.map(drop),
            Err(error) => Err(error),
        };
        let Err(LogError::NotAllowed { remedy, .. }) = refused else {
            panic!("{refused:?}");
        };
        let sql = remedy.strip_prefix("run ").unwrap();
        assert!(sql.starts_with(lacks), "{remedy}");
        fixture.run(sql).await;
    }
    let mut reader = poor.open(LogStart::Now).await.unwrap();
    poor.capture("t").await.unwrap();
    fixture.run("INSERT INTO t VALUES (1)").await;
    reader.read(1).await;
    // A writer needs no privilege on the outbox, and has none.
    fixture
        .run(
            "CREATE ROLE box_writer; GRANT INSERT, SELECT, UPDATE ON t TO box_writer; \
             SET ROLE box_writer; INSERT INTO t VALUES (2); UPDATE t SET id = 3 WHERE id = 2",
        )
        .await;
    for denied in [
        "TABLE tidegate_outbox.change",
        "SELECT tidegate_outbox.advance()",
        "CREATE TEMP TABLE x (); CREATE TRIGGER x AFTER INSERT ON x \
         FOR EACH ROW EXECUTE FUNCTION tidegate_outbox.note('1')",
    ] {
        let error = fixture.sql.batch_execute(denied).await.unwrap_err();
        assert_eq!(error.code().unwrap().code(), "42501", "{denied}");
    }
    reader.read(2).await;
    assert_eq!(reader.rows.len(), 3);
}

#[tokio::test]
async fn default_privileges_do_not_apply_to_the_outbox() {
    let fixture = Fixture::new("box_private").await;
    fixture
        .run(
            "CREATE ROLE box_keeper; CREATE TABLE t (id int); \
             ALTER DEFAULT PRIVILEGES GRANT ALL ON SCHEMAS TO box_keeper WITH GRANT OPTION; \
             ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO box_keeper WITH GRANT OPTION; \
             ALTER DEFAULT PRIVILEGES GRANT ALL ON SEQUENCES TO box_keeper WITH GRANT OPTION; \
             ALTER DEFAULT PRIVILEGES GRANT ALL ON ROUTINES TO box_keeper WITH GRANT OPTION",
        )
        .await;
    let others = "SELECT count(*) FROM ( \
        SELECT nspacl AS acl, nspowner AS owner FROM pg_namespace WHERE nspname = 'tidegate_outbox' \
        UNION ALL SELECT relacl, relowner FROM pg_class WHERE relnamespace = 'tidegate_outbox'::regnamespace \
        UNION ALL SELECT proacl, proowner FROM pg_proc WHERE pronamespace = 'tidegate_outbox'::regnamespace \
        ) o, aclexplode(acl) a WHERE a.grantee <> o.owner";
    fixture.open(LogStart::Now).await.unwrap();
    assert_eq!(fixture.number(others).await, 0);
    // An earlier release made these grants, and the role that kept the outbox granted to others.
    fixture
        .run(
            "GRANT ALL ON SCHEMA tidegate_outbox TO box_keeper WITH GRANT OPTION; \
             GRANT ALL ON ALL TABLES IN SCHEMA tidegate_outbox TO box_keeper WITH GRANT OPTION; \
             SET ROLE box_keeper; GRANT SELECT ON tidegate_outbox.change TO PUBLIC; RESET ROLE",
        )
        .await;
    assert_ne!(fixture.number(others).await, 0);
    let mut reader = fixture.open(LogStart::Now).await.unwrap();
    assert_eq!(fixture.number(others).await, 0);
    // The triggers still write to the outbox.
    fixture.capture("t").await.unwrap();
    fixture.run("INSERT INTO t VALUES (1)").await;
    reader.read(1).await;
}

#[tokio::test]
async fn a_copy_of_a_database_is_another_log() {
    let fixture = Fixture::new("box_first").await;
    fixture.run("CREATE TABLE t (id int)").await;
    let reader = fixture.open(LogStart::Now).await.unwrap();
    fixture.capture("t").await.unwrap();
    fixture.run("INSERT INTO t VALUES (1)").await;
    let identity = reader.stream.lineage().log;
    drop((reader, fixture));
    let root = connect(&cluster().url("postgres")).await;
    let copy = "CREATE DATABASE box_second TEMPLATE box_first";
    // The copy succeeds as soon as the sessions of the first test database have ended.
    while root.batch_execute(copy).await.is_err() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let second = Fixture::of("box_second", superuser(), OutboxSettings::default()).await;
    let mut reader = second.open(LogStart::Earliest).await.unwrap();
    assert_ne!(reader.stream.lineage().log, identity);
    let since = second.capture("t").await.unwrap().since;
    assert!(since >= reader.stream.start());
    second.run("INSERT INTO t VALUES (2)").await;
    reader.read(1).await;
    assert_eq!(reader.rows.len(), 1);
    assert!(reader.rows[0].ends_with('2'), "{:?}", reader.rows);
}

#[tokio::test]
async fn nothing_stays_of_what_is_removed() {
    let fixture = Fixture::new("box_removal").await;
    let nothing = fixture
        .outbox
        .remove(&fixture.database, false)
        .await
        .unwrap();
    assert_eq!(nothing, OutboxRemoval::Done(None));
    fixture.run("CREATE TABLE t (id int)").await;
    let mut reader = fixture.open(LogStart::Now).await.unwrap();
    fixture.capture("t").await.unwrap();
    let status = fixture
        .outbox
        .status(&fixture.database)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(status.tables, ["public.t"]);
    assert_eq!(status.readers.len(), 1);
    let refused = fixture
        .outbox
        .remove(&fixture.database, false)
        .await
        .unwrap();
    assert_eq!(refused, OutboxRemoval::Streaming(status.readers));
    let removed = fixture
        .outbox
        .remove(&fixture.database, true)
        .await
        .unwrap();
    assert!(
        matches!(removed, OutboxRemoval::Done(Some(_))),
        "{removed:?}"
    );
    while reader.step().await.is_ok() {}
    let left = "SELECT count(*) FROM pg_trigger WHERE NOT tgisinternal";
    assert_eq!(fixture.number(left).await, 0);
    fixture.run("INSERT INTO t VALUES (1)").await;
}

#[tokio::test]
async fn who_only_calls_itself_a_reader_does_not_count() {
    let fixture = Fixture::new("box_readers").await;
    fixture
        .run("CREATE TABLE t (id int); CREATE ROLE box_forger LOGIN PASSWORD 'x'")
        .await;
    let reader = fixture.open(LogStart::Now).await.unwrap();
    fixture.capture("t").await.unwrap();
    let url: tokio_postgres::Config = cluster().url("box_readers").parse().unwrap();
    let mut forger = url;
    forger
        .user("box_forger")
        .password("x")
        .application_name("tidegate outbox reader");
    let (forger, connection) = forger.connect(tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    forger
        .batch_execute("SELECT pg_advisory_lock_shared(7133, 3)")
        .await
        .unwrap();
    let readers = async || {
        let status = fixture.outbox.status(&fixture.database).await.unwrap();
        status.unwrap().readers.len()
    };
    assert_eq!(readers().await, 1);
    drop(reader);
    let deadline = std::time::Instant::now() + Duration::from_secs(20);
    while readers().await > 0 {
        assert!(std::time::Instant::now() < deadline, "the reader stays");
        tokio::task::yield_now().await;
    }
    // No stream is open, so everything is deleted, whatever `application_name` other sessions have.
    fixture.run("INSERT INTO t VALUES (1)").await;
    fixture.outbox.abandon(&fixture.database).await.unwrap();
    let kept = "SELECT count(*) FROM tidegate_outbox.change";
    assert_eq!(fixture.number(kept).await, 0);
}
