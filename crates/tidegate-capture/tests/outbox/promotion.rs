//! Tests the outbox across the promotion of a standby.

use tidegate_capture::{Outbox, OutboxSettings};
use tidegate_changelog::{ChangeLog as _, LogError, LogStart};
use tidegate_embedded::{Cluster, Shutdown, testing};
use tidegate_sql::DatabaseName;
use tidegate_testkit::{caught_up, config, connect};
use tidegate_wire::Secret;

use super::{Fixture, superuser};

#[tokio::test]
async fn a_promotion_is_another_log() {
    let primary = Cluster::start(testing::settings()).await.unwrap();
    let sql = connect(&primary.url("postgres")).await;
    let create = "CREATE DATABASE box_promoted";
    sql.batch_execute(create).await.unwrap();
    let standby = primary.start_standby(testing::settings()).await.unwrap();
    let url = format!(
        "postgresql://postgres:{}@127.0.0.1:{},127.0.0.1:{}/postgres",
        primary.admin_password(),
        primary.port(),
        standby.port()
    );
    let outbox = Outbox::new(config(&url, "postgres"), None, OutboxSettings::default());
    let database = DatabaseName::new("box_promoted");
    let stream = outbox.open(&database, LogStart::Now).await.unwrap();
    let at = LogStart::At {
        log: stream.lineage().log,
        position: stream.start(),
    };
    drop(stream);
    drop(outbox.open(&database, at).await.unwrap());
    caught_up(&primary, &standby).await;
    primary.halt(Shutdown::Kill).await.unwrap();
    standby.promote().await.unwrap();
    let resumed = outbox.open(&database, at).await.map(drop);
    assert!(matches!(resumed, Err(LogError::Gone)), "{resumed:?}");
    let stream = outbox.open(&database, LogStart::Now).await.unwrap();
    let at = LogStart::At {
        log: stream.lineage().log,
        position: stream.start(),
    };
    drop(stream);
    drop(outbox.open(&database, at).await.unwrap());
    standby.stop().await.unwrap();
}

#[tokio::test]
async fn a_server_that_does_not_tell_its_timeline_has_no_outbox() {
    let fixture = Fixture::new("box_timeline").await;
    fixture
        .run(
            "CREATE ROLE box_blind LOGIN PASSWORD 'service'; \
             GRANT CREATE ON DATABASE box_timeline TO box_blind",
        )
        .await;
    let admin = superuser().with_login("box_blind", Secret::new("service"));
    let blind = Fixture::of("box_timeline", admin, OutboxSettings::default()).await;
    drop(blind.open(LogStart::Now).await.unwrap());
    fixture
        .run("REVOKE EXECUTE ON FUNCTION pg_walfile_name(pg_lsn) FROM PUBLIC")
        .await;
    let refused = blind.open(LogStart::Now).await.map(drop);
    let Err(LogError::NotAllowed { reason, .. }) = refused else {
        panic!("{refused:?}");
    };
    assert!(reason.contains("pg_walfile_name"), "{reason}");
}
