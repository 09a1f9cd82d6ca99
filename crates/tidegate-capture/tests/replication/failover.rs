//! Tests the change log across the promotion of a standby.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt as _, chown};
use std::path::Path;
use std::time::Duration;

use tidegate_capture::ReplicationSettings;
use tidegate_changelog::{ChangeLog as _, LogError, LogPosition};
use tidegate_embedded::{Cluster, Shutdown, testing};
use tidegate_testkit::{caught_up, config, connect, eventually, left_out, text};

use super::fixture::{Fixture, StreamReader};

const INSERT: &str = "SET synchronous_commit = on; INSERT INTO t VALUES";

/// A primary with a standby, and the log of a database that is read from whichever is the primary.
struct Pair {
    standby: Cluster,
    fixture: Fixture,
}

impl Pair {
    async fn new(name: &str) -> Self {
        let primary = Cluster::start(testing::settings()).await.unwrap();
        let standby = primary.start_standby(testing::settings()).await.unwrap();
        let (one, two) = (primary.port(), standby.port());
        let (hosts, password) = (
            format!("127.0.0.1:{one},127.0.0.1:{two}"),
            primary.admin_password(),
        );
        let url = format!("postgresql://postgres:{password}@{hosts}/postgres");
        let config = config(&url, "postgres");
        let primary = Box::leak(Box::new(primary));
        let settings = ReplicationSettings {
            advance_interval: Duration::ZERO,
            ..ReplicationSettings::default()
        };
        let fixture = Fixture::at(primary, config, name, settings).await;
        fixture.run("CREATE TABLE t (id int PRIMARY KEY)").await;
        Self { standby, fixture }
    }

    /// Gives the standby the primary's retention slot, as Patroni does with permanent slots.
    async fn copy_slot(&self) {
        caught_up(self.fixture.cluster, &self.standby).await;
        self.standby.halt(Shutdown::Fast).await.unwrap();
        let slots = |cluster: &Cluster| cluster.data_dir().join("data/pg_replslot");
        let (from, to) = (slots(self.fixture.cluster), slots(&self.standby));
        for slot in fs::read_dir(from).unwrap() {
            let slot = slot.unwrap();
            // The copies that streams use end in the number of a process.
            if slot.file_name().to_string_lossy().matches('_').count() == 1 {
                copy(&slot.path().join("state"), &to.join(slot.file_name()));
            }
        }
        self.standby.resume().await.unwrap();
    }

    async fn fail_over(&self) {
        self.fixture.cluster.halt(Shutdown::Kill).await.unwrap();
        self.standby.promote().await.unwrap();
    }

    async fn run_on_promoted(&self, sql: &str) {
        let session = connect(&self.standby.url(self.fixture.database.as_str())).await;
        session.batch_execute(sql).await.unwrap();
    }
}

/// Copies the file of a slot into a new folder with the owner of the folder's parent.
fn copy(state: &Path, folder: &Path) {
    fs::create_dir(folder).unwrap();
    let owner = fs::metadata(folder.parent().unwrap()).unwrap();
    let copied = folder.join("state");
    fs::copy(state, &copied).unwrap();
    for path in [folder, &copied] {
        chown(path, Some(owner.uid()), Some(owner.gid())).unwrap();
    }
}

