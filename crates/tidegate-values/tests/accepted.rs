//! Compares the encoding of parameters and the decoding of results with PostgreSQL.

use bytes::BytesMut;
use tidegate_values::codec::ValueWriter;
use tidegate_values::parameter::encode;
use tidegate_values::{Parameter, Type, WireFormat};
use tokio_postgres::{Client, SimpleQueryMessage};

use crate::rows::column;

const TYPES: &str = "
    create type pg_temp.mood as enum ('sad', 'so, \"so\"');
    create domain pg_temp.label as text check (value <> 'forbidden');
    create domain pg_temp.row as int[];
    create type pg_temp.part as (n numeric, \"a b\" text);
    create type pg_temp.pair as (a int, b text, list text[], during tstzrange, part pg_temp.part,
        parts pg_temp.part[], document jsonb);
    create type pg_temp.textrange as range (subtype = text, collation = \"C\");
";

async fn connect() -> Client {
    let url = tidegate_embedded::testing::cluster().admin_url();
    let client = tidegate_testkit::connect(&url).await;
    client.batch_execute("set timezone = 'UTC'").await.unwrap();
    client.batch_execute(TYPES).await.unwrap();
    client
}

async fn text(client: &Client, sql: &str) -> Option<String> {
    let messages = client
        .simple_query(sql)
        .await
        .unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    messages.into_iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row.get(0).map(str::to_owned)),
        _ => None,
    })?
}

async fn type_of(client: &Client, name: &str) -> Type {
    let statement = client
        .prepare(&format!("select null::{name}"))
        .await
        .unwrap();
    statement.columns()[0].type_().clone()
}

fn input(json: &str, r#type: &Type) -> String {
    let mut out = BytesMut::new();
    encode(
        &Parameter::Json(json.into()),
        r#type,
        None,
        &|| "value".to_owned(),
        &mut out,
    )
    .unwrap_or_else(|error| panic!("{json}: {error}"));
    String::from_utf8(out.to_vec()).unwrap()
}

fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Checks that PostgreSQL reads a JSON value as the value of an SQL expression.
async fn means(client: &Client, r#type: &str, json: &str, sql: &str) {
    let given = input(json, &type_of(client, r#type).await);
    let ours = text(
        client,
        &format!("select ({}::{})::text", quote(&given), r#type),
    )
    .await;
    let theirs = text(client, &format!("select (({sql})::{type})::text")).await;
    assert_eq!(ours, theirs, "{json} as {type} was given as {given}");
}

/// Checks that a value is unchanged after conversion to JSON and back.
async fn returns(client: &Client, r#type: &str, sql: &str) {
    let shown = text(client, &format!("select ({sql})::{type}"))
        .await
        .unwrap();
    let known = type_of(client, r#type).await;
    let mut json = BytesMut::new();
    ValueWriter::new(&column("v", known.clone(), WireFormat::Text))
        .json(shown.as_bytes(), &mut json)
        .unwrap();
    let json = str::from_utf8(&json).unwrap();
    means(client, r#type, json, sql).await;
}

#[tokio::test]
async fn what_is_given_means_what_sql_means() {
    let client = connect().await;
    for (r#type, json, sql) in [
        ("int4[]", "[[1,2],[3,null]]", "array[[1,2],[3,null]]"),
        ("int4[]", "[]", "'{}'"),
        ("int4[]", "[[],[]]", "'{}'"),
        (
            "text[]",
            r#"["NULL","","a,\"b\\",null," "]"#,
            r#"array['NULL','','a,"b\',null,' ']"#,
        ),
        ("bytea", "\"3q2+7w==\"", r"'\xdeadbeef'"),
        (
            "bytea[]",
            "[\"3q2+7w==\",\"\\\\x00\"]",
            r"array['\xdeadbeef','\x00']::bytea[]",
        ),
        (
            "json[]",
            r#"[{"a":[1]},[2],"s",null,true]"#,
            r#"array['{"a":[1]}','[2]','"s"',null,'true']::json[]"#,
        ),
        (
            "int4range",
            r#"{"lower":1,"upper":5,"lowerInclusive":false}"#,
            "int4range(1,5,'()')",
        ),
        ("int4range", "{}", "'(,)'"),
        (
            "daterange",
            r#"{"lower":"-infinity","upper":"2024-01-01"}"#,
            "daterange('-infinity','2024-01-01')",
        ),
        (
            "pg_temp.textrange",
            r#"{"lower":"a\"\\,(","upper":"b","upperInclusive":true}"#,
            r#"pg_temp.textrange('a"\,(','b','[]')"#,
        ),
        (
            "int8multirange",
            r#"[{"lower":1,"upper":3},{"lower":7}]"#,
            "int8multirange(int8range(1,3),int8range(7,null))",
        ),
        (
            "pg_temp.textrange[]",
            r#"[{"lower":"a\""},{"empty":true}]"#,
            r#"array[pg_temp.textrange('a"',null), 'empty']"#,
        ),
        (
            "interval",
            r#"{"y":1,"m":-2,"d":3,"h":-4,"i":5,"s":-6.25}"#,
            "make_interval(1,-2,0,3,-4,5,-6.25)",
        ),
        ("interval", r#"{"h":1.5}"#, "'90 minutes'"),
        ("interval", "{}", "'0'"),
        ("interval", "\"P1DT2H\"", "'1 day 2 hours'"),
        (
            "point",
            r#"{"x":"Infinity","y":-1e3}"#,
            "point('Infinity',-1000)",
        ),
        ("line", r#"{"A":1,"B":2,"C":3}"#, "'{1,2,3}'"),
        (
            "lseg",
            r#"{"start":{"x":1,"y":2},"end":{"x":3,"y":4}}"#,
            "lseg(point(1,2),point(3,4))",
        ),
        (
            "box[]",
            r#"[{"start":{"x":1,"y":2},"end":{"x":3,"y":4}},null]"#,
            "array[box(point(1,2),point(3,4)),null]",
        ),
        (
            "path",
            r#"[true,{"x":1,"y":2},{"x":3,"y":4}]"#,
            "'[(1,2),(3,4)]'",
        ),
        (
            "path",
            r#"{"open":false,"points":[{"x":1,"y":2}]}"#,
            "'((1,2))'",
        ),
        (
            "polygon[]",
            r#"[[{"x":1,"y":2},{"x":3,"y":4}]]"#,
            "array[polygon '((1,2),(3,4))']",
        ),
        (
            "circle",
            r#"{"center":{"x":1,"y":2},"radius":3}"#,
            "circle(point(1,2),3)",
        ),
        ("int2vector", "[1,2]", "'1 2'"),
        (
            "pg_temp.mood[]",
            r#"["sad","so, \"so\""]"#,
            r#"array['sad','so, "so"']"#,
        ),
        ("pg_temp.label[]", r#"["a\\"]"#, r"array['a\']"),
        (
            "pg_temp.row[]",
            "[[1,2],[3]]",
            "array['{1,2}'::pg_temp.row,'{3}'::pg_temp.row]",
        ),
        (
            "pg_temp.pair",
            r#"{"a":1,"b":"q\"\\,()'","list":["x\"",null],"during":{"lower":"2024-01-01T00:00:00Z"},
                "part":{"n":"1.50","a b":""},"parts":[{"n":2},null],"document":{"k":"\"v\""}}"#,
            r#"row(1,'q"\,()''',array['x"',null],tstzrange('2024-01-01',null),row(1.50,''),
                array[row(2,null)::pg_temp.part,null],'{"k":"\"v\""}')"#,
        ),
        (
            "pg_temp.pair",
            "{}",
            "row(null,null,null,null,null,null,null)",
        ),
        (
            "pg_temp.pair[]",
            r#"[{"b":""},null]"#,
            "array[row(null,'',null,null,null,null,null)::pg_temp.pair,null]",
        ),
    ] {
        means(&client, r#type, json, sql).await;
    }
}

#[tokio::test]
async fn what_is_shown_comes_back_the_same() {
    let client = connect().await;
    for (r#type, sql) in [
        ("numeric", "'-123456789012345678901234567890.0123456789'"),
        ("float8", "'-Infinity'"),
        ("float4[]", "'{1.5,NaN,NULL}'"),
        ("bytea", r"'\x00ff'"),
        ("timestamptz", "'0044-03-15 12:00:00.5+00 BC'"),
        ("date[]", "'{infinity,-infinity,0001-01-01 BC}'"),
        ("timetz", "'12:00:00.25-03:30'"),
        ("interval", "'-1 year 2 mons -3 days 04:05:06.789'"),
        ("interval[]", "array['1 day'::interval, null, '-00:00:01']"),
        ("tstzrange", "'[2024-01-01,infinity]'"),
        (
            "numrange[]",
            "array['empty', '(,5.50]', '[1,)']::numrange[]",
        ),
        (
            "datemultirange",
            "'{[2024-01-01,2024-02-01),[2025-01-01,)}'",
        ),
        (
            "int4multirange[]",
            "array['{}','{[1,2),[5,)}']::int4multirange[]",
        ),
        ("int4[]", "'{{1,2},{3,NULL}}'"),
        ("text[]", r#"array['', 'NULL', '"', '\', e'\n', null]"#),
        (
            "jsonb[]",
            r#"array['{"a": [1, "x\"y"]}', null, '"s"']::jsonb[]"#,
        ),
        ("point[]", "array[point(1,2),null]"),
        (
            "box[]",
            "array[array[box '((1,2),(3,4))'], array[box '((0,0),(1,1))']]",
        ),
        ("path[]", "array['[(1,2),(3,4)]', '((1,2))']::path[]"),
        ("polygon[]", "array[polygon '((1,2),(3,4))']"),
        ("circle", "'<(1,2),3>'"),
        ("line", "'{1,-2,3.5}'"),
        ("lseg", "'[(1,2),(3,4)]'"),
        ("inet[]", "'{10.0.0.1/8,::1}'"),
        ("bit(3)[]", "'{101,010}'"),
        ("money", "1234.5"),
        ("pg_temp.mood", r#"'so, "so"'"#),
        ("pg_temp.row[]", "array['{1,2}'::pg_temp.row]"),
        ("pg_temp.textrange", r#"pg_temp.textrange('a"', 'b\,')"#),
        (
            "pg_temp.pair[]",
            r#"array[row(1,'x"',array['y\'],tstzrange(null,'2024-01-01','[]'),row(1,null),
                array[row(2,'z')::pg_temp.part],'[1]')::pg_temp.pair, null]"#,
        ),
    ] {
        returns(&client, r#type, sql).await;
    }
}

/// Skipped without PostGIS, which is an extension that is not installed everywhere.
#[tokio::test]
async fn geojson_comes_to_postgis() {
    let client = connect().await;
    let sql = "select count(*) from pg_available_extensions where name = 'postgis'";
    if text(&client, sql).await.as_deref() == Some("0") {
        return;
    }
    client
        .batch_execute("create extension if not exists postgis")
        .await
        .unwrap();
    for (json, wkt) in [
        (
            r#"{"type":"Point","coordinates":[10.5,55,7]}"#,
            "POINT Z (10.5 55 7)",
        ),
        (
            r#"{"type":"MultiPoint","coordinates":[[1,2],[3,4]]}"#,
            "MULTIPOINT(1 2,3 4)",
        ),
        (
            r#"{"type":"Polygon","coordinates":[[[0,0],[0,1],[1,1],[0,0]]]}"#,
            "POLYGON((0 0,0 1,1 1,0 0))",
        ),
        (
            r#"{"type":"MultiPolygon","coordinates":[]}"#,
            "MULTIPOLYGON EMPTY",
        ),
        (
            r#"{"type":"GeometryCollection","geometries":[{"type":"LineString","coordinates":[[1,2],[3,4]]}]}"#,
            "GEOMETRYCOLLECTION(LINESTRING(1 2,3 4))",
        ),
    ] {
        let crs = r#"{"type":"name","properties":{"name":"EPSG:25832"}}"#;
        let elsewhere = json.replacen('{', &format!("{{\"crs\":{crs},"), 1);
        let there = quote(&format!("SRID=25832;{wkt}"));
        means(&client, "geometry", &elsewhere, &there).await;
        for r#type in ["geometry", "geography"] {
            means(&client, r#type, json, &quote(&format!("SRID=4326;{wkt}"))).await;
            let array = format!("{type}[]");
            let element = quote(&format!("SRID=4326;{wkt}"));
            let sql = format!("array[{element}::{type}, null]");
            means(&client, &array, &format!("[{json},null]"), &sql).await;
        }
    }
}
