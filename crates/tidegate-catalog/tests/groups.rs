//! Roles with the same rights share what was loaded for one of them.

use std::collections::BTreeSet;
use std::sync::Arc;

use tidegate_catalog::load::{self, Fingerprint, Roles, RolesChange};
use tidegate_catalog::{Catalogs, Schema, Watched};
use tidegate_embedded::{Cluster, testing};
use tidegate_sql::{Login, Terms};
use tidegate_testkit::connect;

use crate::counting::Counting;
use crate::fresh::watch;
use crate::stage::Stage;

async fn seen(catalogs: &Catalogs, login: &Login) -> Option<Arc<Schema>> {
    let found = catalogs.schema(login, "public", &Terms::default()).await;
    found.unwrap()
}

/// The columns that a role sees in the schema `public`, as `table.column`.
async fn columns(stage: &Stage, role: &str) -> BTreeSet<String> {
    let Some(schema) = stage.seen_by(&stage.login(role), "public").await else {
        return BTreeSet::new();
    };
    let mut columns = BTreeSet::new();
    for (_, relation) in schema.relations() {
        let names = relation.columns.iter();
        columns.extend(names.map(|column| format!("{}.{}", relation.name, column.name)));
    }
    columns
}

/// Runs a change, which nobody but the watch notices, and returns which of the roles see something
/// else behind it.
async fn changed_for<'r>(stage: &Stage, sql: &str, roles: &[&'r str]) -> Vec<&'r str> {
    let mut before = Vec::new();
    for role in roles {
        before.push(columns(stage, role).await);
    }
    stage.run(sql).await;
    watch(stage).await;
    let mut changed = Vec::new();
    for (role, before) in roles.iter().zip(before) {
        if columns(stage, role).await != before {
            changed.push(*role);
        }
    }
    changed
}

/// Tables of which a group may read one, and users: some in the group, some with grants of their own.
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

async fn roles(stage: &Stage, before: Option<&Roles>) -> Fingerprint {
    let terms = Terms::default();
    let found = load::fingerprint(&*stage.control, &stage.database, before, &terms).await;
    found.unwrap()
}

#[tokio::test]
async fn roles_with_the_same_rights_are_loaded_once() {
    let stage = Stage::new("groups_once", &users("groups_once")).await;
    let executor = Counting::of(&stage);
    let catalogs = Catalogs::new(executor.clone(), stage.definitions.clone());
    let mut schemas = Vec::new();
    for n in 1..=40 {
        let login = stage.login(&format!("groups_once_{n}"));
        schemas.push(seen(&catalogs, &login).await.unwrap());
    }
    assert!(
        schemas
            .iter()
            .all(|schema| Arc::ptr_eq(schema, &schemas[0]))
    );
    // Those who were granted the same themselves see what the members of the group see.
    assert_eq!(executor.loads(), 1);
    // A definition is asked about and loaded once for all.
    let (keys, comparisons) = (executor.keys(), executor.comparisons());
    stage.run("alter table a add column more int").await;
    stage.definitions.define();
    for n in 1..=40 {
        let login = stage.login(&format!("groups_once_{n}"));
        let schema = seen(&catalogs, &login).await.unwrap();
        let a = &schema[schema.find("a").unwrap()];
        assert!(a.find_column("more").is_some());
    }
    assert_eq!(executor.loads(), 2);
    assert_eq!(executor.comparisons(), comparisons + 1);
    // One for all roles, and one behind the load.
    assert_eq!(executor.keys(), keys + 2);
}

#[tokio::test]
async fn requests_that_wait_are_one_question() {
    let stage = Stage::new("groups_waiting", &users("groups_waiting")).await;
    let executor = Counting::of(&stage);
    let catalogs = Arc::new(Catalogs::new(executor.clone(), stage.definitions.clone()));
    let requests = (1..=40).map(|n| {
        let login = stage.login(&format!("groups_waiting_{n}"));
        let catalogs = catalogs.clone();
        tokio::spawn(async move { assert!(seen(&catalogs, &login).await.is_some()) })
    });
    for request in requests.collect::<Vec<_>>() {
        request.await.unwrap();
    }
    assert_eq!(executor.loads(), 1);
    // Not one each: who comes while a question runs shares the next one.
    assert!(executor.keys() < 10, "{}", executor.keys());
}

#[tokio::test]
async fn a_new_user_costs_the_others_nothing() {
    // Of its own, because a role that another test changes is a change.
    let cluster = Cluster::start(testing::settings()).await.unwrap();
    let stage = Stage::on(&cluster, "groups_new", &users("groups_new")).await;
    let executor = Counting::of(&stage);
    let catalogs = Catalogs::new(executor.clone(), stage.definitions.clone());
    let terms = Terms::default();
    let known = stage.login("groups_new_1");
    let before = seen(&catalogs, &known).await.unwrap();
    catalogs.watch(&stage.database, &terms).await.unwrap();
    let roles = roles(&stage, None).await.roles;
    let (keys, loads) = (executor.keys(), executor.loads());
    stage
        .run(
            "create role groups_new_41; grant usage on schema public to groups_new_41; \
             grant connect on database groups_new to groups_new_41; \
             grant groups_new_41 to groups_new_switch; grant groups_new_group to groups_new_41",
        )
        .await;
    let change = self::roles(&stage, Some(&roles)).await.change;
    assert!(matches!(change, RolesChange::Added { .. }), "{change:?}");
    let watched = catalogs.watch(&stage.database, &terms).await.unwrap();
    assert_eq!(watched, Watched::Same);
    assert!(Arc::ptr_eq(
        &before,
        &seen(&catalogs, &known).await.unwrap()
    ));
    assert_eq!((executor.keys(), executor.loads()), (keys, loads));
    // It needs one question itself.
    let new = seen(&catalogs, &stage.login("groups_new_41"))
        .await
        .unwrap();
    assert!(Arc::ptr_eq(&before, &new));
    assert_eq!((executor.keys(), executor.loads()), (keys + 1, loads));
    drop(stage);
    cluster.stop().await.unwrap();
}