#[tokio::test]
async fn a_position_is_good_after_a_promotion_if_the_new_primary_has_it() {
    let pair = Pair::new("log_failover").await;
    let fixture = &pair.fixture;
    let mut reader = StreamReader::new(fixture.open(None).await.unwrap());
    fixture.capture("t", true, false).await.unwrap();
    fixture.run(&format!("{INSERT} (1)")).await;
    fixture.run(&format!("{INSERT} (2)")).await;
    reader.read(2).await;
    let (before, seen) = (reader.stream.lineage().clone(), reader.commits.clone());
    assert!(before.ancestors.is_empty(), "{before:?}");
    drop(reader);
    pair.copy_slot().await;
    caught_up(fixture.cluster, &pair.standby).await;

    // The standby does not get this commit any more.
    let standby = connect(&pair.standby.admin_url()).await;
    let stop = "ALTER SYSTEM SET primary_conninfo = ''";
    standby.batch_execute(stop).await.unwrap();
    standby
        .batch_execute("SELECT pg_reload_conf()")
        .await
        .unwrap();
    while text(&standby, "SELECT count(*)::text FROM pg_stat_wal_receiver").await != "0" {
        tokio::task::yield_now().await;
    }
    let mut reader = StreamReader::new(fixture.open(Some((before.log, seen[1]))).await.unwrap());
    fixture.run(&format!("{INSERT} (3)")).await;
    reader.read(1).await;
    let phantom = reader.commits[0];
    drop(reader);
    pair.fail_over().await;
    // The new primary's log is longer than the phantom's position.
    pair.run_on_promoted("INSERT INTO t SELECT generate_series(10, 2000)")
        .await;
    let now = text(&standby, "SELECT pg_current_wal_insert_lsn()::text").await;
    assert!(now.parse::<LogPosition>().unwrap() > phantom);

    let mut reader = StreamReader::new(fixture.open(Some((before.log, seen[0]))).await.unwrap());
    let after = reader.stream.lineage().clone();
    assert_ne!(after.log, before.log);
    assert!(after.contains(before.log, seen[1]));
    reader.read(2).await;
    assert_eq!(reader.commits[0], seen[1]);
    assert_eq!(
        reader.rows.len(),
        1992,
        "(2), and the rows of the new primary"
    );
    for (log, position) in [(before.log, phantom), (after.log, LogPosition(1))] {
        let gone = fixture.open(Some((log, position))).await;
        assert!(matches!(gone, Err(LogError::Gone)), "{position}");
    }
}

#[tokio::test]
async fn without_the_slot_nothing_resumes_after_a_promotion() {
    let pair = Pair::new("log_no_slot").await;
    let fixture = &pair.fixture;
    let reader = StreamReader::new(fixture.open(None).await.unwrap());
    fixture.capture("t", true, false).await.unwrap();
    let (log, start) = (reader.stream.lineage().log, reader.stream.start());
    drop(reader);
    caught_up(fixture.cluster, &pair.standby).await;
    pair.fail_over().await;
    let gone = fixture.open(Some((log, start))).await;
    assert!(matches!(gone, Err(LogError::Gone)));
    let mut reader = StreamReader::new(fixture.open(None).await.unwrap());
    pair.run_on_promoted("SET synchronous_commit = on; INSERT INTO t VALUES (4)")
        .await;
    reader.read(1).await;
    assert_eq!(reader.rows.len(), 1);
}

/// The file of the log that the retention slot begins with, without the timeline.
async fn first_file(fixture: &Fixture) -> String {
    let file = "SELECT substr(pg_walfile_name(restart_lsn), 9) FROM pg_replication_slots \
                WHERE slot_name = 'tidegate_' || (SELECT oid FROM pg_database \
                WHERE datname = current_database())";
    fixture.value(file).await
}

