//! Tests that roles with the same privileges share what was loaded for one of them.

use std::collections::BTreeSet;
use std::sync::Arc;

use tidegate_catalog::load::{self, Fingerprint, Roles, RolesChange};
use tidegate_catalog::{CatalogCache, Schema, WatchOutcome};
use tidegate_embedded::{Cluster, testing};
use tidegate_sql::{Login, QueryOptions};
use tidegate_testkit::connect;

use crate::counting::Counting;
use crate::fixture::Fixture;
use crate::fresh::watch;

async fn seen(catalogs: &CatalogCache, login: &Login) -> Option<Arc<Schema>> {
    let found = catalogs
        .schema(login, "public", &QueryOptions::default())
        .await;
    found.unwrap()
}

/// The columns that a role sees in the schema `public`, as `table.column`.
async fn columns(fixture: &Fixture, role: &str) -> BTreeSet<String> {
    let Some(schema) = fixture.seen_by(&fixture.login(role), "public").await else {
        return BTreeSet::new();
    };
    let mut columns = BTreeSet::new();
    for (_, relation) in schema.relations() {
        let names = relation.columns.iter();
        columns.extend(names.map(|column| format!("{}.{}", relation.name, column.name)));
    }
    columns
}

/// Makes a change that only the watch detects. Returns the roles for which the schema has changed
/// afterwards.
async fn changed_for<'r>(fixture: &Fixture, sql: &str, roles: &[&'r str]) -> Vec<&'r str> {
    let mut before = Vec::new();
    for role in roles {
        before.push(columns(fixture, role).await);
    }
    fixture.run(sql).await;
    watch(fixture).await;
    let mut changed = Vec::new();
    for (role, before) in roles.iter().zip(before) {
        if columns(fixture, role).await != before {
            changed.push(*role);
        }
    }
    changed
}

/// The SQL for tables of which a group may read one, and for users: some in the group, some with
/// grants of their own.
fn users(name: &str) -> String {
    format!(
        "create role {name}_group; create table a (id int, secret int); create table b (id int); \
         grant select on a to {name}_group; \
         do $$ begin \
             for n in 1..20 loop \
                 execute format('create role {name}_%s in role {name}_group', n); \
             end loop; \
             for n in 21..40 loop \
                 execute format('create role {name}_%s; grant select on a to {name}_%1$s', n); \
             end loop; \
         end $$; \
         create role {name}_switch noinherit"
    )
}

async fn roles(fixture: &Fixture, before: Option<&Roles>) -> Fingerprint {
    let options = QueryOptions::default();
    let found = load::fingerprint(&*fixture.control, &fixture.database, before, &options).await;
    found.unwrap()
}

#[tokio::test]
async fn roles_with_the_same_rights_are_loaded_once() {
    let fixture = Fixture::new("groups_once", &users("groups_once")).await;
    let executor = Counting::of(&fixture);
    let catalogs = CatalogCache::new(executor.clone(), fixture.definitions.clone());
    let mut schemas = Vec::new();
    for n in 1..=40 {
        let login = fixture.login(&format!("groups_once_{n}"));
        schemas.push(seen(&catalogs, &login).await.unwrap());
    }
    assert!(
        schemas
            .iter()
            .all(|schema| Arc::ptr_eq(schema, &schemas[0]))
    );
    // One load suffices: users with grants of their own see the same as the members of the group.
    assert_eq!(executor.loads(), 1);
    // After a definition, the keys and the schema are read once for all roles.
    let (keys, comparisons) = (executor.keys(), executor.comparisons());
    fixture.run("alter table a add column more int").await;
    fixture.definitions.define();
    for n in 1..=40 {
        let login = fixture.login(&format!("groups_once_{n}"));
        let schema = seen(&catalogs, &login).await.unwrap();
        let a = &schema[schema.find("a").unwrap()];
        assert!(a.find_column("more").is_some());
    }
    assert_eq!(executor.loads(), 2);
    assert_eq!(executor.comparisons(), comparisons + 1);
    // There is one key query for all roles, and one after the load.
    assert_eq!(executor.keys(), keys + 2);
}

