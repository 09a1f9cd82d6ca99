//! Tests of inserts, updates and deletes.

use tidegate_sql::{Error, InputError};
use tidegate_values::ValueError;

use crate::MUSIC;
use crate::fixture::Fixture;

#[tokio::test]
async fn one_row_goes_in_and_comes_back_with_its_relationships() {
    let fixture = Fixture::new("plan_insert", MUSIC).await;
    let response = fixture
        .run(
            r#"insert.albums({"data": {"artist_id": 3, "title": "Tago Mago", "price": "12.345"}}) {
            id title price released artists { name albums { title } } tracks { id } }"#,
        )
        .await
        .unwrap();
    assert_eq!(
        response.data,
        r#"{"albums":[{"id":"1","title":"Tago Mago","price":"12.35","released":null,"artists":{"name":"Can","albums":[{"title":"Tago Mago"}]},"tracks":[]}]}"#
    );
    assert_eq!(response.texts.len(), 2, "{:?}", response.texts);
    let alone = fixture
        .run(r#"insert.genres({"data": {"code": "x"}}) { code }"#)
        .await
        .unwrap();
    assert_eq!(alone.texts.len(), 1);
}

#[tokio::test]
async fn objects_keep_their_order_and_lack_or_null_are_two_things() {
    let fixture = Fixture::new(
        "plan_objects",
        "create table t (id int primary key, a text default 'd',
        b int[] default '{7}', r int4range, j jsonb, p point, m numeric)",
    )
    .await;
    let response = fixture
        .run(r#"insert.t({"objects": [
            {"id": 5, "a": null},
            {"id": 4},
            {"id": 3, "a": "x, \"y\" {z} \\ 'q'"},
            {"id": 2, "b": [1, null, 3], "r": {"lower": 1, "upper": 4}, "j": {"k": [1, "two"]}, "p": {"x": 1.5, "y": -2}, "m": "12345678901234567890.123"},
            {"id": 1, "b": null, "r": "(,5)", "j": null, "p": "(3,4)", "m": "7"},
            {"id": 0},
            {"b": [], "id": -1, "r": {"empty": true}, "j": "text", "p": null, "m": 1}]}) { id a b r j p m }"#)
        .await
        .unwrap();
    assert_eq!(
        response.data,
        concat!(
            r#"{"t":[{"id":"5","a":null,"b":[7],"r":null,"j":null,"p":null,"m":null},"#,
            r#"{"id":"4","a":"d","b":[7],"r":null,"j":null,"p":null,"m":null},"#,
            r#"{"id":"3","a":"x, \"y\" {z} \\ 'q'","b":[7],"r":null,"j":null,"p":null,"m":null},"#,
            r#"{"id":"2","a":"d","b":[1,null,3],"r":{"lower":1,"upper":4,"lowerInclusive":true,"upperInclusive":false},"j":{"k": [1, "two"]},"p":{"x":1.5,"y":-2},"m":"12345678901234567890.123"},"#,
            r#"{"id":"1","a":"d","b":null,"r":{"lower":null,"upper":5,"lowerInclusive":false,"upperInclusive":false},"j":null,"p":{"x":3,"y":4},"m":"7"},"#,
            r#"{"id":"0","a":"d","b":[7],"r":null,"j":null,"p":null,"m":null},"#,
            r#"{"id":"-1","a":"d","b":[],"r":{"lower":null,"upper":null,"lowerInclusive":false,"upperInclusive":false,"empty":true},"j":"text","p":null,"m":"1"}]}"#,
        )
    );
    assert_eq!(
        response.texts.len(),
        3,
        "one statement for each set of columns: {:?}",
        response.texts
    );
    let defaults = fixture
        .refusal(r#"insert.t({"objects": [{}, {}]}) { id }"#)
        .await;
    assert_eq!(defaults.sqlstate(), Some("23502"));
}

