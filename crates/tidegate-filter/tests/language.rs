//! Tests of the where language against PostgreSQL.

use serde_json::json;
use tidegate_catalog::Schema;
use tokio_postgres::Client;

use crate::fixture;

const TABLES: &str = r#"
create extension citext; create schema ext; create extension hstore schema ext;
create type mood as enum ('sad', 'ok', 'glad');
create domain positive as int check (value > 0);
create type pair as (a int, b text);
create table artists (id int primary key, name text not null);
create table things (
    id int primary key, artist int references artists, i2 int2, i8 int8, n numeric, f4 float4,
    f8 float8, b bool, t text, v varchar(10), c char(5), nm name, ci citext, m mood, d positive,
    u uuid, by bytea, iv interval, da date, ti time, tz timetz, ts timestamp, tsz timestamptz,
    j json, jb jsonb, x xml, ia int[], ta text[], ma mood[], r int4range, dr daterange,
    mr int4multirange, p pair, pt point, bx box, ln line, ls lseg, pa path, po polygon, ci2 circle,
    ip inet, cd cidr, ma6 macaddr, bt bit(3), vb varbit, mo money, h ext.hstore, o oid,
    lsn pg_lsn, "ch" "char", tv tsvector
);
insert into artists values (1, 'Ann'), (2, 'Bob');
insert into things values (
    1, 1, 2, 3, 1.50, 1.5, 2.5, true, '50%_off\', 'var', 'ab', 'nm', 'CiTeXt', 'ok', 7,
    'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '\x010203', '1 hour', '2024-02-29', '10:00', '10:00+02',
    '2024-02-29 10:00', '2024-02-29 10:00+00', '{"a":1}', '{"a":[1,2],"b":"x"}', '<a/>', '{1,2,NULL}',
    '{a,"b,c"}', '{ok,glad}', '[1,5)', '[2024-01-01,2024-02-01)', '{[1,3),[5,7)}', '(1,x)', '(1,2)',
    '(1,1),(0,0)', '{1,2,3}', '[(0,0),(1,1)]', '((0,0),(1,1))', '((0,0),(1,1),(1,0))', '<(0,0),1>',
    '10.0.0.1/8', '10.0.0.0/8', '08:00:2b:01:02:03', B'101', B'10', '12.34', 'a=>1', 42, '0/10', 'x',
    'fat cat'
);
insert into things (id) values (2);
"#;

async fn fixture() -> (Client, Schema) {
    let client = fixture::database("filter_language", TABLES).await;
    let things = fixture::columns(&client, "things").await;
    let artists = fixture::columns(&client, "artists").await;
    let schema = fixture::schema(
        "public",
        &[("things", things), ("artists", artists)],
        &[(
            "things_artist_fkey",
            ("things", "artist"),
            ("artists", "id"),
        )],
    );
    // With an empty search path, only names with a schema are found.
    client.batch_execute("set search_path = ''").await.unwrap();
    (client, schema)
}

async fn ids(client: &Client, schema: &Schema, json: &str) -> Vec<i32> {
    let filter =
        fixture::parse(schema, "things", json).unwrap_or_else(|error| panic!("{json}: {error}"));
    let relation = schema.find("things").unwrap();
    let bound = fixture::select(schema, relation, &filter, "t0.id");
    let rows = fixture::run(client, &bound)
        .await
        .unwrap_or_else(|error| panic!("{json}: {}: {error:?}", bound.statement.text()));
    let mut ids: Vec<i32> = rows.iter().map(|row| row.get(0)).collect();
    ids.sort_unstable();
    ids
}

