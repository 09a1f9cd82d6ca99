//! Schemas are replaced when what they were made of changes.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tidegate_catalog::{Catalogs, Telling, Watched};
use tidegate_embedded::{Cluster, testing};
use tidegate_sql::Terms;

use crate::counting::Counting;
use crate::stage::Stage;

pub(crate) async fn watch(stage: &Stage) -> Watched {
    stage.catalogs.tick();
    let terms = Terms::default();
    stage.catalogs.watch(&stage.database, &terms).await.unwrap()
}

/// What each kind of change is noticed as.
async fn assert_noticed(stage: &Stage, role: &str, changes: &[&str]) {
    let login = stage.login(role);
    let mut before = stage.seen_by(&login, "public").await;
    for change in changes {
        stage.run(change).await;
        assert_eq!(watch(stage).await, Watched::Changed, "{change}");
        let after = stage.seen_by(&login, "public").await;
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
    let stage = Stage::new(
        "fresh_definitions",
        "create role fresh_reader; create table a (id int primary key); grant all on a to fresh_reader",
    )
    .await;
    assert_noticed(
        &stage,
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
    let stage = Stage::new(
        "fresh_rights",
        "create role fresh_some; create role fresh_others; create table a (id int, b int); \
         create table c (id int); grant select on c to fresh_some; grant select, update on c to fresh_others",
    )
    .await;
    assert_noticed(
        &stage,
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
    // Of its own, because a role that another test makes is a change.
    let cluster = Cluster::start(testing::settings()).await.unwrap();
    let sql = "create table a (id int primary key)";
    let stage = Stage::on(&cluster, "fresh_same", sql).await;
    let before = stage.public().await;
    for work in [
        "insert into a select generate_series(1, 100)",
        "create temp table scratch (id int primary key, t text check (t <> ''))",
        "drop table scratch",
        "analyze a",
        "vacuum a",
    ] {
        stage.run(work).await;
        assert_eq!(watch(&stage).await, Watched::Same, "{work}");
    }
    // What only looks like a change gives the same schema.
    stage.run("truncate a; create schema elsewhere").await;
    assert_eq!(watch(&stage).await, Watched::Changed);
    assert!(Arc::ptr_eq(&before, &stage.public().await));
    drop(stage);
    cluster.stop().await.unwrap();
}

#[tokio::test]
async fn roles_that_see_the_same_share_it() {
    let stage = Stage::new(
        "fresh_shared",
        "create role fresh_one; create role fresh_two; create role fresh_three; \
         create table a (id int); grant select on a to fresh_one, fresh_two; grant insert on a to fresh_three",
    )
    .await;
    let [one, two, three] = ["fresh_one", "fresh_two", "fresh_three"].map(|role| stage.login(role));
    let one = stage.seen_by(&one, "public").await.unwrap();
    assert!(Arc::ptr_eq(
        &one,
        &stage.seen_by(&two, "public").await.unwrap()
    ));
    let three = stage.seen_by(&three, "public").await.unwrap();
    assert!(!Arc::ptr_eq(&one, &three));
    assert_ne!(one.version(), three.version());
}

#[tokio::test]
async fn a_definition_through_this_node_is_seen_by_the_next_request() {
    let stage = Stage::new("fresh_own", "create table a (id int)").await;
    let before = stage.public().await;
    stage.run("create table b (id int)").await;
    // Nobody has looked yet.
    assert!(Arc::ptr_eq(&before, &stage.public().await));
    stage.definitions.define();
    let after = stage.public().await;
    assert!(after.find("b").is_some());
    // Who holds the old one keeps it.
    assert!(before.find("b").is_none());
}

#[tokio::test]
async fn what_is_counted_depends_on_whether_the_database_tells() {
    let stage = Stage::new("fresh_undecided", "create table a (id int)").await;
    stage.public().await;
    stage.run("create table b (id int)").await;
    stage.definitions.run();
    assert!(stage.public().await.find("b").is_some());
    stage.catalogs.rely(&stage.database, Telling::Always);
    stage.public().await;
    stage.run("create table c (id int)").await;
    stage.definitions.run();
    assert!(stage.public().await.find("c").is_none());
    stage.definitions.define();
    assert!(stage.public().await.find("c").is_some());
}

#[tokio::test]
async fn a_definition_that_was_noticed_before_it_was_counted_is_seen_too() {
    let stage = Stage::new("fresh_race", "create table a (id int)").await;
    let executor = Counting::of(&stage);
    let catalogs = Catalogs::new(executor.clone(), stage.definitions.clone());
    let owner = stage.owner();
    let terms = Terms::default();
    catalogs.schema(&owner, "public", &terms).await.unwrap();
    stage.run("create table b (id int)").await;
    catalogs.tick();
    executor.broken_loads.store(true, Ordering::Relaxed);
    catalogs.watch(&stage.database, &terms).await.unwrap_err();
    executor.broken_loads.store(false, Ordering::Relaxed);
    stage.definitions.define();
    let found = catalogs.schema(&owner, "public", &terms).await.unwrap();
    assert!(found.unwrap().find("b").is_some());
}

#[tokio::test]
async fn many_at_once_load_once() {
    let stage = Stage::new("fresh_once", "create table a (id int)").await;
    let executor = Counting::of(&stage);
    let catalogs = Arc::new(Catalogs::new(executor.clone(), Arc::new(())));
    let requests = (0..50).map(|_| {
        let (catalogs, owner) = (catalogs.clone(), stage.owner());
        tokio::spawn(async move {
            let found = catalogs.schema(&owner, "public", &Terms::default()).await;
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
async fn a_failure_keeps_the_old_one_and_is_told_until_it_is_over() {
    let stage = Stage::new("fresh_failure", "create table a (id int)").await;
    let executor = Counting::of(&stage);
    let catalogs = Catalogs::new(executor.clone(), stage.definitions.clone());
    let (owner, terms) = (stage.owner(), Terms::default());
    let old = catalogs
        .schema(&owner, "public", &terms)
        .await
        .unwrap()
        .unwrap();
    stage.run("create table b (id int)").await;
    executor.broken.store(true, Ordering::Relaxed);
    catalogs.tick();
    catalogs.watch(&stage.database, &terms).await.unwrap_err();
    assert_eq!(catalogs.failing(), std::slice::from_ref(&stage.database));
    // Also when the definition came through this node.
    stage.definitions.define();
    let kept = catalogs
        .schema(&owner, "public", &terms)
        .await
        .unwrap()
        .unwrap();
    assert!(Arc::ptr_eq(&old, &kept));
    // What was never loaded cannot be kept.
    catalogs
        .schema(&stage.login("postgres"), "other", &terms)
        .await
        .unwrap_err();
    executor.broken.store(false, Ordering::Relaxed);
    catalogs.tick();
    assert_eq!(
        catalogs.watch(&stage.database, &terms).await.unwrap(),
        Watched::Changed
    );
    assert!(catalogs.failing().is_empty());
    let new = catalogs
        .schema(&owner, "public", &terms)
        .await
        .unwrap()
        .unwrap();
    assert!(new.find("b").is_some());
}

#[tokio::test]
async fn only_databases_in_use_are_watched_and_come_back_fresh() {
    let stage = Stage::new("fresh_use", "create table a (id int)").await;
    assert!(stage.catalogs.watched().is_empty());
    stage.public().await;
    assert_eq!(
        stage.catalogs.watched(),
        std::slice::from_ref(&stage.database)
    );
    for _ in 0..60 {
        stage.catalogs.tick();
    }
    assert!(stage.catalogs.watched().is_empty());
    stage.run("create table b (id int)").await;
    assert!(stage.public().await.find("b").is_some());
    assert_eq!(
        stage.catalogs.watched(),
        std::slice::from_ref(&stage.database)
    );
}

#[tokio::test]
async fn a_database_that_is_gone_is_forgotten() {
    let stage = Stage::new("fresh_gone", "create table a (id int)").await;
    stage.public().await;
    stage.control.close(&stage.database);
    stage.run("set application_name to 'the last'").await;
    let cluster = tidegate_embedded::testing::cluster();
    let admin = tidegate_testkit::connect(&cluster.admin_url()).await;
    admin
        .batch_execute("drop database fresh_gone with (force)")
        .await
        .unwrap();
    stage.catalogs.tick();
    let watched = stage
        .catalogs
        .watch(&stage.database, &Terms::default())
        .await;
    watched.unwrap_err();
    assert!(stage.catalogs.watched().is_empty() && stage.catalogs.failing().is_empty());
}

/// On what a policy calls it depends how a query is run.
#[tokio::test]
async fn policies_are_noticed() {
    let stage = Stage::new(
        "fresh_policies",
        "create role fresh_guarded; create table a (id int); grant select on a to fresh_guarded; \
         create function own() returns int language sql stable as 'select 1'; \
         alter table a enable row level security; create policy p on a using (true)",
    )
    .await;
    assert_noticed(
        &stage,
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

/// A change is not loaded for all roles at once, but no role is served what was before it.
#[tokio::test]
async fn of_many_roles_a_few_are_loaded_ahead_and_the_others_when_they_ask() {
    let stage = Stage::new(
        "fresh_many",
        "create table a (id int); grant select on a to public; \
         do $$ begin for n in 1..20 loop \
             execute format('create role fresh_many_%s; create table own_%1$s (id int); \
                             grant select on own_%1$s to fresh_many_%1$s', n); \
         end loop; end $$",
    )
    .await;
    let executor = Counting::of(&stage);
    let catalogs = Catalogs::new(executor.clone(), Arc::new(()));
    let terms = Terms::default();
    let logins = (1..=20).map(|n| stage.login(&format!("fresh_many_{n}")));
    let logins: Vec<_> = logins.collect();
    for login in &logins {
        catalogs.schema(login, "public", &terms).await.unwrap();
    }
    assert_eq!(executor.loads(), 20);
    stage
        .run("create table b (id int); grant select on b to public")
        .await;
    catalogs.tick();
    let watched = catalogs.watch(&stage.database, &terms).await.unwrap();
    assert_eq!(watched, Watched::Changed);
    assert_eq!(executor.loads(), 28);
    for login in &logins {
        let found = catalogs.schema(login, "public", &terms).await.unwrap();
        assert!(found.unwrap().find("b").is_some(), "{}", login.role);
    }
    assert_eq!(executor.loads(), 40);
}
