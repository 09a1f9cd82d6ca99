//! Tests that schemas are replaced when a definition changes.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tidegate_catalog::{CatalogCache, DdlVisibility, WatchOutcome};
use tidegate_embedded::{Cluster, testing};
use tidegate_sql::QueryOptions;

use crate::counting::Counting;
use crate::fixture::Fixture;

pub(crate) async fn watch(fixture: &Fixture) -> WatchOutcome {
    fixture.catalogs.tick();
    let options = QueryOptions::default();
    fixture
        .catalogs
        .watch(&fixture.database, &options)
        .await
        .unwrap()
}

/// Checks that the cache detects each of the changes.
async fn assert_noticed(fixture: &Fixture, role: &str, changes: &[&str]) {
    let login = fixture.login(role);
    let mut before = fixture.seen_by(&login, "public").await;
    for change in changes {
        fixture.run(change).await;
        assert_eq!(watch(fixture).await, WatchOutcome::Changed, "{change}");
        let after = fixture.seen_by(&login, "public").await;
        let version = |schema: &Option<Arc<_>>| {
            schema
                .as_ref()
                .map(|schema: &Arc<tidegate_catalog::Schema>| schema.version())
        };
        assert_ne!(version(&before), version(&after), "{change}");
        before = after;
    }
}

#[tokio::test]
async fn definitions_are_noticed() {
    let fixture = Fixture::new(
        "fresh_definitions",
        "create role fresh_reader; create table a (id int primary key); grant all on a to fresh_reader",
    )
    .await;
    assert_noticed(
        &fixture,
        "fresh_reader",
        &[
            "alter table a add b int",
            "alter table a rename b to c",
            "alter table a alter c set not null",
            "alter table a alter c set default 3",
            "alter table a alter c type text using 'x'",
            "comment on table a is 'x'",
            "comment on column a.c is 'y'",
            "alter table a add unique (c)",
            "create view v as select id from a; grant all on v to fresh_reader",
            "create or replace view v as select id from a limit 1",
            "create type mood as enum ('a'); alter table a add m mood",
            "alter type mood add value 'b'",
            "create domain d as int; alter table a add d d",
            "alter domain d set not null",
            "alter table a drop column d",
            "drop view v",
            "alter table a rename to z",
            "drop table z",
            "drop schema public cascade",
        ],
    )
    .await;
}

#[tokio::test]
async fn rights_are_noticed() {
    let fixture = Fixture::new(
        "fresh_rights",
        "create role fresh_some; create role fresh_others; create table a (id int, b int); \
         create table c (id int); grant select on c to fresh_some; grant select, update on c to fresh_others",
    )
    .await;
    assert_noticed(
        &fixture,
        "fresh_some",
        &[
            "grant select (id) on a to fresh_some",
            "grant update on a to fresh_some",
            "revoke update on a from fresh_some",
            "grant fresh_others to fresh_some",
            "revoke fresh_others from fresh_some",
            "grant select on a to public",
            "alter table a enable row level security",
            "alter role fresh_some bypassrls",
            "alter table c owner to fresh_some",
            "alter role fresh_some superuser",
            "alter role fresh_some nosuperuser",
            "revoke usage on schema public from public",
        ],
    )
    .await;
}

#[tokio::test]
async fn what_changes_no_definition_changes_no_schema() {
    // The test needs a cluster of its own, because roles that other tests create count as changes.
    let cluster = Cluster::start(testing::settings()).await.unwrap();
    let sql = "create table a (id int primary key)";
    let fixture = Fixture::on(&cluster, "fresh_same", sql).await;
    let before = fixture.public().await;
    for work in [
        "insert into a select generate_series(1, 100)",
        "create temp table scratch (id int primary key, t text check (t <> ''))",
        "drop table scratch",
        "analyze a",
        "vacuum a",
    ] {
        fixture.run(work).await;
        assert_eq!(watch(&fixture).await, WatchOutcome::Same, "{work}");
    }
    // These statements change the fingerprint, but not the schema.
    fixture.run("truncate a; create schema elsewhere").await;
    assert_eq!(watch(&fixture).await, WatchOutcome::Changed);
    assert!(Arc::ptr_eq(&before, &fixture.public().await));
    drop(fixture);
    cluster.stop().await.unwrap();
}