/// Filters that the first row passes and the second one does not.
const PASSES: &[&str] = &[
    r#"{"id": 1}"#,
    r#"{"id": "1"}"#,
    r#"{"i2": {"in": [1, "2", null]}}"#,
    r#"{"i8": {"gte": "3", "lt": 4}}"#,
    r#"{"n": 1.5}"#,
    r#"{"n": "1.500"}"#,
    r#"{"f4": 1.5}"#,
    r#"{"f8": {"nin": [1, 2]}}"#,
    r#"{"b": true}"#,
    r#"{"b": {"neq": false}}"#,
    r#"{"t": {"startsWith": "50%_"}}"#,
    r#"{"t": {"endsWith": "off\\"}}"#,
    r#"{"t": {"contains": "%_"}}"#,
    r#"{"t": {"like": "50\\%%"}}"#,
    r#"{"t": {"ilike": "%OFF%"}}"#,
    r#"{"t": {"regex": "^5"}}"#,
    r#"{"t": {"iregex": "OFF"}}"#,
    r#"{"t": {"gt": "5"}}"#,
    r#"{"v": "var"}"#,
    r#"{"v": {"in": ["var", "longer than ten characters"]}}"#,
    r#"{"v": {"like": "v%"}}"#,
    r#"{"c": "ab"}"#,
    r#"{"c": "ab "}"#,
    r#"{"c": {"in": ["ab"]}}"#,
    r#"{"c": {"startsWith": "ab"}}"#,
    r#"{"nm": "nm"}"#,
    r#"{"nm": {"like": "n_"}}"#,
    r#"{"nm": {"in": ["nm"]}}"#,
    r#"{"ci": "citext"}"#,
    r#"{"ci": {"in": ["CITEXT"]}}"#,
    r#"{"ci": {"like": "cite%"}}"#,
    r#"{"ci": {"startsWith": "CIT"}}"#,
    r#"{"ci": {"regex": "^cit"}}"#,
    r#"{"m": "ok"}"#,
    r#"{"m": {"gt": "sad"}}"#,
    r#"{"m": {"in": ["ok", "glad"]}}"#,
    r#"{"d": 7}"#,
    r#"{"d": {"gt": -5}}"#,
    r#"{"d": {"in": [7, -1]}}"#,
    r#"{"u": "{A0EEBC999C0B4EF8BB6D6BB9BD380A11}"}"#,
    r#"{"by": "AQID"}"#,
    r#"{"by": {"in": ["\\x010203"]}}"#,
    r#"{"iv": {"h": 1}}"#,
    r#"{"iv": "60 minutes"}"#,
    r#"{"iv": {"in": [{"i": 60}]}}"#,
    r#"{"da": "2024-02-29"}"#,
    r#"{"da": "Feb 29, 2024"}"#,
    r#"{"da": {"lt": "infinity"}}"#,
    r#"{"ti": "10:00"}"#,
    r#"{"tz": "10:00+02"}"#,
    r#"{"ts": "2024-02-29T10:00:00"}"#,
    r#"{"tsz": "2024-02-29T12:00:00+02:00"}"#,
    r#"{"j": {"isNull": false}}"#,
    r#"{"x": {"isNull": false}}"#,
    r#"{"jb": {"eq": {"b": "x", "a": [1, 2]}}}"#,
    r#"{"jb": {"contains": {"a": [2]}}}"#,
    r#"{"jb": {"containedBy": {"a": [1, 2, 3], "b": "x", "c": 1}}}"#,
    r#"{"jb": {"overlaps": ["q", "b"]}}"#,
    r#"{"jb": {"in": [{"b": "x", "a": [1, 2]}]}}"#,
    r#"{"ia": [1, 2, null]}"#,
    r#"{"ia": {"contains": [2]}}"#,
    r#"{"ia": {"overlaps": [2, 9]}}"#,
    r#"{"ia": {"in": [[5], [1, 2, null]]}}"#,
    r#"{"ia": {"nin": [[5], [6]]}}"#,
    r#"{"ta": {"contains": ["b,c"]}}"#,
    r#"{"ta": {"containedBy": ["b,c", "a", "z"]}}"#,
    r#"{"ma": ["ok", "glad"]}"#,
    r#"{"ma": {"contains": ["glad"]}}"#,
    r#"{"r": {"lower": 1, "upper": 5}}"#,
    r#"{"r": {"contains": 4}}"#,
    r#"{"r": {"contains": "[2,3]"}}"#,
    r#"{"r": {"containedBy": {"lower": 0}}}"#,
    r#"{"r": {"overlaps": {"lower": 4}}}"#,
    r#"{"r": {"in": ["[1,4]"]}}"#,
    r#"{"dr": {"contains": "2024-01-15"}}"#,
    r#"{"mr": [{"lower": 1, "upper": 3}, {"lower": 5, "upper": 7}]}"#,
    r#"{"mr": {"contains": 6}}"#,
    r#"{"mr": {"contains": {"lower": 5, "upper": 6}}}"#,
    r#"{"mr": {"overlaps": "[2,4)"}}"#,
    r#"{"mr": {"containedBy": "[0,9)"}}"#,
    r#"{"mr": {"contains": "{[1,2)}"}}"#,
    r#"{"p": {"a": 1, "b": "x"}}"#,
    r#"{"p": {"in": [{"a": 1, "b": "x"}]}}"#,
    r#"{"p": {"gt": {"a": 0, "b": "z"}}}"#,
    r#"{"pt": {"x": 1, "y": 2}}"#,
    r#"{"pt": {"in": [{"x": 1, "y": 2}]}}"#,
    r#"{"pt": {"neq": {"x": 1, "y": 3}}}"#,
    r#"{"bx": "(0,0),(1,1)"}"#,
    r#"{"bx": {"neq": "(0,0),(-1,1)"}}"#,
    r#"{"bx": {"in": ["(0,0),(1,1)"]}}"#,
    r#"{"ln": {"A": 1, "B": 2, "C": 3}}"#,
    r#"{"ls": "[(0,0),(1,1)]"}"#,
    r#"{"pa": {"isNull": false}}"#,
    r#"{"po": [{"x": 0, "y": 0}, {"x": 1, "y": 1}, {"x": 1, "y": 0}]}"#,
    r#"{"po": {"points": [{"x": 0, "y": 0}, {"x": 1, "y": 1}, {"x": 1, "y": 0}]}}"#,
    r#"{"ci2": {"center": {"x": 0, "y": 0}, "radius": 1}}"#,
    r#"{"ip": "10.0.0.1/8"}"#,
    r#"{"cd": {"gte": "10.0.0.0/8"}}"#,
    r#"{"ma6": {"in": ["08-00-2b-01-02-03"]}}"#,
    r#"{"bt": "101"}"#,
    r#"{"vb": {"in": ["10"]}}"#,
    r#"{"mo": 12.34}"#,
    r#"{"mo": {"lt": "$100"}}"#,
    r#"{"h": "a=>1"}"#,
    r#"{"h": {"in": ["a=>1"]}}"#,
    r#"{"o": 42}"#,
    r#"{"lsn": {"gt": "0/1"}}"#,
    r#"{"ch": "x"}"#,
    r#"{"tv": "'cat' 'fat'"}"#,
    r#"{"artists": {"name": {"startsWith": "A"}}}"#,
    r#"{"artists": {"things": {"id": 1}}}"#,
    r#"{"not": {"id": 2}}"#,
    r#"{"or": [{"id": 1}, {"t": "x"}]}"#,
    r#"{"t": {"neq": "a"}, "b": true}"#,
];

