//! Tests the markers by which comparisons are skipped, and the comparison without roles.

use tidegate_catalog::WatchOutcome;
use tidegate_catalog::load::{ChangeMarkers, change_markers};
use tidegate_embedded::Cluster;
use tidegate_embedded::testing;
use tidegate_sql::{DatabaseName, QueryOptions};
use tidegate_testkit::{connect, eventually};

use crate::fixture::Fixture;

async fn read(fixture: &Fixture, databases: &[DatabaseName]) -> ChangeMarkers {
    let options = QueryOptions::default();
    change_markers(&*fixture.control, databases, &options)
        .await
        .unwrap()
}

#[tokio::test]
async fn signs_change_with_what_they_stand_for() {
    // Other tests would change the markers of the cluster.
    let cluster = Cluster::start(testing::settings()).await.unwrap();
    let fixture = Fixture::on(&cluster, "change_markers", "create table t (id int)").await;
    let names = [fixture.database.clone(), DatabaseName::new("postgres")];
    let [here, other] = &names;
    // The session has reported what it has done when it ends.
    let run = async |sql: &str| {
        let client = connect(&cluster.url("change_markers")).await;
        client.batch_execute(sql).await.unwrap();
    };
    run("select 1").await;
    let before = read(&fixture, &names).await;
    assert_eq!(read(&fixture, &names).await.of(here), before.of(here));

    run("create table u (id int)").await;
    eventually("the definition shows", async || {
        read(&fixture, &names).await.of(here).counts != before.of(here).counts
    })
    .await;
    let defined = read(&fixture, &names).await;
    assert_ne!(defined.roles.snapshot, before.roles.snapshot);
    assert_eq!(defined.of(other).counts, before.of(other).counts);
    assert_eq!(defined.roles.counts, before.roles.counts);

    for sql in [
        "create role signs_a",
        "create role signs_b in role signs_a",
        "revoke signs_a from signs_b",
        "alter role signs_a set work_mem = '1MB'",
    ] {
        let before = read(&fixture, &names).await;
        run(sql).await;
        eventually(sql, async || {
            read(&fixture, &names).await.roles.counts != before.roles.counts
        })
        .await;
    }
    drop(fixture);
    cluster.stop().await.unwrap();
}

#[tokio::test]
async fn definitions_are_compared_without_roles() {
    let fixture = Fixture::new(
        "signs_definitions",
        "create role signs_reader; create role signs_group; create table t (id int); \
         grant select on t to signs_group",
    )
    .await;
    let options = QueryOptions::default();
    let watch = async || {
        fixture.catalogs.tick();
        let watched = fixture
            .catalogs
            .watch_definitions(&fixture.database, &options);
        watched.await.unwrap()
    };
    let login = fixture.login("signs_reader");
    assert!(fixture.seen_by(&login, "public").await.is_some());
    watch().await;
    assert_eq!(watch().await, WatchOutcome::Same);
    fixture.run("grant select on t to signs_reader").await;
    assert_eq!(watch().await, WatchOutcome::Changed);
    let schema = fixture.seen_by(&login, "public").await.unwrap();
    assert!(schema.find("t").is_some());
    fixture
        .run("revoke usage on schema public from public")
        .await;
    assert_eq!(watch().await, WatchOutcome::Changed);
    assert!(fixture.seen_by(&login, "public").await.is_none());
    fixture.run("grant usage on schema public to public").await;
    assert_eq!(watch().await, WatchOutcome::Changed);
    // A membership belongs to the cluster.
    fixture.run("grant signs_group to signs_reader").await;
    assert_eq!(watch().await, WatchOutcome::Same);
    let watched = fixture.catalogs.watch(&fixture.database, &options);
    assert_eq!(watched.await.unwrap(), WatchOutcome::Changed);
}