#[tokio::test]
async fn grants_are_seen_by_those_who_have_them() {
    let stage = Stage::new("groups_grants", &users("groups_grants")).await;
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
        // `noinherit` is an attribute of the membership since PostgreSQL 16.
        if sql.contains("noinherit") && version(&stage).await >= 160_000 {
            stage
                .run("grant groups_grants_1 to groups_grants_21 with inherit false")
                .await;
            watch(&stage).await;
            continue;
        }
        assert_eq!(changed_for(&stage, sql, &roles).await, changed, "{sql}");
    }
}

#[tokio::test]
async fn grants_on_columns_and_schemas_and_attributes_are_seen() {
    let stage = Stage::new("groups_columns", &users("groups_columns")).await;
    let [one, two, alone, other] =
        ["1", "2", "21", "22"].map(|number| format!("groups_columns_{number}"));
    let roles = [&*one, &*two, &*alone, &*other];
    stage
        .run(
            "grant groups_columns_group to groups_columns_22; grant select on b to groups_columns_group; \
             revoke groups_columns_group from groups_columns_2",
        )
        .await;
    watch(&stage).await;
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
        assert_eq!(changed_for(&stage, sql, &roles).await, changed, "{sql}");
    }
}

async fn version(stage: &Stage) -> i32 {
    let query = "select current_setting('server_version_num')::int";
    stage.client.query_one(query, &[]).await.unwrap().get(0)
}

#[tokio::test]
async fn a_name_means_the_role_that_has_it_now() {
    let stage = Stage::new("groups_names", &users("groups_names")).await;
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
        assert!(!columns(&stage, role).await.is_empty(), "{role}");
    }
    for (sql, seeing) in steps {
        stage.run(sql).await;
        watch(&stage).await;
        for (role, sees) in roles.iter().zip(seeing) {
            assert_eq!(
                !columns(&stage, role).await.is_empty(),
                sees,
                "{role}: {sql}"
            );
        }
    }
}

/// What is asked of a role before it is put into a group does not count afterwards, although the
/// role is as new as the membership.
#[tokio::test]
async fn a_new_role_may_ask_before_it_is_put_into_a_group() {
    let cluster = Cluster::start(testing::settings()).await.unwrap();
    let stage = Stage::on(&cluster, "groups_young", &users("groups_young")).await;
    assert!(!columns(&stage, "groups_young_1").await.is_empty());
    watch(&stage).await;
    let roles = roles(&stage, None).await.roles;
    for number in [41, 42] {
        let role = format!("groups_young_{number}");
        stage.run(&format!("create role {role}")).await;
        assert!(columns(&stage, &role).await.is_empty());
        stage
            .run(&format!("grant groups_young_group to {role}"))
            .await;
        if number == 41 {
            assert_eq!(watch(&stage).await, Watched::Same);
        } else {
            // By the comparison of the whole cluster's roles.
            let RolesChange::Added { after } = self::roles(&stage, Some(&roles)).await.change
            else {
                panic!("not only new roles");
            };
            stage.catalogs.roles_added(after);
        }
        assert!(!columns(&stage, &role).await.is_empty(), "{role}");
    }
    drop(stage);
    cluster.stop().await.unwrap();
}

/// What a role sees whose rights change while it is loaded is its own affair.
#[tokio::test]
async fn rights_that_change_during_a_load_are_not_shared() {
    let stage = Stage::new("groups_race", &users("groups_race")).await;
    let executor = Counting::of(&stage);
    let catalogs = Catalogs::new(executor.clone(), stage.definitions.clone());
    let [one, two] = ["groups_race_1", "groups_race_2"].map(|role| stage.login(role));
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
    let stage = Stage::new(
        "groups_owner",
        "create role groups_owner; grant usage, create on schema public to groups_owner; \
         set role groups_owner; create table a (id int)",
    )
    .await;
    let executor = Counting::of(&stage);
    let catalogs = Catalogs::new(executor.clone(), stage.definitions.clone());
    let (owner, terms) = (stage.login("groups_owner"), Terms::default());
    seen(&catalogs, &owner).await.unwrap();
    let counts = || (executor.loads(), executor.keys(), executor.comparisons());
    for name in ["b", "c", "d"] {
        let (loads, keys, comparisons) = counts();
        // What it owns is part of the key, so that the owner is in another group afterwards.
        stage.run(&format!("create table {name} (id int)")).await;
        stage.definitions.define();
        let schema = seen(&catalogs, &owner).await.unwrap();
        assert!(schema.find(name).is_some());
        let caught_up = catalogs.catch_up(&stage.database, &terms).await;
        assert_eq!(caught_up.unwrap(), Watched::Same);
        seen(&catalogs, &owner).await.unwrap();
        // One query for the keys before the load, and one after it.
        assert_eq!(counts(), (loads + 1, keys + 2, comparisons + 1), "{name}");
        // The watch reads the fingerprint in any case, and finds nothing to load.
        assert_eq!(
            catalogs.watch(&stage.database, &terms).await.unwrap(),
            Watched::Same
        );
        assert_eq!(counts(), (loads + 1, keys + 2, comparisons + 2), "{name}");
    }
}