#[tokio::test]
async fn rows_of_defaults_alone_go_in_one_by_one() {
    let fixture = Fixture::new(
        "plan_defaults",
        "create table t (id int generated always as identity, a int default 3)",
    )
    .await;
    let data = fixture
        .data(r#"insert.t({"objects": [{}, {"a": 9}, {}]}) { a }"#)
        .await;
    assert_eq!(data, r#"{"t":[{"a":3},{"a":9},{"a":3}]}"#);
    let none = fixture
        .run(r#"insert.t({"objects": []}) { a }"#)
        .await
        .unwrap();
    assert_eq!((&*none.data, none.texts.len()), (r#"{"t":[]}"#, 0));
}

#[tokio::test]
async fn conflicts_update_or_leave_the_row_there() {
    let fixture = Fixture::new("plan_conflict", MUSIC).await;
    let data = fixture
        .data(r#"insert.genres({"objects": [{"code": "pop", "label": "New"}, {"code": "folk", "label": "Folk"}],
            "onConflict": {"columns": ["code"], "update": ["label"]}}) { code label }"#)
        .await;
    assert_eq!(
        data,
        r#"{"genres":[{"code":"pop","label":"New"},{"code":"folk","label":"Folk"}]}"#
    );
    let data = fixture
        .data(
            r#"insert.genres({"objects": [{"code": "pop"}, {"code": "jazz"}],
            "onConflict": {"constraint": "genres_pkey"}}) { code }"#,
        )
        .await;
    assert_eq!(
        data, r#"{"genres":[{"code":"jazz"}]}"#,
        "what was there is not returned"
    );
    assert_eq!(
        fixture
            .sql("select label from genres where code = 'pop'")
            .await,
        "New"
    );
}

#[tokio::test]
async fn updates_and_deletes_hit_what_passes_and_return_it() {
    let fixture = Fixture::new("plan_change", MUSIC).await;
    let data = fixture
        .data(r#"update.albums({"where": {"artist_id": 1, "price": {"gt": 10}}, "data": {"price": 1, "released": null}}) {
            id price released artists { id } }"#)
        .await;
    assert_eq!(
        data,
        r#"{"albums":[{"id":"11","price":"1.00","released":null,"artists":{"id":"1"}}]}"#
    );
    let data = fixture
        .data(r#"delete.tracks({"where": {"album_id": 12}}) { id albums { tracks { id } } }"#)
        .await;
    assert_eq!(
        data,
        r#"{"tracks":[{"id":"103","albums":{"tracks":[]}},{"id":"104","albums":{"tracks":[]}}]}"#
    );
    assert_eq!(fixture.sql("select count(*)::text from tracks").await, "3");
    let typename = fixture
        .data(r#"delete.tracks({"where": {"album_id": 10}}) { __typename }"#)
        .await;
    assert_eq!(
        typename,
        r#"{"tracks":[{"__typename":"Tracks"},{"__typename":"Tracks"}]}"#
    );
}

#[tokio::test]
async fn relationships_of_written_rows_are_read_by_one_statement() {
    let fixture = Fixture::new("plan_written_rows", MUSIC).await;
    let selection = r#"{ id
        artists { name albums({"order": ["id desc"], "limit": 1}) { title tracks { id } } }
        tracks({"order": ["id"]}) { title genres { label tracks { id } } } }"#;
    for ids in ["10, 11, 12, 13", "13"] {
        let update = format!(
            r#"update.albums({{"where": {{"id": {{"in": [{ids}]}}}}, "data": {{"price": 1}}}}) {selection}"#
        );
        let response = fixture.run(&update).await.unwrap();
        assert_eq!(response.texts.len(), 2, "{:?}", response.texts);
        let read = format!(
            r#"albums({{"where": {{"id": {{"in": [{ids}]}}}}, "order": ["id"]}}) {selection}"#
        );
        assert_eq!(response.data, fixture.data(&read).await);
    }
    let none = r#"update.albums({"where": {"id": 99}, "data": {"price": 1}}) { id tracks { id } }"#;
    assert_eq!(fixture.run(none).await.unwrap().texts.len(), 1);
}

#[tokio::test]
async fn updates_and_deletes_need_a_condition() {
    let fixture = Fixture::new("plan_unbounded", MUSIC).await;
    for text in [
        "delete.tracks { id }",
        r#"delete.tracks({"where": {}}) { id }"#,
        r#"delete.tracks({"where": {"and": []}}) { id }"#,
        r#"update.tracks({"where": {"or": [{}]}, "data": {"title": "x"}}) { id }"#,
    ] {
        let error = fixture.refusal(text).await;
        assert!(place(&error) == "where", "{text}: {error:?}");
    }
    assert_eq!(fixture.sql("select count(*)::text from tracks").await, "5");
}

#[tokio::test]
async fn a_document_is_one_transaction() {
    let fixture = Fixture::new("plan_atomic", MUSIC).await;
    let error = fixture
        .refusal(
            r#"a: insert.genres({"data": {"code": "new"}}) { code }
            b: insert.tracks({"data": {"id": 1, "album_id": 999}}) { id }"#,
        )
        .await;
    let Error::Rejected(rejection) = error else {
        panic!("{error:?}")
    };
    assert_eq!(
        rejection.constraint.as_deref(),
        Some("tracks_album_id_fkey")
    );
    assert_eq!(fixture.sql("select count(*)::text from genres").await, "2");
    let data = fixture
        .data(
            r#"a: insert.genres({"data": {"code": "new"}}) { code }
            b: update.genres({"where": {"code": "new"}, "data": {"label": "L"}}) { label }
            c: delete.genres({"where": {"code": "new"}}) { code label }"#,
        )
        .await;
    assert_eq!(
        data,
        r#"{"a":[{"code":"new"}],"b":[{"label":"L"}],"c":[{"code":"new","label":"L"}]}"#
    );
}

/// The path that an error names.
fn place(error: &Error) -> String {
    match error {
        Error::Input(InputError::Value(ValueError::InvalidValue { place, .. })) => place.clone(),
        Error::Input(InputError::InvalidField { field, .. }) => field.clone(),
        Error::Rejected(rejection) => rejection.place.clone().unwrap_or_default(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn errors_name_the_place_of_the_value() {
    let setup =
        "create table t (id int generated always as identity, n int, d date, a int[], r int4range)";
    let fixture = Fixture::new("plan_places", setup).await;
    for (text, expected) in [
        (
            r#"t({"where": {"and": [{"n": 1}, {"d": {"gt": "2020-13-45"}}]}}) { n }"#,
            "where.and[1].d.gt",
        ),
        (
            r#"insert.t({"data": {"n": 1, "d": "soon"}}) { n }"#,
            "data.d",
        ),
        (r#"insert.t({"data": {"a": [1, {}]}}) { n }"#, "data.a[1]"),
        (r#"insert.t({"data": {"id": 1}}) { n }"#, "data.id"),
        (r#"insert.t({"data": {"nope": 1}}) { n }"#, "data.nope"),
        (r#"insert.t({"data": 5}) { n }"#, "data"),
        (
            r#"insert.t({"objects": [{"n": 1}, {"n": 2}, {"N": 3}]}) { n }"#,
            "objects[2].N",
        ),
        (
            r#"insert.t({"objects": [{"n": 1}, {"n": 2, "r": {"from": 1}}]}) { n }"#,
            "objects[1].r.from",
        ),
        (
            r#"insert.t({"objects": [{"n": 1}, {"n": 2}, {"n": {}}]}) { n }"#,
            "objects[2].n",
        ),
        (
            r#"insert.t({"objects": [{"n": 1}, {"n": 2}, {"n": "x7"}]}) { n }"#,
            "objects[2].n",
        ),
        (
            r#"insert.t({"objects": [{"d": null}, {"d": "2020-01-01"}, {"d": "2020-02-30"}]}) { n }"#,
            "objects[2].d",
        ),
        (
            r#"insert.t({"objects": [{"n": 1}, {"n": 99999999999}]}) { n }"#,
            "objects[1].n",
        ),
        (
            r#"update.t({"where": {"n": 1}, "data": {"d": "x"}}) { n }"#,
            "data.d",
        ),
        (
            r#"update.t({"where": {"n": 1}, "data": {"id": 5}}) { n }"#,
            "data.id",
        ),
    ] {
        let error = fixture.refusal(text).await;
        assert_eq!(place(&error), expected, "{text}: {error:?}");
    }
}

/// PostgreSQL reports only the limit of the column, not the value.
#[tokio::test]
async fn errors_name_the_place_of_a_value_beyond_its_column() {
    let setup = "create domain short as varchar(2); create table t (n int, v varchar(3), w varchar(9), p numeric(5, 2), q numeric, s short)";
    let fixture = Fixture::new("plan_beyond", setup).await;
    for (text, expected, sqlstate) in [
        (
            r#"insert.t({"objects": [{"v": "abc"}, {"v": "abcd"}]}) { n }"#,
            "objects[1].v",
            "22001",
        ),
        (
            r#"insert.t({"data": {"w": "long", "v": "abcd"}}) { n }"#,
            "data.v",
            "22001",
        ),
        (
            r#"insert.t({"data": {"w": "long", "s": "abc"}}) { n }"#,
            "data.s",
            "22001",
        ),
        (
            r#"insert.t({"objects": [{"q": 5000, "p": 1}, {"q": 5000, "p": 999.99}, {"n": 1}, {"q": 5000, "p": 999.995}]}) { n }"#,
            "objects[3].p",
            "22003",
        ),
        (
            r#"insert.t({"objects": [{"q": 5000, "p": "1e3"}]}) { n }"#,
            "objects[0].p",
            "22003",
        ),
    ] {
        let error = fixture.refusal(text).await;
        assert_eq!(place(&error), expected, "{text}: {error:?}");
        assert_eq!(error.sqlstate(), Some(sqlstate));
    }
}