#[tokio::test]
async fn roles_that_see_the_same_share_it() {
    let fixture = Fixture::new(
        "fresh_shared",
        "create role fresh_one; create role fresh_two; create role fresh_three; \
         create table a (id int); grant select on a to fresh_one, fresh_two; grant insert on a to fresh_three",
    )
    .await;
    let [one, two, three] =
        ["fresh_one", "fresh_two", "fresh_three"].map(|role| fixture.login(role));
    let one = fixture.seen_by(&one, "public").await.unwrap();
    assert!(Arc::ptr_eq(
        &one,
        &fixture.seen_by(&two, "public").await.unwrap()
    ));
    let three = fixture.seen_by(&three, "public").await.unwrap();
    assert!(!Arc::ptr_eq(&one, &three));
    assert_ne!(one.version(), three.version());
}

#[tokio::test]
async fn a_definition_through_this_node_is_seen_by_the_next_request() {
    let fixture = Fixture::new("fresh_own", "create table a (id int)").await;
    let before = fixture.public().await;
    fixture.run("create table b (id int)").await;
    // The old schema is still served, because the fingerprint has not been compared yet.
    assert!(Arc::ptr_eq(&before, &fixture.public().await));
    fixture.definitions.define();
    let after = fixture.public().await;
    assert!(after.find("b").is_some());
    // The schema that a request holds does not change.
    assert!(before.find("b").is_none());
}

#[tokio::test]
async fn what_is_counted_depends_on_whether_the_database_tells() {
    let fixture = Fixture::new("fresh_undecided", "create table a (id int)").await;
    fixture.public().await;
    fixture.run("create table b (id int)").await;
    fixture.definitions.run();
    assert!(fixture.public().await.find("b").is_some());
    fixture
        .catalogs
        .set_visibility(&fixture.database, DdlVisibility::Always);
    fixture.public().await;
    fixture.run("create table c (id int)").await;
    fixture.definitions.run();
    assert!(fixture.public().await.find("c").is_none());
    fixture.definitions.define();
    assert!(fixture.public().await.find("c").is_some());
}

#[tokio::test]
async fn a_definition_that_was_noticed_before_it_was_counted_is_seen_too() {
    let fixture = Fixture::new("fresh_race", "create table a (id int)").await;
    let executor = Counting::of(&fixture);
    let catalogs = CatalogCache::new(executor.clone(), fixture.definitions.clone());
    let owner = fixture.owner();
    let options = QueryOptions::default();
    catalogs.schema(&owner, "public", &options).await.unwrap();
    fixture.run("create table b (id int)").await;
    catalogs.tick();
    executor.broken_loads.store(true, Ordering::Relaxed);
    catalogs
        .watch(&fixture.database, &options)
        .await
        .unwrap_err();
    executor.broken_loads.store(false, Ordering::Relaxed);
    fixture.definitions.define();
    let found = catalogs.schema(&owner, "public", &options).await.unwrap();
    assert!(found.unwrap().find("b").is_some());
}

#[tokio::test]
async fn many_at_once_load_once() {
    let fixture = Fixture::new("fresh_once", "create table a (id int)").await;
    let executor = Counting::of(&fixture);
    let catalogs = Arc::new(CatalogCache::new(executor.clone(), Arc::new(())));
    let requests = (0..50).map(|_| {
        let (catalogs, owner) = (catalogs.clone(), fixture.owner());
        tokio::spawn(async move {
            let found = catalogs
                .schema(&owner, "public", &QueryOptions::default())
                .await;
            assert!(found.unwrap().is_some());
        })
    });
    for request in requests.collect::<Vec<_>>() {
        request.await.unwrap();
    }
    assert_eq!(executor.loads(), 1);
    assert!(executor.comparisons() <= 2, "{}", executor.comparisons());
}

#[tokio::test]
async fn a_failed_reload_keeps_the_schema_and_is_reported_until_it_succeeds() {
    let fixture = Fixture::new("fresh_failure", "create table a (id int)").await;
    let executor = Counting::of(&fixture);
    let catalogs = CatalogCache::new(executor.clone(), fixture.definitions.clone());
    let (owner, options) = (fixture.owner(), QueryOptions::default());
    let old = catalogs
        .schema(&owner, "public", &options)
        .await
        .unwrap()
        .unwrap();
    fixture.run("create table b (id int)").await;
    executor.broken.store(true, Ordering::Relaxed);
    catalogs.tick();
    catalogs
        .watch(&fixture.database, &options)
        .await
        .unwrap_err();
    assert_eq!(catalogs.failing(), std::slice::from_ref(&fixture.database));
    // The old schema is also served after a definition that was made through this node.
    fixture.definitions.define();
    let kept = catalogs
        .schema(&owner, "public", &options)
        .await
        .unwrap()
        .unwrap();
    assert!(Arc::ptr_eq(&old, &kept));
    // There is no earlier version of a schema that was never loaded.
    catalogs
        .schema(&fixture.login("postgres"), "other", &options)
        .await
        .unwrap_err();
    executor.broken.store(false, Ordering::Relaxed);
    catalogs.tick();
    assert_eq!(
        catalogs.watch(&fixture.database, &options).await.unwrap(),
        WatchOutcome::Changed
    );
    assert!(catalogs.failing().is_empty());
    let new = catalogs
        .schema(&owner, "public", &options)
        .await
        .unwrap()
        .unwrap();
    assert!(new.find("b").is_some());
}

