//! Tests of what a role sees of a database.

use tidegate_catalog::{Relation, Schema};
use tidegate_service::{ClaimsFunctions, ClaimsState, install_claims};

use crate::fixture::Fixture;

/// The role's privileges on a relation and on each of its columns, as letters.
fn rights(schema: &Schema, relation: &str) -> Option<(String, Vec<String>)> {
    let relation: &Relation = &schema[schema.find(relation)?];
    let letters = |rights: [(char, bool); 4]| {
        let granted = rights.iter().filter(|(_, granted)| *granted);
        granted.map(|(letter, _)| letter).collect::<String>()
    };
    let of = relation.rights;
    let columns = relation.columns.iter().map(|column| {
        let of = column.rights;
        let own = letters([
            ('s', of.select),
            ('i', of.insert),
            ('u', of.update),
            ('d', false),
        ]);
        format!("{} {own}", column.name)
    });
    let all = letters([
        ('s', of.select),
        ('i', of.insert),
        ('u', of.update),
        ('d', of.delete),
    ]);
    Some((all, columns.collect()))
}

#[track_caller]
fn assert_rights(schema: &Schema, relation: &str, all: &str, columns: &[&str]) {
    let (found, of_columns) = rights(schema, relation).unwrap();
    assert_eq!(
        (&*found, of_columns),
        (all, columns.iter().map(ToString::to_string).collect()),
        "{relation}"
    );
}

#[tokio::test]
async fn rights_are_those_of_the_role_by_table_and_column() {
    let fixture = Fixture::new(
        "catalog_rights",
        "create role rights_reader; create role rights_group; create role rights_member in role rights_group; \
         create role rights_none; \
         create table a (x int, y int, z int); create table b (x int); create table c (x int); \
         grant select, delete on a to rights_reader; grant update (y) on a to rights_reader; \
         grant insert (x) on b to rights_reader; grant truncate on c to rights_reader; \
         grant all on b to rights_group",
    )
    .await;
    let seen = fixture
        .seen_by(&fixture.login("rights_reader"), "public")
        .await
        .unwrap();
    assert_rights(&seen, "a", "sud", &["x s", "y su", "z s"]);
    assert_rights(&seen, "b", "i", &["x i"]);
    assert_eq!(rights(&seen, "c"), None);
    // Privileges come through memberships too, and the owner has all of them.
    let seen = fixture
        .seen_by(&fixture.login("rights_member"), "public")
        .await
        .unwrap();
    assert_rights(&seen, "b", "siud", &["x siu"]);
    assert_eq!(rights(&seen, "a"), None);
    let seen = fixture.public().await;
    assert_rights(&seen, "a", "siud", &["x siu", "y siu", "z siu"]);
    let none = fixture
        .seen_by(&fixture.login("rights_none"), "public")
        .await
        .unwrap();
    assert_eq!(none.relations().count(), 0);
    assert!(
        fixture
            .seen_by(&fixture.login("nobody at all"), "public")
            .await
            .is_none()
    );
}

#[tokio::test]
async fn columns_without_a_right_are_not_there_and_their_keys_are_not_either() {
    let fixture = Fixture::new(
        "catalog_column_rights",
        "create role column_reader; create table p (id int primary key, code text unique, secret int); \
         create table c (id int primary key, p_id int references p, p_code text references p (code)); \
         grant select (id) on p to column_reader; grant select (id, p_id, p_code) on c to column_reader",
    )
    .await;
    let seen = fixture
        .seen_by(&fixture.login("column_reader"), "public")
        .await
        .unwrap();
    let p = &seen[seen.find("p").unwrap()];
    assert_rights(&seen, "p", "s", &["id s"]);
    assert!(p.primary_key.is_some() && p.unique.is_empty());
    let c = &seen[seen.find("c").unwrap()];
    let names: Vec<_> = c.relationships.iter().map(|r| &*r.name).collect();
    assert_eq!(
        names,
        ["cPIdFkey"],
        "the first key by name, c_p_code_fkey, has the plain name"
    );
    let names: Vec<_> = p.relationships.iter().map(|r| &*r.name).collect();
    assert_eq!(names, ["cByPId"]);
}