#[tokio::test]
async fn every_type_finds_its_row_by_every_operator_it_has() {
    let (client, schema) = fixture().await;
    for json in PASSES {
        assert_eq!(ids(&client, &schema, json).await, [1], "{json}");
    }
}

#[tokio::test]
async fn null_and_empty_lists_have_the_truth_of_sql() {
    let client = fixture::database("filter_nulls", TABLES).await;
    let things = fixture::columns(&client, "things").await;
    let schema = fixture::schema("public", &[("things", things)], &[]);
    for (json, expected) in [
        (r#"{"t": null}"#, &[2][..]),
        (r#"{"t": {"eq": null}}"#, &[2]),
        (r#"{"t": {"neq": null}}"#, &[1]),
        (r#"{"p": {"isNull": true}}"#, &[2]),
        (r#"{"p": {"isNull": false}}"#, &[1]),
        (r#"{"t": {"in": []}}"#, &[]),
        (r#"{"t": {"nin": []}}"#, &[1, 2]),
        (r#"{"t": {"nin": ["a", null]}}"#, &[]),
        (r#"{"not": {"t": {"in": ["a", null]}}}"#, &[]),
        (r#"{"not": {"t": "a"}}"#, &[1]),
        (r#"{"or": [{"t": "a"}, {"t": null}]}"#, &[2]),
        (r#"{"and": []}"#, &[1, 2]),
        (r#"{"or": []}"#, &[]),
        (r#"{"not": []}"#, &[]),
        (r#"{"pt": {"nin": [{"x": 0, "y": 0}, null]}}"#, &[]),
        (r#"{"ia": {"nin": [[5], null]}}"#, &[]),
    ] {
        assert_eq!(ids(&client, &schema, json).await, expected, "{json}");
    }
}

#[tokio::test]
async fn null_in_a_list_of_documents_is_the_json_null() {
    let client = fixture::database("filter_json_null", TABLES).await;
    let things = fixture::columns(&client, "things").await;
    let schema = fixture::schema("public", &[("things", things)], &[]);
    let more = "insert into things (id, jb) values (3, 'null'), (4, '[null]'), (5, '\"null\"')";
    client.batch_execute(more).await.unwrap();
    for (json, expected) in [
        (r#"{"jb": {"in": [null]}}"#, &[3][..]),
        (r#"{"jb": {"in": [null, [null], "null"]}}"#, &[3, 4, 5]),
        (r#"{"jb": {"nin": [null]}}"#, &[1, 4, 5]),
        (r#"{"jb": {"in": ["null"]}}"#, &[5]),
        (r#"{"jb": {"eq": null}}"#, &[2]),
        (r#"{"jb": {"isNull": false}}"#, &[1, 3, 4, 5]),
        (
            r#"{"jb": {"in": [{"b": "x", "a": [1, 2]}, "\\ \""]}}"#,
            &[1],
        ),
    ] {
        assert_eq!(ids(&client, &schema, json).await, expected, "{json}");
    }
}

#[tokio::test]
async fn an_index_serves_whatever_the_type() {
    let client = fixture::database("filter_indexes", TABLES).await;
    let things = fixture::columns(&client, "things").await;
    let indexed = [
        "i2", "i8", "n", "f4", "b", "t", "v", "c", "nm", "ci", "m", "d", "u", "by", "iv", "da",
        "tsz", "ia", "r", "jb", "p", "ip", "h",
    ];
    for name in indexed {
        client
            .batch_execute(&format!("create index on things ({name})"))
            .await
            .unwrap();
    }
    client
        .batch_execute("insert into things (id) select generate_series(10, 3000); analyze things; set enable_seqscan = off; set plan_cache_mode = force_generic_plan; set search_path = ''")
        .await
        .unwrap();
    let schema = fixture::schema("public", &[("things", things)], &[]);
    let relation = schema.find("things").unwrap();
    for name in indexed {
        let eq = match name {
            "b" => json!(true),
            "ia" => json!([1]),
            "r" => json!("[1,2)"),
            "p" => json!("(1,x)"),
            "u" => json!("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
            "by" => json!("AQID"),
            "da" | "tsz" => json!("2024-02-29"),
            "iv" => json!("1 day"),
            "m" => json!("ok"),
            "ip" => json!("10.0.0.1"),
            "h" => json!("a=>1"),
            _ => json!("1"),
        };
        let filters = [json!({name: {"eq": eq}}), json!({name: {"in": [eq]}})];
        for filter in filters {
            let filter = fixture::parse(&schema, "things", &filter.to_string()).unwrap();
            let bound = fixture::select(&schema, relation, &filter, "id");
            let plan = fixture::explain(&client, &bound).await;
            assert!(
                plan.contains("Index Cond"),
                "{}\n{plan}",
                bound.statement.text()
            );
        }
    }
}