/// A standby that joined after the slot's beginning has no log from there.
#[tokio::test]
async fn a_copied_slot_whose_log_the_standby_lacks_is_made_again() {
    let pair = Pair::new("log_lacking").await;
    let fixture = &pair.fixture;
    let mut reader = StreamReader::new(fixture.open(None).await.unwrap());
    fixture.capture("t", true, false).await.unwrap();
    fixture.run(&format!("{INSERT} (1)")).await;
    reader.read(1).await;
    let (log, seen) = (reader.stream.lineage().log, reader.commits[0]);
    drop(reader);
    let file = first_file(fixture).await;
    for command in ["SELECT pg_switch_wal()", "CHECKPOINT"] {
        fixture.run(command).await;
    }
    pair.copy_slot().await;
    caught_up(fixture.cluster, &pair.standby).await;
    let standby = connect(&pair.standby.admin_url()).await;
    standby.batch_execute("CHECKPOINT").await.unwrap();
    let name = pair.standby.data_dir().join("data/pg_wal");
    let removed = fs::remove_file(name.join(format!("00000001{file}")));
    // The standby may have removed it when it was stopped.
    assert!(removed.is_ok() || removed.is_err_and(|error| error.kind() == ErrorKind::NotFound));
    pair.fail_over().await;

    let mut broken = fixture.open(Some((log, seen))).await.unwrap();
    let failed = broken.next(&mut Vec::new()).await;
    assert!(matches!(failed, Err(LogError::Gone)), "{failed:?}");
    let gone = fixture.open(Some((log, seen))).await;
    assert!(matches!(gone, Err(LogError::Gone)));
    let mut reader = StreamReader::new(fixture.open(None).await.unwrap());
    pair.run_on_promoted("SET synchronous_commit = on; INSERT INTO t VALUES (2)")
        .await;
    reader.read(1).await;
    assert_eq!(reader.rows.len(), 1);
}

/// Makes the standby fit for copies of slots (PostgreSQL, "Replication Slot Synchronization").
async fn prepare_slot_synchronization(pair: &Pair) {
    let slot = "SELECT pg_create_physical_replication_slot('standby', true)";
    pair.fixture.run(slot).await;
    let standby = connect(&pair.standby.admin_url()).await;
    let conninfo = text(&standby, "SELECT current_setting('primary_conninfo')").await;
    for setting in [
        "primary_slot_name = 'standby'".to_owned(),
        "hot_standby_feedback = on".to_owned(),
        "sync_replication_slots = on".to_owned(),
        format!(
            "primary_conninfo = '{} dbname=postgres'",
            conninfo.replace('\'', "''")
        ),
    ] {
        let set = format!("ALTER SYSTEM SET {setting}");
        standby.batch_execute(&set).await.unwrap();
    }
    standby
        .batch_execute("SELECT pg_reload_conf()")
        .await
        .unwrap();
    let is_used = "SELECT active::text FROM pg_replication_slots WHERE slot_name = 'standby'";
    eventually("the standby uses its slot", async || {
        pair.fixture.value(is_used).await == "true"
    })
    .await;
}

#[tokio::test]
async fn from_version_17_on_a_standby_copies_the_slot() {
    let pair = Pair::new("log_synced").await;
    let fixture = &pair.fixture;
    let major = fixture.cluster.version().major;
    if major < 17 {
        let reason = format!("PostgreSQL {major} copies no slots to standbys");
        left_out("slot_copies", &reason);
        return;
    }
    prepare_slot_synchronization(&pair).await;
    let mut reader = StreamReader::new(fixture.open(None).await.unwrap());
    fixture.capture("t", true, false).await.unwrap();
    let standby = connect(&pair.standby.admin_url()).await;
    let copied = "SELECT count(*)::text FROM pg_replication_slots WHERE synced AND NOT temporary";
    let mut id = 0;
    // The slot can be copied when it has moved past the point at which the standby began.
    eventually("the standby has a copy", async || {
        id += 1;
        fixture.run(&format!("{INSERT} ({id}); CHECKPOINT")).await;
        reader.read(id).await;
        let reached = reader.commits[id - 1];
        fixture
            .log
            .retain(&fixture.database, reached)
            .await
            .unwrap();
        caught_up(fixture.cluster, &pair.standby).await;
        text(&standby, copied).await == "1"
    })
    .await;
    fixture.run(&format!("{INSERT} (-1)")).await;
    reader.read(id + 1).await;
    let (log, seen) = (reader.stream.lineage().log, reader.commits.clone());
    drop(reader);
    caught_up(fixture.cluster, &pair.standby).await;
    pair.fail_over().await;
    let mut reader = StreamReader::new(fixture.open(Some((log, seen[id - 1]))).await.unwrap());
    reader.read(1).await;
    assert_eq!(reader.commits, seen[id..]);
    assert!(reader.stream.lineage().contains(log, seen[id]));
}
