//! Tests that one statement reads nested lists.

use crate::MUSIC;
use crate::fixture::Fixture;

/// Runs an operation with a limited root list, and again without the limit. Both results must be
/// equal, in the order of the key. Returns the result.
async fn equal(fixture: &Fixture, root: &str, selection: &str) -> String {
    let short = format!(r#"{root}({{"order": ["id"], "limit": 20}}) {selection}"#);
    let short = fixture.run(&short).await.unwrap();
    let long = format!(r#"{root}({{"order": ["id"]}}) {selection}"#);
    let long = fixture.run(&long).await.unwrap();
    assert_eq!(short.texts.len(), 1, "{:?}", short.texts);
    assert_eq!(long.texts.len(), 1, "{:?}", long.texts);
    assert_eq!(short.data, long.data);
    assert_eq!(short.outcome, long.outcome);
    short.data
}

#[tokio::test]
async fn rows_without_children_have_empty_lists_and_none_of_their_columns_are_needed() {
    let fixture = Fixture::new("plan_flat_none", MUSIC).await;
    let data = equal(&fixture, "artists", "{ albums { title } }").await;
    assert_eq!(
        data,
        r#"{"artists":[{"albums":[{"title":"Debut"},{"title":"Post"}]},{"albums":[{"title":"Moon Safari"}]},{"albums":[]}]}"#
    );
    equal(
        &fixture,
        "artists",
        "{ name albums { __typename } country }",
    )
    .await;
    let filtered = r#"{ id albums({"where": {"price": {"gt": 10}}, "order": ["title desc"]}) { id artists { name } } }"#;
    equal(&fixture, "artists", filtered).await;
    let none = fixture.run(r#"artists({"limit": 0}) { id albums { id } }"#);
    assert_eq!(none.await.unwrap().data, r#"{"artists":[]}"#);
}

#[tokio::test]
async fn rows_with_the_same_key_show_the_same_list() {
    let fixture = Fixture::new("plan_flat_same", MUSIC).await;
    let data = equal(&fixture, "tracks", "{ id albums { id tracks { id } } }").await;
    let both = r#"{"id":"10","tracks":[{"id":"100"},{"id":"101"}]}"#;
    assert_eq!(data.matches(both).count(), 2, "{data}");
    equal(
        &fixture,
        "albums",
        "{ artists { albums { id } name } title }",
    )
    .await;
    equal(&fixture, "staff", "{ name staff { staffByBoss { name } } }").await;
    equal(
        &fixture,
        "staff",
        "{ name staffByBoss { id name staff { name } } }",
    )
    .await;
}

#[tokio::test]
async fn keys_of_several_columns_and_of_odd_types_are_found() {
    let setup = "create domain code as varchar(5);
        create table p (id int primary key, a numeric, b text, c code unique, d char(3), unique (a, b));
        create table q (id int primary key, a numeric, b text, c code references p (c), d char(3), e code,
            foreign key (a, b) references p (a, b));
        insert into p values (1, 1.0, 'x', 'one', 'a'), (2, 2, 'NULL', 'two', 'bc'), (3, null, 'x', null, null), (4, 1, 'y', '', 'd');
        insert into q select i, (array[1.00, 2.0, 1, null])[1 + i % 4], (array['x', 'NULL', 'y', 'x'])[1 + i % 4],
            (array['one', 'two', '', null])[1 + i % 4], 'q', 'e' from generate_series(1, 30) i";
    let fixture = Fixture::new("plan_flat_keys", setup).await;
    let names: Vec<_> = fixture.schema[fixture.schema.find("p").unwrap()]
        .relationships
        .iter()
        .map(|relationship| relationship.name.to_string())
        .collect();
    assert_eq!(names.len(), 2, "{names:?}");
    for name in names {
        let data = equal(
            &fixture,
            "p",
            &format!("{{ a c d `{name}` {{ id a c d e }} }}"),
        )
        .await;
        assert!(data.matches("id").count() > 20, "{data}");
    }
}

#[tokio::test]
async fn what_cannot_be_shown_is_null_with_its_path_in_both_levels() {
    let setup = "create table p (id int primary key, key int unique, must float8 not null, may float8);
        create table q (id int primary key, p_key int references p (key), must float8 not null, list float8[]);
        insert into p values (1, 5, 1, 'NaN'), (2, 6, 'NaN', 2), (3, null, 3, 3), (4, 8, 4, 4);
        insert into q values (1, 5, 1, '{1,NaN}'), (2, 5, 'Infinity', null), (3, 6, 3, null), (4, 8, 4, '{{1},{2}}')";
    let fixture = Fixture::new("plan_flat_flaws", setup).await;
    for selection in [
        "{ id must may q { id must list } }",
        "{ id q { id must list } must may }",
    ] {
        let data = equal(&fixture, "p", selection).await;
        assert!(data.starts_with(r#"{"p":[{"id":"1""#), "{data}");
        assert!(data.contains("},null,{"), "{data}");
    }
    equal(&fixture, "q", "{ id must p { must q { must } } }").await;
}

/// One round trip suffices for every number of levels and root fields.
#[tokio::test]
async fn a_document_is_one_round_trip() {
    let fixture = Fixture::new("plan_nested_shapes", MUSIC).await;
    for (operation, statements) in [
        (
            r#"artists({"where": {"id": 1}}) { name albums { title } }"#,
            1,
        ),
        (
            r#"artists({"limit": 9}) { name albums({"limit": 9}) { title tracks({"limit": 5, "offset": 1}) { id genres { code tracks { id } } } } }"#,
            1,
        ),
        (
            r#"albums({"limit": 9}) { tracks { id } artists { albums { id } } }"#,
            1,
        ),
        (
            "artists { albums { id } } genres { code } aggregate.tracks { count }",
            3,
        ),
        (
            r#"insert.genres({"data": {"code": "x"}}) { code } update.genres({"where": {"code": "x"}, "data": {"label": "y"}}) { label }"#,
            2,
        ),
    ] {
        let response = fixture.run(operation).await.unwrap();
        let sent = (response.texts.len(), response.pipelines);
        assert_eq!(sent, (statements, 1), "{operation}");
    }
}

/// The limit of a parent list decides which child lists there are. The policy in this test passes
/// other rows each time it runs. The child lists must belong to the parent rows that are shown, in
/// whichever way PostgreSQL evaluates the statement.
#[tokio::test]
async fn lists_belong_to_the_rows_that_are_shown() {
    let setup = "create table k (id int primary key);
        create table l (id int primary key, k_id int references k);
        insert into k select generate_series(1, 200); insert into l select i, i from generate_series(1, 200) i;
        alter table k enable row level security; create policy k on k using (random() < 0.5)";
    let fixture = Fixture::new("plan_nested_volatile", setup).await;
    for _ in 0..20 {
        let data = fixture.data(r#"k({"limit": 50}) { id l { id } }"#).await;
        let rows = data.matches(r#""l":[{"id":"#).count();
        assert_eq!(rows, 50, "{data}");
    }
}

/// Child tables inherit columns but not keys, so keys repeat. Each list must have each row once.
#[tokio::test]
async fn keys_that_inheritance_repeats_do_not_repeat_lists() {
    let setup = "create table p (id int primary key); create table p2 () inherits (p);
        create table c (id int primary key, p_id int references p);
        insert into p values (1), (2); insert into p2 values (1); insert into c values (1, 1), (2, 1), (3, 2)";
    let fixture = Fixture::new("plan_nested_inherit", setup).await;
    let response = fixture.run(r#"p({"order": ["id"]}) { id c({"order": ["id"]}) { id } }"#);
    let response = response.await.unwrap();
    let list = r#"{"id":"1","c":[{"id":"1"},{"id":"2"}]}"#;
    let expected = format!(r#"{{"p":[{list},{list},{{"id":"2","c":[{{"id":"3"}}]}}]}}"#);
    assert_eq!((response.data, response.pipelines), (expected, 2));
}

#[tokio::test]
async fn each_list_is_cut_at_its_own_limit() {
    let setup = "create table p (id int primary key);
        create table c (id int primary key, p_id int references p);
        insert into p select generate_series(1, 20);
        insert into c select i, case when i < 2000 then 7 else i % 20 + 1 end from generate_series(1, 3019) i";
    let fixture = Fixture::new("plan_flat_cut", setup).await;
    equal(&fixture, "p", r#"{ id c({"order": ["id desc"]}) { id } }"#).await;
    let cut = fixture.run(r#"p({"limit": 9}) { id c { id } }"#);
    assert_eq!(cut.await.unwrap().truncated(), ["p.6.c"]);
}