#[tokio::test]
async fn requests_that_wait_are_one_question() {
    let fixture = Fixture::new("groups_waiting", &users("groups_waiting")).await;
    let executor = Counting::of(&fixture);
    let catalogs = Arc::new(CatalogCache::new(
        executor.clone(),
        fixture.definitions.clone(),
    ));
    let requests = (1..=40).map(|n| {
        let login = fixture.login(&format!("groups_waiting_{n}"));
        let catalogs = catalogs.clone();
        tokio::spawn(async move { assert!(seen(&catalogs, &login).await.is_some()) })
    });
    for request in requests.collect::<Vec<_>>() {
        request.await.unwrap();
    }
    assert_eq!(executor.loads(), 1);
    // Roles that wait while a query runs share the next query, so there are fewer queries than
    // roles.
    assert!(executor.keys() < 10, "{}", executor.keys());
}

#[tokio::test]
async fn a_new_user_costs_the_others_nothing() {
    // The test needs a cluster of its own, because changes of roles by other tests count as
    // changes.
    let cluster = Cluster::start(testing::settings()).await.unwrap();
    let fixture = Fixture::on(&cluster, "groups_new", &users("groups_new")).await;
    let executor = Counting::of(&fixture);
    let catalogs = CatalogCache::new(executor.clone(), fixture.definitions.clone());
    let options = QueryOptions::default();
    let known = fixture.login("groups_new_1");
    let before = seen(&catalogs, &known).await.unwrap();
    catalogs.watch(&fixture.database, &options).await.unwrap();
    let roles = roles(&fixture, None).await.roles;
    let (keys, loads) = (executor.keys(), executor.loads());
    fixture
        .run(
            "create role groups_new_41; grant usage on schema public to groups_new_41; \
             grant connect on database groups_new to groups_new_41; \
             grant groups_new_41 to groups_new_switch; grant groups_new_group to groups_new_41",
        )
        .await;
    let change = self::roles(&fixture, Some(&roles)).await.change;
    assert!(matches!(change, RolesChange::Added { .. }), "{change:?}");
    let watched = catalogs.watch(&fixture.database, &options).await.unwrap();
    assert_eq!(watched, WatchOutcome::Same);
    assert!(Arc::ptr_eq(
        &before,
        &seen(&catalogs, &known).await.unwrap()
    ));
    assert_eq!((executor.keys(), executor.loads()), (keys, loads));
    // The new role itself needs one key query.
    let new = seen(&catalogs, &fixture.login("groups_new_41"))
        .await
        .unwrap();
    assert!(Arc::ptr_eq(&before, &new));
    assert_eq!((executor.keys(), executor.loads()), (keys + 1, loads));
    drop(fixture);
    cluster.stop().await.unwrap();
}

#[tokio::test]
async fn grants_are_seen_by_those_who_have_them() {
    let fixture = Fixture::new("groups_grants", &users("groups_grants")).await;
    let [one, two, alone, other] =
        ["1", "2", "21", "22"].map(|number| format!("groups_grants_{number}"));
    let roles = [&*one, &*two, &*alone, &*other];
    for (sql, changed) in [
        ("grant select on b to groups_grants_1", vec![&*one]),
        ("grant insert (id) on b to groups_grants_21", vec![&*alone]),
        ("revoke select on b from groups_grants_1", vec![&*one]),
        (
            "grant select on b to groups_grants_group",
            vec![&*one, &*two],
        ),
        (
            "revoke groups_grants_group from groups_grants_2",
            vec![&*two],
        ),
        (
            "grant groups_grants_group to groups_grants_22",
            vec![&*other],
        ),
        (
            "create table d (id int); grant select on d to groups_grants_1",
            vec![&*one],
        ),
        ("grant groups_grants_1 to groups_grants_21", vec![&*alone]),
        ("alter role groups_grants_21 noinherit", vec![&*alone]),
    ] {
        // Since PostgreSQL 16, `noinherit` is an attribute of the membership.
        if sql.contains("noinherit") && version(&fixture).await >= 160_000 {
            fixture
                .run("grant groups_grants_1 to groups_grants_21 with inherit false")
                .await;
            watch(&fixture).await;
            continue;
        }
        assert_eq!(changed_for(&fixture, sql, &roles).await, changed, "{sql}");
    }
}

