//! Tests reading with GraphQL (API.md, "GraphQL").

use serde_json::{Value, json};

use crate::graphql::{ask, code, data};
use crate::service::demo;

async fn names(user: &str, condition: Value) -> Vec<String> {
    let query = "query($w: JSON) { getArtists(where: $w, orderBy: {id: \"asc\"}) { name } }";
    let data = data(user, query, json!({"w": condition})).await;
    let rows = data["getArtists"].as_array().unwrap();
    rows.iter()
        .map(|row| row["name"].as_str().unwrap().to_owned())
        .collect()
}

async fn by_sql(condition: &str) -> Vec<String> {
    let rows = demo()
        .rows(
            "demo",
            &format!("select name from artists where {condition} order by id"),
            json!({}),
        )
        .await;
    let rows = rows["data"].as_array().unwrap().clone();
    rows.iter()
        .map(|row| row["name"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn conditions_mean_what_sql_means() {
    let cases = [
        (json!(null), "true"),
        (json!({}), "true"),
        (json!({"id": 3}), "id = 3"),
        (json!({"id": "3"}), "id = 3"),
        (json!({"id": {"gt": 5, "lte": 9}}), "id > 5 and id <= 9"),
        (
            json!({"id": {"neq": 5}, "country": "GB"}),
            "id <> 5 and country = 'GB'",
        ),
        (json!({"id": {"in": [1, 2, "3"]}}), "id in (1, 2, 3)"),
        (json!({"id": {"in": []}}), "false"),
        (json!({"id": {"nin": [1, 2]}}), "id not in (1, 2)"),
        (json!({"name": {"like": "The%"}}), "name like 'The%'"),
        (
            json!({"name": {"ilike": "%RADIO%"}}),
            "name ilike '%RADIO%'",
        ),
        (
            json!({"name": {"startsWith": "The"}}),
            "starts_with(name, 'The')",
        ),
        (json!({"name": {"regex": "^[A-C]"}}), "name ~ '^[A-C]'"),
        (json!({"website": null}), "website is null"),
        (json!({"website": {"eq": null}}), "website is null"),
        (json!({"website": {"neq": null}}), "website is not null"),
        (json!({"website": {"isNull": true}}), "website is null"),
        (
            json!({"OR": [{"id": 1}, {"And": [{"id": {"gt": 3}}, {"id": {"lt": 6}}]}]}),
            "id = 1 or id in (4, 5)",
        ),
        (json!({"not": {"country": "GB"}}), "not (country = 'GB')"),
        (
            json!({"NOT": [{"id": {"gt": 2}}, {"id": {"lt": 8}}]}),
            "not (id > 2 and id < 8)",
        ),
        (
            json!({"albums": {"price": {"gt": 18}}}),
            "exists (select from albums a where a.artist_id = artists.id and price > 18)",
        ),
        (
            json!({"formed": {"gte": "1999-05-01"}}),
            "formed >= '1999-05-01'",
        ),
    ];
    for (condition, sql) in cases {
        assert_eq!(
            names("demo", condition.clone()).await,
            by_sql(sql).await,
            "{condition}"
        );
    }
}

#[tokio::test]
async fn what_is_wrong_with_a_condition_is_named() {
    let cases = [
        (json!({"nothing": 1}), "where.nothing"),
        (
            json!({"and": [{"name": {"near": 1}}]}),
            "where.and[0].name.near",
        ),
        (json!({"id": {"gt": {}}}), "where.id.gt"),
        (json!({"id": 99_999_999_999_i64}), "where.id"),
        (json!([]), "where"),
        (json!({"albums": {"nothing": 1}}), "where.albums.nothing"),
    ];
    for (condition, place) in cases {
        let query = "query($w: JSON) { getArtists(where: $w) { id } }";
        let response = ask(Some("demo"), query, json!({"w": condition})).await;
        let error = &response["errors"][0];
        assert_eq!(error["extensions"]["code"], "BAD_USER_INPUT", "{response}");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(&format!("`{place}`")), "{message}");
    }
}

#[tokio::test]
async fn variables_work_inside_a_literal_and_must_have_a_value_there() {
    let query = "query($n: String, $id: Int) { getArtists(where: {or: [{name: $n}, {id: {eq: $id}}]}) { id } }";
    let found = data("demo", query, json!({"n": "nobody", "id": 2})).await;
    assert_eq!(found, json!({"getArtists": [{"id": "2"}]}));
    assert_eq!(
        code("demo", query, json!({"n": "x"})).await,
        "BAD_USER_INPUT"
    );
    let query = "query($w: JSON) { getArtists(where: $w, limit: 1) { __typename } }";
    assert_eq!(
        data("demo", query, json!({})).await,
        json!({"getArtists": [{"__typename": "Artists"}]})
    );
}

#[tokio::test]
async fn rows_are_ordered_and_paged() {
    let query = "{ a: getArtists(orderBy: {id: \"desc\"}, limit: 2, offset: 1) { id } b: getArtists(orderBy: [{country: desc_nulls_last}, {id: asc}], limit: 1) { country } c: getArtists(limit: 2) { id } }";
    let found = data("demo", query, json!({})).await;
    let last = demo()
        .rows("demo", "select max(id) as id from artists", json!({}))
        .await["data"][0]["id"]
        .as_i64()
        .unwrap();
    assert_eq!(
        found["a"],
        json!([{"id": (last - 1).to_string()}, {"id": (last - 2).to_string()}])
    );
    let most = demo()
        .rows("demo", "select max(country) as c from artists", json!({}))
        .await;
    assert_eq!(found["b"][0]["country"], most["data"][0]["c"]);
    assert_eq!(found["c"], json!([{"id": "1"}, {"id": "2"}]));
    for bad in [
        "orderBy: {nothing: asc}",
        "orderBy: {id: up}",
        "orderBy: 1",
        "limit: -1",
        "offset: -1",
    ] {
        let query = format!("{{ getArtists({bad}) {{ id }} }}");
        assert_eq!(
            code("demo", &query, json!({})).await,
            "BAD_USER_INPUT",
            "{bad}"
        );
    }
}

#[tokio::test]
async fn every_cut_is_reported() {
    let count = demo()
        .rows("demo", "select count(*)::int as n from tracks", json!({}))
        .await["data"][0]["n"]
        .as_i64()
        .unwrap();
    assert!(count > 1_000);
    let response = ask(
        Some("demo"),
        "{ getTracks { id } few: getTracks(limit: 3) { id } all: getTracks(limit: 10000) { id } }",
        json!({}),
    )
    .await;
    assert_eq!(
        response["data"]["getTracks"].as_array().unwrap().len(),
        1_000
    );
    assert_eq!(
        i64::try_from(response["data"]["all"].as_array().unwrap().len()).unwrap(),
        count
    );
    assert_eq!(
        response["extensions"],
        json!({"truncated": [["getTracks"]]})
    );
}

#[tokio::test]
async fn a_row_is_found_by_its_key_where_that_is_one_column() {
    let found = data("demo", "query($i: ID) { a: getArtists(id: $i) { id } b: getArtists(id: 2, where: {id: 3}) { id } c: getArtists(id: null) { id } }", json!({"i": 3})).await;
    assert_eq!(found, json!({"a": [{"id": "3"}], "b": [], "c": []}));
    assert_eq!(
        code(
            "demo",
            "{ getPlaylistTracks(id: 1) { position } }",
            json!({})
        )
        .await,
        "GRAPHQL_VALIDATION_FAILED"
    );
}

#[tokio::test]
async fn relationships_go_both_ways() {
    let query = "{ getAlbums(id: 1) { artist_id artists { id } albumsArtistIdFkey { id albums(where: {id: 1}) { id } } tracks(orderBy: {id: asc}, limit: 1, offset: 1) { title } none: tracks(where: {title: \"none\"}) { id } } }";
    let found = data("demo", query, json!({})).await;
    let album = &found["getAlbums"][0];
    let artist = album["artist_id"].as_i64().unwrap().to_string();
    assert_eq!(album["artists"]["id"], *artist);
    assert_eq!(
        album["albumsArtistIdFkey"],
        json!({"id": artist, "albums": [{"id": "1"}]})
    );
    assert_eq!(album["tracks"].as_array().unwrap().len(), 1);
    assert_eq!(album["none"], json!([]));
    let composite = data(
        "demo",
        "{ getPlaylistTracks(limit: 1) { playlist_id track_id playlists { id } tracks { id } } }",
        json!({}),
    )
    .await;
    let row = &composite["getPlaylistTracks"][0];
    assert_eq!(row["playlists"]["id"], row["playlist_id"]);
    assert_eq!(row["tracks"]["id"], row["track_id"]);
}

#[tokio::test]
async fn values_have_the_forms_of_their_types() {
    demo().rows("demo", "create table if not exists gql_values (id int8 primary key, i int4, b int8, n numeric, f float8, t text, yes bool, j jsonb, d date, tm time, ts timestamp, tz timestamptz, p point, l line, s lseg, bx box, c circle, pa path, po polygon, r int4range, rb int8range, dr daterange, e int4range, tags text[], grid int[], nan float8, iv interval, u uuid)", json!({})).await;
    demo().rows("demo", "insert into gql_values values (9007199254740993, 1, 9007199254740993, 1.50, 0.1, E'a\"\\n', true, '{\"a\": [1.00]}', '2024-02-29', '12:30', '2024-02-29 12:30', '2024-02-29 12:30+02', '(1,2)', '{1,2,3}', '((0,0),(1,1))', '((1,1),(0,0))', '<(1,2),3>', '((0,0),(1,1))', '((0,0),(1,1),(2,0))', '[1,5)', '[1,5)', '[2024-01-01,)', 'empty', '{a,null}', '{{1,2},{3,4}}', 'NaN', '1 day', '00000000-0000-0000-0000-000000000001') on conflict do nothing", json!({})).await;
    let query = "{ getGqlValues { id i b n f t yes j d tm ts tz p { x y } l { A B C } s { start { x } end { y } } bx { start { x } end { x } } c { center { x y } radius } pa { open points { x y } } po { points { x } } r { lower upper lowerInclusive upperInclusive } rb { lower } dr { lower upper } e { lower empty } tags iv u } }";
    let found = data("demo", query, json!({})).await;
    assert_eq!(
        found["getGqlValues"][0],
        json!({
            "id": "9007199254740993", "i": 1, "b": "9007199254740993", "n": "1.50", "f": 0.1, "t": "a\"\n",
            "yes": true, "j": {"a": [1.0]}, "d": "2024-02-29", "tm": "12:30:00",
            "ts": "2024-02-29T12:30:00", "tz": "2024-02-29T10:30:00Z",
            "p": {"x": 1, "y": 2}, "l": {"A": 1, "B": 2, "C": 3}, "s": {"start": {"x": 0}, "end": {"y": 1}},
            "bx": {"start": {"x": 1}, "end": {"x": 0}}, "c": {"center": {"x": 1, "y": 2}, "radius": 3},
            "pa": {"open": false, "points": [{"x": 0, "y": 0}, {"x": 1, "y": 1}]},
            "po": {"points": [{"x": 0}, {"x": 1}, {"x": 2}]},
            "r": {"lower": 1, "upper": 5, "lowerInclusive": true, "upperInclusive": false},
            "rb": {"lower": "1"}, "dr": {"lower": "2024-01-01", "upper": null},
            "e": {"lower": null, "empty": true}, "tags": ["a", null], "iv": {"y": 0, "m": 0, "d": 1, "h": 0, "i": 0, "s": 0},
            "u": "00000000-0000-0000-0000-000000000001",
        })
    );
    // A value that cannot be represented is an error with a path; the rest is returned.
    let response = ask(Some("demo"), "{ getGqlValues { i grid nan } }", json!({})).await;
    assert_eq!(
        response["data"],
        json!({"getGqlValues": [{"i": 1, "grid": null, "nan": null}]})
    );
    let paths: Vec<_> = response["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|error| error["path"].clone())
        .collect();
    assert_eq!(
        paths,
        [
            json!(["getGqlValues", 0, "grid"]),
            json!(["getGqlValues", 0, "nan"])
        ]
    );
    assert_eq!(
        response["errors"][0]["extensions"]["code"],
        "BAD_USER_INPUT"
    );
}

#[tokio::test]
async fn aggregates_are_those_of_sql() {
    let query = "{ getAlbumsAggregate(where: {id: {lte: 20}}, groupBy: [\"artist_id\"]) { artist_id count sum { price } max { released } } all: getAlbumsAggregate { count } none: getAlbumsAggregate(where: {id: -1}) { count sum { price } } }";
    let found = data("demo", query, json!({})).await;
    let rows = demo().rows("demo", "select artist_id, count(*)::int as count, sum(price)::text as sum, max(released)::text as max from albums where id <= 20 group by 1 order by 1", json!({})).await;
    let mut groups = found["getAlbumsAggregate"].as_array().unwrap().clone();
    groups.sort_by_key(|group| group["artist_id"].as_i64());
    let expected: Vec<_> = rows["data"].as_array().unwrap().iter().map(|row| {
        json!({"artist_id": row["artist_id"], "count": row["count"], "sum": {"price": row["sum"]}, "max": {"released": row["max"]}})
    }).collect();
    assert_eq!(groups, expected);
    assert_eq!(found["none"], json!([{"count": 0, "sum": {"price": null}}]));
    let ungrouped = "{ getAlbumsAggregate { artist_id } }";
    assert_eq!(code("demo", ungrouped, json!({})).await, "BAD_USER_INPUT");
}

#[tokio::test]
async fn the_whole_language_works() {
    let query = "query One { __typename } query Two($more: Boolean = false) { x: getArtists(id: 1) { ...f ... on Artists { again: id } id @skip(if: $more) name @include(if: $more) albums(limit: 1) { id } albums(limit: 1) { title } } } fragment f on Artists { __typename }";
    let body = json!({"query": query, "operationName": "Two"});
    let response = demo()
        .ask(
            reqwest::Method::POST,
            crate::graphql::PUBLIC,
            None,
            Some(body.to_string()),
        )
        .await;
    let row = &response.json()["data"]["x"][0];
    let keys: Vec<_> = row.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["__typename", "again", "id", "albums"]);
    let keys: Vec<_> = row["albums"][0].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["id", "title"]);
}

#[tokio::test]
async fn lists_ranges_and_documents_have_conditions_of_their_own() {
    demo().rows("demo", "create table if not exists gql_sets (id int primary key, tags text[], r int4range, j jsonb, name text)", json!({})).await;
    demo().rows("demo", "insert into gql_sets values (1, '{a,b}', '[1,5)', '{\"a\": 1, \"b\": 2}', 'One'), (2, '{c}', '[5,9)', '{\"a\": 2}', 'two%') on conflict do nothing", json!({})).await;
    for (condition, ids) in [
        (json!({"tags": {"contains": ["a"]}}), json!(["1"])),
        (json!({"tags": {"containedBy": ["c", "d"]}}), json!(["2"])),
        (json!({"tags": {"overlaps": ["b", "c"]}}), json!(["1", "2"])),
        (
            json!({"r": {"overlaps": {"lower": 4, "upper": 5}}}),
            json!(["1"]),
        ),
        (json!({"j": {"contains": {"a": 2}}}), json!(["2"])),
        (json!({"name": {"contains": "n"}}), json!(["1"])),
        (json!({"name": {"endsWith": "%"}}), json!(["2"])),
        (json!({"name": {"iregex": "^o"}}), json!(["1"])),
    ] {
        let query = "query($w: JSON) { getGqlSets(where: $w, orderBy: {id: asc}) { id } }";
        let found = data("demo", query, json!({"w": condition})).await;
        let rows = found["getGqlSets"].as_array().unwrap().iter();
        let found: Vec<_> = rows.map(|row| row["id"].clone()).collect();
        assert_eq!(json!(found), ids, "{condition}");
    }
}

#[tokio::test]
async fn a_page_is_in_the_order_of_the_primary_key_and_a_long_one_says_that_it_was_cut() {
    demo()
        .rows(
            "demo",
            "create table if not exists gql_pages (id int primary key)",
            json!({}),
        )
        .await;
    demo().rows("demo", "insert into gql_pages select n from generate_series(10001, 1, -1) n on conflict do nothing", json!({})).await;
    let query = "{ a: getGqlPages(limit: 2) { id } b: getGqlPages(offset: 9999) { id } c: getGqlPages(limit: 20000) { __typename } }";
    let response = ask(Some("demo"), query, json!({})).await;
    assert_eq!(response["data"]["a"], json!([{"id": "1"}, {"id": "2"}]));
    assert_eq!(
        response["data"]["b"],
        json!([{"id": "10000"}, {"id": "10001"}])
    );
    assert_eq!(response["data"]["c"].as_array().unwrap().len(), 10_000);
    assert_eq!(response["extensions"], json!({"truncated": [["c"]]}));
}

/// With `offset` and without `limit`, a page has at most a thousand rows, in the order of the key.
/// The response says if the list was cut.
#[tokio::test]
async fn an_offset_alone_makes_a_page_of_a_thousand() {
    let setup = "create table gql_offsets (id int primary key)";
    demo().rows("demo", setup, json!({})).await;
    let fill = "insert into gql_offsets select n from generate_series(1002, 1, -1) n";
    demo().rows("demo", fill, json!({})).await;
    let query = "{ cut: getGqlOffsets(offset: 1) { id } whole: getGqlOffsets(offset: 2) { id } }";
    let response = ask(Some("demo"), query, json!({})).await;
    for (key, first, last) in [("cut", "2", "1001"), ("whole", "3", "1002")] {
        let rows = response["data"][key].as_array().unwrap();
        assert_eq!(rows.len(), 1_000, "{key}");
        assert_eq!(
            (&rows[0]["id"], &rows[999]["id"]),
            (&json!(first), &json!(last)),
            "{key}"
        );
    }
    assert_eq!(response["extensions"], json!({"truncated": [["cut"]]}));
}

/// Variables may be values, parts of lists, lists or conditions, and may have defaults.
#[tokio::test]
async fn variables_stand_anywhere_in_a_condition_and_have_defaults() {
    let list =
        "query($i: [ID!]) { x: getArtists(where: {id: {in: $i}}, orderBy: {id: asc}) { id } }";
    let item = "query($i: ID!, $j: Int = 2) { x: getArtists(where: {or: [{id: {in: [$i, $j]}}]}, orderBy: {id: asc}) { id } }";
    let part = "query($w: JSON) { x: getArtists(where: {and: [$w, {id: {lt: 3}}]}, orderBy: {id: asc}) { id } }";
    let whole = "query($w: JSON = {id: {in: [1, 2]}}, $l: Int = 1) { x: getArtists(where: $w, limit: $l) { id } }";
    for (query, variables, ids) in [
        (list, json!({"i": [1, "2"]}), &["1", "2"][..]),
        // A single value is coerced to a list.
        (list, json!({"i": 3}), &["3"]),
        (item, json!({"i": 4}), &["2", "4"]),
        (item, json!({"i": "4", "j": 1}), &["1", "4"]),
        (part, json!({"w": {"id": {"gt": 1}}}), &["2"]),
        (whole, json!({}), &["1"]),
        (whole, json!({"l": 5}), &["1", "2"]),
        (whole, json!({"w": {"id": 3}}), &["3"]),
    ] {
        let found = data("demo", query, variables.clone()).await;
        let ids: Vec<_> = ids.iter().map(|id| json!({"id": id})).collect();
        assert_eq!(found["x"], json!(ids), "{query} {variables}");
    }
}
