//! Tests of lists, relationships and limits.

use crate::MUSIC;
use crate::fixture::Fixture;

#[tokio::test]
async fn rows_come_with_their_relationships_at_any_depth() {
    let fixture = Fixture::new("plan_depth", MUSIC).await;
    let response = fixture
        .run(
            r#"artists({"order": ["id"]}) { id name albums({"order": ["id"]}) {
            title tracks({"order": ["id"]}) { id genres { code } } } }"#,
        )
        .await
        .unwrap();
    assert_eq!(
        response.data,
        concat!(
            r#"{"artists":[{"id":"1","name":"Björk","albums":["#,
            r#"{"title":"Debut","tracks":[{"id":"100","genres":{"code":"pop"}},"#,
            r#"{"id":"101","genres":{"code":"el"}}]},"#,
            r#"{"title":"Post","tracks":[{"id":"102","genres":{"code":"pop"}}]}]},"#,
            r#"{"id":"2","name":"Air \"quoted\" \\ back","albums":["#,
            r#"{"title":"Moon Safari","tracks":[{"id":"103","genres":null},"#,
            r#"{"id":"104","genres":{"code":"el"}}]}]},"#,
            r#"{"id":"3","name":"Can","albums":[]}]}"#,
        )
    );
    assert_eq!(response.texts.len(), 1, "{:?}", response.texts);
}