#[tokio::test]
async fn grants_on_columns_and_schemas_and_attributes_are_seen() {
    let fixture = Fixture::new("groups_columns", &users("groups_columns")).await;
    let [one, two, alone, other] =
        ["1", "2", "21", "22"].map(|number| format!("groups_columns_{number}"));
    let roles = [&*one, &*two, &*alone, &*other];
    fixture
        .run(
            "grant groups_columns_group to groups_columns_22; grant select on b to groups_columns_group; \
             revoke groups_columns_group from groups_columns_2",
        )
        .await;
    watch(&fixture).await;
    for (sql, changed) in [
        (
            "create table c (id int); grant select on c to public",
            roles.to_vec(),
        ),
        ("revoke all on a from groups_columns_22", vec![]),
        (
            "revoke all on a from groups_columns_group; grant select (id) on a to groups_columns_group",
            vec![&*one, &*other],
        ),
        (
            "grant select (secret) on a to groups_columns_1",
            vec![&*one],
        ),
        ("revoke usage on schema public from public", roles.to_vec()),
        (
            "grant usage on schema public to groups_columns_group",
            vec![&*one, &*other],
        ),
        (
            "grant usage on schema public to groups_columns_2",
            vec![&*two],
        ),
        ("grant pg_read_all_data to groups_columns_2", vec![&*two]),
        ("alter role groups_columns_22 superuser", vec![&*other]),
        ("alter role groups_columns_22 nosuperuser", vec![&*other]),
        ("alter table b owner to groups_columns_1", vec![]),
        ("revoke all on b from groups_columns_1", vec![]),
        (
            "revoke all on b from groups_columns_group",
            vec![&*one, &*other],
        ),
    ] {
        assert_eq!(changed_for(&fixture, sql, &roles).await, changed, "{sql}");
    }
}

async fn version(fixture: &Fixture) -> i32 {
    let query = "select current_setting('server_version_num')::int";
    fixture.client.query_one(query, &[]).await.unwrap().get(0)
}

#[tokio::test]
async fn a_name_means_the_role_that_has_it_now() {
    let fixture = Fixture::new("groups_names", &users("groups_names")).await;
    let roles = ["groups_names_1", "groups_names_2", "groups_names_3"];
    let steps = [
        ("drop role groups_names_1", [false, true, true]),
        ("create role groups_names_1", [false, true, true]),
        (
            "alter role groups_names_2 rename to groups_names_away",
            [false, false, true],
        ),
        (
            "alter role groups_names_3 rename to groups_names_2",
            [false, true, false],
        ),
        (
            "alter role groups_names_away rename to groups_names_1_away",
            [false, true, false],
        ),
        ("drop role groups_names_1", [false, true, false]),
        (
            "alter role groups_names_1_away rename to groups_names_1",
            [true, true, false],
        ),
    ];
    for role in roles {
        assert!(!columns(&fixture, role).await.is_empty(), "{role}");
    }
    for (sql, seeing) in steps {
        fixture.run(sql).await;
        watch(&fixture).await;
        for (role, sees) in roles.iter().zip(seeing) {
            assert_eq!(
                !columns(&fixture, role).await.is_empty(),
                sees,
                "{role}: {sql}"
            );
        }
    }
}