#[tokio::test]
async fn only_databases_in_use_are_watched_and_come_back_fresh() {
    let fixture = Fixture::new("fresh_use", "create table a (id int)").await;
    assert!(fixture.catalogs.watched().is_empty());
    fixture.public().await;
    assert_eq!(
        fixture.catalogs.watched(),
        std::slice::from_ref(&fixture.database)
    );
    for _ in 0..75 {
        fixture.catalogs.tick();
    }
    assert!(fixture.catalogs.watched().is_empty());
    fixture.run("create table b (id int)").await;
    assert!(fixture.public().await.find("b").is_some());
    assert_eq!(
        fixture.catalogs.watched(),
        std::slice::from_ref(&fixture.database)
    );
}

#[tokio::test]
async fn a_database_that_is_gone_is_forgotten() {
    let fixture = Fixture::new("fresh_gone", "create table a (id int)").await;
    fixture.public().await;
    fixture.control.close(&fixture.database);
    fixture.run("set application_name to 'the last'").await;
    let cluster = tidegate_embedded::testing::cluster();
    let admin = tidegate_testkit::connect(&cluster.admin_url()).await;
    admin
        .batch_execute("drop database fresh_gone with (force)")
        .await
        .unwrap();
    fixture.catalogs.tick();
    let watched = fixture
        .catalogs
        .watch(&fixture.database, &QueryOptions::default())
        .await;
    watched.unwrap_err();
    assert!(fixture.catalogs.watched().is_empty() && fixture.catalogs.failing().is_empty());
}

/// A policy counts, because the functions that it calls decide in which transaction a query runs.
#[tokio::test]
async fn policies_are_noticed() {
    let fixture = Fixture::new(
        "fresh_policies",
        "create role fresh_guarded; create table a (id int); grant select on a to fresh_guarded; \
         create function own() returns int language sql stable as 'select 1'; \
         alter table a enable row level security; create policy p on a using (true)",
    )
    .await;
    assert_noticed(
        &fixture,
        "fresh_guarded",
        &[
            "create policy q on a using (own() = 1)",
            "alter policy q on a using (id > 0)",
            "alter policy q on a using (own() = 1)",
            "drop policy q on a",
        ],
    )
    .await;
}

/// After a change, some roles' schemas are loaded ahead and the others on request. No role gets a
/// stale schema.
#[tokio::test]
async fn of_many_roles_a_few_are_loaded_ahead_and_the_others_when_they_ask() {
    let fixture = Fixture::new(
        "fresh_many",
        "create table a (id int); grant select on a to public; \
         do $$ begin for n in 1..20 loop \
             execute format('create role fresh_many_%s; create table own_%1$s (id int); \
                             grant select on own_%1$s to fresh_many_%1$s', n); \
         end loop; end $$",
    )
    .await;
    let executor = Counting::of(&fixture);
    let catalogs = CatalogCache::new(executor.clone(), Arc::new(()));
    let options = QueryOptions::default();
    let logins = (1..=20).map(|n| fixture.login(&format!("fresh_many_{n}")));
    let logins: Vec<_> = logins.collect();
    for login in &logins {
        catalogs.schema(login, "public", &options).await.unwrap();
    }
    assert_eq!(executor.loads(), 20);
    fixture
        .run("create table b (id int); grant select on b to public")
        .await;
    catalogs.tick();
    let watched = catalogs.watch(&fixture.database, &options).await.unwrap();
    assert_eq!(watched, WatchOutcome::Changed);
    assert_eq!(executor.loads(), 28);
    for login in &logins {
        let found = catalogs.schema(login, "public", &options).await.unwrap();
        assert!(found.unwrap().find("b").is_some(), "{}", login.role);
    }
    assert_eq!(executor.loads(), 40);
}