#[tokio::test]
async fn one_list_is_one_statement_and_needs_no_transaction() {
    let fixture = Fixture::new("plan_single", MUSIC).await;
    let response = fixture
        .run(r#"artists({"where": {"id": 1}}) { name }"#)
        .await
        .unwrap();
    assert_eq!(response.data, r#"{"artists":[{"name":"Björk"}]}"#);
    assert_eq!(
        response.texts,
        [
            r#"select t0."name" from "public"."artists" t0 where t0."id" operator(pg_catalog.=) $1::pg_catalog."int4""#
        ],
        "neither order nor limit for one row"
    );
}

/// The document has root fields of one row each, other root fields between them, and a key that
/// does not exist.
#[tokio::test]
async fn rows_by_key_share_a_statement() {
    let fixture = Fixture::new("plan_shared", MUSIC).await;
    let response = fixture
        .run(
            r#"a: artists({"where": {"id": 1}}) { name } b: tracks({"where": {"id": 100}}) {
            bytes albums { title } title } c: artists({"where": {"id": 99}}) { id name }
            d: genres({"order": ["code"]}) { code } e: artists({"where": {"id": 1}}) { country id }"#,
        )
        .await
        .unwrap();
    assert_eq!(
        response.data,
        concat!(
            r#"{"a":[{"name":"Björk"}],"#,
            r#""b":[{"bytes":"9007199254740993","albums":{"title":"Debut"},"title":"Human Behaviour"}],"#,
            r#""c":[],"d":[{"code":"el"},{"code":"pop"}],"e":[{"country":"IS","id":"1"}]}"#,
        )
    );
    assert_eq!(response.texts.len(), 2, "{:?}", response.texts);
}

#[tokio::test]
async fn to_one_relationships_are_joined_and_nest() {
    let fixture = Fixture::new("plan_one", MUSIC).await;
    let response = fixture
        .run(
            r#"tracks({"order": ["id"], "limit": 4}) {
            id albums { title artists { name __typename } } }"#,
        )
        .await
        .unwrap();
    assert_eq!(
        response.data,
        concat!(
            r#"{"tracks":[{"id":"100","albums":{"title":"Debut","artists":{"name":"Björk","__typename":"Artists"}}},"#,
            r#"{"id":"101","albums":{"title":"Debut","artists":{"name":"Björk","__typename":"Artists"}}},"#,
            r#"{"id":"102","albums":{"title":"Post","artists":{"name":"Björk","__typename":"Artists"}}},"#,
            r#"{"id":"103","albums":{"title":"Moon Safari","artists":{"name":"Air \"quoted\" \\ back","__typename":"Artists"}}}]}"#,
        )
    );
    assert_eq!(response.texts.len(), 1);
    let orphan =
        fixture.data(r#"albums({"where": {"id": 13}}) { artists { name albums { id } } }"#);
    assert_eq!(orphan.await, r#"{"albums":[{"artists":null}]}"#);
}

#[tokio::test]
async fn a_list_below_a_joined_row_hangs_on_it() {
    let fixture = Fixture::new("plan_below", MUSIC).await;
    let data = fixture
        .data(
            r#"albums({"order": ["id"]}) { id artists { name albums({"order": ["id"]}) { id } } }"#,
        )
        .await;
    let expected = concat!(
        r#"{"albums":[{"id":"10","artists":{"name":"Björk","albums":[{"id":"10"},{"id":"11"}]}},"#,
        r#"{"id":"11","artists":{"name":"Björk","albums":[{"id":"10"},{"id":"11"}]}},"#,
        r#"{"id":"12","artists":{"name":"Air \"quoted\" \\ back","albums":[{"id":"12"}]}},"#,
        r#"{"id":"13","artists":null}]}"#
    );
    assert_eq!(data, expected);
}

#[tokio::test]
async fn self_references_go_both_ways() {
    let fixture = Fixture::new("plan_self", MUSIC).await;
    let data = fixture
        .data(r#"staff({"order": ["id"]}) { name staff { name } staffByBoss({"order": ["name desc"]}) { name } }"#)
        .await;
    let expected = concat!(
        r#"{"staff":[{"name":"Ada","staff":null,"staffByBoss":[{"name":"Cyd"},{"name":"Bob"}]},"#,
        r#"{"name":"Bob","staff":{"name":"Ada"},"staffByBoss":[]},"#,
        r#"{"name":"Cyd","staff":{"name":"Ada"},"staffByBoss":[{"name":"Dee"}]},"#,
        r#"{"name":"Dee","staff":{"name":"Cyd"},"staffByBoss":[]}]}"#
    );
    assert_eq!(data, expected);
}

#[tokio::test]
async fn each_list_has_its_own_filter_order_limit_and_offset() {
    let fixture = Fixture::new("plan_each", MUSIC).await;
    let data = fixture
        .data(r#"artists({"order": ["id"], "offset": 0}) { albums({"order": ["price desc nulls last"], "limit": 1}) { id } }"#)
        .await;
    assert_eq!(
        data,
        r#"{"artists":[{"albums":[{"id":"11"}]},{"albums":[{"id":"12"}]},{"albums":[]}]}"#
    );
    let data = fixture
        .data(r#"artists({"order": ["id"]}) { albums({"offset": 1, "where": {"price": {"gt": 1}}}) { id } }"#)
        .await;
    assert_eq!(
        data,
        r#"{"artists":[{"albums":[{"id":"11"}]},{"albums":[]},{"albums":[]}]}"#
    );
    let data = fixture
        .data(r#"artists({"order": ["id"]}) { albums({"where": {"price": {"gt": 10}}}) { id } }"#)
        .await;
    assert_eq!(
        data,
        r#"{"artists":[{"albums":[{"id":"11"}]},{"albums":[]},{"albums":[]}]}"#
    );
}

#[tokio::test]
async fn equal_shapes_are_equal_texts_whatever_the_values() {
    let fixture = Fixture::new("plan_shapes", MUSIC).await;
    let mut texts = Vec::new();
    for (name, limit, offset) in [("a", 3, 1), ("b'; drop table artists", 2, 2)] {
        let text = format!(
            r#"artists({{"where": {{"name": {{"gt": "{name}"}}}}, "limit": {limit}, "offset": {offset}}}) {{
                albums({{"limit": 3}}) {{ id }} tracks: albums {{ id }} }}"#
        );
        texts.push(fixture.run(&text).await.unwrap().texts);
    }
    assert_eq!(texts[0], texts[1]);
}

#[tokio::test]
async fn several_roots_stand_in_their_order() {
    let fixture = Fixture::new("plan_roots", MUSIC).await;
    let response = fixture
        .run(r#"b: genres({"order": ["code"]}) { code } a: aggregate.tracks { count }"#)
        .await
        .unwrap();
    assert_eq!(
        response.data,
        r#"{"b":[{"code":"el"},{"code":"pop"}],"a":[{"count":5}]}"#
    );
}

#[tokio::test]
async fn selections_without_columns_still_have_rows() {
    let fixture = Fixture::new("plan_bare", MUSIC).await;
    let data = fixture
        .data(r#"genres { __typename } albums({"where": {"id": 10}}) { artists { __typename } }"#);
    assert_eq!(
        data.await,
        r#"{"genres":[{"__typename":"Genres"},{"__typename":"Genres"}],"albums":[{"artists":{"__typename":"Artists"}}]}"#
    );
}

#[tokio::test]
async fn aggregates_count_and_group() {
    let fixture = Fixture::new("plan_aggregate", MUSIC).await;
    let data = fixture
        .data(
            r#"aggregate.albums({"where": {"artist_id": {"isNull": false}}}) {
            count sum { price } avg { price } min { released title } max { id } __typename }"#,
        )
        .await;
    assert_eq!(
        data,
        concat!(
            r#"{"albums":[{"count":3,"sum":{"price":"20.49"},"avg":{"price":"10.2450000000000000"},"#,
            r#""min":{"released":"1993-07-05","title":"Debut"},"max":{"id":"12"},"__typename":"Group"}]}"#
        )
    );
    let data = fixture
        .data(r#"aggregate.tracks({"groupBy": ["genre"]}) { genre n: count sum { bytes } }"#);
    let mut groups = data.await;
    groups = groups.replace(r#"{"tracks":["#, "").replace("]}", "");
    let mut groups: Vec<_> = groups
        .split("},{")
        .map(|g| g.trim_matches(['{', '}']).to_owned())
        .collect();
    groups.sort();
    assert_eq!(
        groups,
        [
            r#""genre":"el","n":2,"sum":{"bytes":"5""#,
            r#""genre":"pop","n":2,"sum":{"bytes":"9007199254740995""#,
            r#""genre":null,"n":1,"sum":{"bytes":null"#,
        ]
    );
    let nothing = fixture
        .data(r#"aggregate.albums({"where": {"id": -1}}) { __typename }"#)
        .await;
    assert_eq!(
        nothing, r#"{"albums":[{"__typename":"Group"}]}"#,
        "one group of no rows"
    );
}

#[tokio::test]
async fn a_sum_that_is_no_number_is_null_with_its_path() {
    let fixture = Fixture::new("plan_no_sum", MUSIC).await;
    let response = fixture
        .run("n: aggregate.tracks { s: sum { seconds } count }")
        .await
        .unwrap();
    assert_eq!(response.data, r#"{"n":[{"s":{"seconds":null},"count":5}]}"#);
    assert_eq!(response.field_errors(), ["n.0.s.seconds"]);
}