#[tokio::test]
async fn a_view_gives_what_postgresql_lets_be_done_to_it() {
    let fixture = Fixture::new(
        "catalog_views",
        "create table t (id int primary key, n int); \
         create view simple as select id, n from t; \
         create view computed as select id, n + 1 as more from t; \
         create view joined as select a.id from t a join t b using (id); \
         create view told as select count(*) as n from t; \
         create function done() returns trigger language plpgsql as 'begin return new; end'; \
         create trigger instead instead of insert on told for each row execute function done(); \
         create materialized view kept as select id from t; \
         create foreign data wrapper none; create server away foreign data wrapper none; \
         create foreign table remote (id int) server away",
    )
    .await;
    let seen = fixture.public().await;
    assert_rights(&seen, "simple", "siud", &["id siu", "n siu"]);
    assert_rights(&seen, "computed", "siud", &["id siu", "more s"]);
    assert_rights(&seen, "joined", "s", &["id s"]);
    assert_rights(&seen, "told", "si", &["n si"]);
    assert_rights(&seen, "kept", "s", &["id s"]);
    assert_rights(&seen, "remote", "s", &["id s"]);
}

#[tokio::test]
async fn a_view_that_cannot_be_asked_breaks_nothing() {
    let fixture = Fixture::new(
        "catalog_odd_view",
        "create table t (id int primary key); create foreign data wrapper none; \
         create server away foreign data wrapper none; create foreign table remote (id int) server away; \
         create view over_remote as select id from remote",
    )
    .await;
    let seen = fixture.public().await;
    assert_rights(&seen, "over_remote", "s", &["id s"]);
    assert_rights(&seen, "t", "siud", &["id siu"]);
}

#[tokio::test]
async fn row_security_is_what_applies_to_the_role() {
    let fixture = Fixture::new(
        "catalog_policies",
        "create role row_owner; create role row_reader; create role row_member in role row_owner; \
         create role row_free bypassrls; \
         create table on_it (id int); alter table on_it enable row level security; \
         create table forced (id int); alter table forced enable row level security, force row level security; \
         create table off (id int); \
         grant select on on_it, forced, off to row_reader, row_free; \
         alter table on_it owner to row_owner; alter table forced owner to row_owner",
    )
    .await;
    for (role, on_it, forced) in [
        ("row_reader", true, true),
        ("row_owner", false, true),
        ("row_member", false, true),
        ("row_free", false, false),
    ] {
        let seen = fixture
            .seen_by(&fixture.login(role), "public")
            .await
            .unwrap();
        let applies = |name| seen[seen.find(name).unwrap()].row_security;
        assert_eq!(
            (applies("on_it"), applies("forced")),
            (on_it, forced),
            "{role}"
        );
    }
}

#[tokio::test]
async fn policies_are_plain_if_they_call_only_what_cannot_write() {
    let fixture = Fixture::new(
        "catalog_plain",
        "create role plain_reader; create table t (id int, owner text); \
         alter table t enable row level security; grant select on t to plain_reader; \
         create function own() returns text language sql stable as $$ select 'x' $$; \
         create policy p on t using (true)",
    )
    .await;
    let url = tidegate_embedded::testing::cluster().url("catalog_plain");
    let mut service = tidegate_testkit::connect(&url).await;
    let functions = ClaimsFunctions {
        generation: 1,
        key: [1, 2],
    };
    let installed = install_claims(&mut service, &functions).await.unwrap();
    assert_eq!(installed, ClaimsState::Current);
    let reader = fixture.login("plain_reader");
    assert!(fixture.seen_by(&reader, "tidegate").await.is_none());
    for (policy, plain) in [
        ("id > 0", true),
        ("owner = tidegate.user_id()", true),
        ("owner = (select tidegate.user_id())", true),
        ("owner = (select lower(tidegate.claim('org')))", true),
        ("owner = (select own())", false),
        ("exists (select from t other)", false),
        ("owner = (select version() || nextval('s'))", false),
    ] {
        let define = format!(
            "create sequence if not exists s; drop policy p on t; \
             create policy p on t using ({policy})"
        );
        fixture.run(&define).await;
        fixture.definitions.define();
        let seen = fixture.seen_by(&reader, "public").await.unwrap();
        let found = seen[seen.find("t").unwrap()].plain_policies;
        assert_eq!(found, plain, "{policy}");
    }
}