/// A key that was read before a role joined a group must not be used afterwards, even if the role
/// is as new as its membership.
#[tokio::test]
async fn a_new_role_may_ask_before_it_is_put_into_a_group() {
    let cluster = Cluster::start(testing::settings()).await.unwrap();
    let fixture = Fixture::on(&cluster, "groups_young", &users("groups_young")).await;
    assert!(!columns(&fixture, "groups_young_1").await.is_empty());
    watch(&fixture).await;
    let roles = roles(&fixture, None).await.roles;
    for number in [41, 42] {
        let role = format!("groups_young_{number}");
        fixture.run(&format!("create role {role}")).await;
        assert!(columns(&fixture, &role).await.is_empty());
        fixture
            .run(&format!("grant groups_young_group to {role}"))
            .await;
        if number == 41 {
            assert_eq!(watch(&fixture).await, WatchOutcome::Same);
        } else {
            // This change comes from the comparison of all roles of the cluster.
            let RolesChange::Added { after } = self::roles(&fixture, Some(&roles)).await.change
            else {
                panic!("not only new roles");
            };
            fixture.catalogs.roles_added(after);
        }
        assert!(!columns(&fixture, &role).await.is_empty(), "{role}");
    }
    drop(fixture);
    cluster.stop().await.unwrap();
}

/// If the privileges of a role change during a load, the loaded schema must not be shared.
#[tokio::test]
async fn rights_that_change_during_a_load_are_not_shared() {
    let fixture = Fixture::new("groups_race", &users("groups_race")).await;
    let executor = Counting::of(&fixture);
    let catalogs = CatalogCache::new(executor.clone(), fixture.definitions.clone());
    let [one, two] = ["groups_race_1", "groups_race_2"].map(|role| fixture.login(role));
    let client = connect(&testing::cluster().url("groups_race")).await;
    executor.before_load(async move {
        let sql = "grant select on b to groups_race_1";
        client.batch_execute(sql).await.unwrap();
    });
    let schema = seen(&catalogs, &one).await.unwrap();
    assert!(schema.find("b").is_some());
    let schema = seen(&catalogs, &two).await.unwrap();
    assert!(schema.find("a").is_some() && schema.find("b").is_none());
}

#[tokio::test]
async fn a_definition_by_the_owner_is_loaded_once() {
    let fixture = Fixture::new(
        "groups_owner",
        "create role groups_owner; grant usage, create on schema public to groups_owner; \
         set role groups_owner; create table a (id int)",
    )
    .await;
    let executor = Counting::of(&fixture);
    let catalogs = CatalogCache::new(executor.clone(), fixture.definitions.clone());
    let (owner, options) = (fixture.login("groups_owner"), QueryOptions::default());
    seen(&catalogs, &owner).await.unwrap();
    let counts = || (executor.loads(), executor.keys(), executor.comparisons());
    for name in ["b", "c", "d"] {
        let (loads, keys, comparisons) = counts();
        // Ownership is part of the key, so the owner belongs to another group afterwards.
        fixture.run(&format!("create table {name} (id int)")).await;
        fixture.definitions.define();
        let schema = seen(&catalogs, &owner).await.unwrap();
        assert!(schema.find(name).is_some());
        let caught_up = catalogs.catch_up(&fixture.database, &options).await;
        assert_eq!(caught_up.unwrap(), WatchOutcome::Same);
        seen(&catalogs, &owner).await.unwrap();
        // There is one query for the keys before the load, and one after it.
        assert_eq!(counts(), (loads + 1, keys + 2, comparisons + 1), "{name}");
        // The watch always reads the fingerprint. It finds nothing to load.
        assert_eq!(
            catalogs.watch(&fixture.database, &options).await.unwrap(),
            WatchOutcome::Same
        );
        assert_eq!(counts(), (loads + 1, keys + 2, comparisons + 2), "{name}");
    }
}
