//! Compares the JSON with PostgreSQL's own, for extremes and for random values of each type.

mod containers;
mod hstore;
mod spatial;
mod times;

use bytes::BytesMut;
use tidegate_values::codec::{ValueWriter, wire_format};
use tidegate_values::{Type, WireFormat};
use tokio_postgres::types::FromSql;
use tokio_postgres::{Client, SimpleQueryMessage};

use crate::rows::column;

/// A value of any type, as PostgreSQL's bytes.
struct Raw(Vec<u8>);

impl<'a> FromSql<'a> for Raw {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        Ok(Self(raw.to_vec()))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

async fn connect() -> Client {
    let url = tidegate_embedded::testing::cluster().admin_url();
    let client = tidegate_testkit::connect(&url).await;
    client
        .batch_execute("set timezone = 'UTC'; select setseed(0.42)")
        .await
        .unwrap();
    client
}

/// The first column of a query's rows, as text.
async fn texts(client: &Client, sql: &str) -> Vec<Option<String>> {
    let rows = client
        .simple_query(sql)
        .await
        .unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    let rows = rows.into_iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row.get(0).map(str::to_owned)),
        _ => None,
    });
    rows.collect()
}

fn write(r#type: &Type, format: WireFormat, raw: &[u8]) -> String {
    let mut out = BytesMut::new();
    let written = ValueWriter::new(&column("v", r#type.clone(), format)).json(raw, &mut out);
    written.unwrap_or_else(|error| panic!("{type}: {error:?} for {raw:?}"));
    String::from_utf8(out.to_vec()).unwrap()
}

/// Checks that the values `v` of the query `source` are written, in both wire formats, as the SQL
/// expression `expected` gives them. Each argument list is (query, expression).
async fn compare(client: &Client, source: &str, expected: &str) {
    client
        .batch_execute("drop table if exists pg_temp.sample")
        .await
        .unwrap();
    let create = format!("create temp table sample as {source}");
    client
        .batch_execute(&create)
        .await
        .unwrap_or_else(|error| panic!("{create}: {error:?}"));
    let expected = texts(
        client,
        &format!("select {expected} from sample order by ctid"),
    )
    .await;
    let shown = texts(client, "select v from sample order by ctid").await;
    let statement = client
        .prepare("select v from sample order by ctid")
        .await
        .unwrap();
    let r#type = statement.columns()[0].type_().clone();
    assert!(!expected.is_empty(), "{source} gives no value");
    for (text, expected) in shown.iter().zip(&expected) {
        let ours = text
            .as_ref()
            .map(|text| write(&r#type, WireFormat::Text, text.as_bytes()));
        assert_eq!(&ours, expected, "{type} from text {text:?}");
    }
    if wire_format(&r#type) == WireFormat::Text {
        return;
    }
    let rows = client.query(&statement, &[]).await.unwrap();
    for ((row, text), expected) in rows.iter().zip(&shown).zip(&expected) {
        let raw: Option<Raw> = row.get(0);
        let ours = raw.map(|raw| write(&r#type, WireFormat::Binary, &raw.0));
        assert_eq!(&ours, expected, "{type} from the binary form of {text:?}");
    }
    assert_eq!(rows.len(), expected.len());
}

/// The version of PostgreSQL as a number (`server_version_num`).
async fn version(client: &Client) -> i32 {
    let query = "select current_setting('server_version_num')::int";
    client.query_one(query, &[]).await.unwrap().get(0)
}

/// A query with literals of a type, including NULL.
fn literals(r#type: &str, literals: &[&str]) -> String {
    let values: Vec<_> = literals
        .iter()
        .map(|text| format!("('{}'::{type})", text.replace('\'', "''")))
        .collect();
    format!("values {}, (null)", values.join(",")).replacen(
        "values",
        "select column1 as v from (values",
        1,
    ) + ") as l"
}

const QUOTED: &str = "to_json(v::text)::text";

/// An SQL expression for the text of the output function, from which the casts of some types to
/// text differ.
const WRITTEN: &str = "case when v is not null then to_json(format('%s', v))::text end";

/// An SQL expression for ISO 8601 with `Z`, as `to_json` writes it in a session in UTC.
const ZULU: &str = "replace(to_json(v)::text, '+00:00', 'Z')";

#[tokio::test]
async fn numbers_agree() {
    let client = connect().await;
    for (r#type, values) in [
        ("int2", &["-32768", "0", "32767"][..]),
        ("int4", &["-2147483648", "0", "2147483647"]),
        (
            "int8",
            &["-9223372036854775808", "0", "9223372036854775807"],
        ),
        ("oid", &["0", "4294967295"]),
    ] {
        compare(&client, &literals(r#type, values), "v::text").await;
    }
    let numeric = [
        "0",
        "0.00",
        "-0.5",
        "1",
        "10000",
        "9999.9999",
        "0.0001",
        "0.00001",
        "0.000000000000000000012",
        "1e-1000",
        "1e1000",
        "123456789012345678901234567890.123456789",
        "-99999999999999999999",
        "NaN",
        "Infinity",
        "-Infinity",
        "100000000",
        "10000.0000",
        "0.10",
    ];
    compare(&client, &literals("numeric", &numeric), QUOTED).await;
    compare(
        &client,
        &literals("numeric(12,4)", &["1", "99999999.9999", "0"]),
        QUOTED,
    )
    .await;
    let random = "select round((random() * 2 - 1)::numeric * power(10::numeric, (random() * 60 - 30)::int), (random() * 40)::int) as v from generate_series(1, 2000)";
    compare(&client, random, QUOTED).await;
    compare(&client, &literals("bool", &["t", "f"]), "v::text").await;
}

#[tokio::test]
async fn floats_are_the_numbers_that_postgresql_prints() {
    let client = connect().await;
    for (r#type, digits, exponent) in [("float4", "real", 37), ("float8", "float8", 300)] {
        let random = format!(
            "select ((random() * 2 - 1) * power(10::float8, (random() * {exponent} * 2 - {exponent})::int))::{type} as v from generate_series(1, 2000) union all values (0::{type}), (1), (-1), (0.1), (1e15), (1e16), (123456.5), (16777216)"
        );
        client
            .batch_execute(&format!(
                "drop table if exists sample; create temp table sample as {random}"
            ))
            .await
            .unwrap();
        let statement = client
            .prepare("select v, v::text from sample")
            .await
            .unwrap();
        for row in client.query(&statement, &[]).await.unwrap() {
            let raw: Raw = row.get(0);
            let text: &str = row.get(1);
            let binary = write(statement.columns()[0].type_(), WireFormat::Binary, &raw.0);
            assert_eq!(
                binary,
                write(
                    statement.columns()[0].type_(),
                    WireFormat::Text,
                    text.as_bytes()
                )
            );
            let same = texts(
                &client,
                &format!("select '{binary}'::{digits} = '{text}'::{digits}"),
            )
            .await;
            assert_eq!(same, [Some("t".to_owned())], "{binary} for {text}");
        }
        compare(
            &client,
            &literals(r#type, &["NaN", "Infinity", "-Infinity"]),
            QUOTED,
        )
        .await;
    }
}

#[tokio::test]
async fn strings_agree() {
    let client = connect().await;
    let strings = [
        "",
        "plain",
        "it's \"quoted\" \\ back",
        "a\nb\tc\rd\u{8}\u{c}\u{1}\u{1f}\u{7f}",
        "æøå ☃ 𝄞",
        "x'--;",
    ];
    for r#type in [
        "text",
        "varchar",
        "varchar(100)",
        "bpchar",
        "name",
        "char(40)",
    ] {
        // A cast of a padded `char` to text would strip its blanks.
        let expected = if r#type == "char(40)" {
            "to_json(v)::text"
        } else {
            QUOTED
        };
        compare(&client, &literals(r#type, &strings), expected).await;
    }
    let random = "select string_agg(chr(1 + (random() * 300)::int), '') as v from generate_series(1, 20000) as i group by i % 500";
    compare(&client, random, QUOTED).await;
    client
        .batch_execute("create type pg_temp.mood as enum ('so ''so''', 'fine')")
        .await
        .unwrap();
    for (r#type, values) in [
        (
            "uuid",
            &[
                "00000000-0000-0000-0000-000000000000",
                "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
            ][..],
        ),
        ("pg_temp.mood", &["fine", "so 'so'"]),
        (
            "inet",
            &["10.0.0.1/8", "::1", "::ffff:1.2.3.4/96", "fe80::1"],
        ),
        ("cidr", &["10.0.0.0/8", "::/0"]),
        ("macaddr", &["08:00:2b:01:02:03"]),
        ("macaddr8", &["08:00:2b:01:02:03:04:05"]),
        ("xml", &["<a b=\"c\">d</a>"]),
        ("tsvector", &["'a':1A 'b':2,3", ""]),
        ("tsquery", &["a & !b", "'x y' <2> z"]),
        ("bit(3)", &["101"]),
        ("varbit", &["", "10101"]),
        ("money", &["-1234.56", "0"]),
        ("pg_lsn", &["16/B374D848"]),
        ("xid", &["42"]),
        ("tid", &["(0,1)"]),
        ("\"char\"", &["a", ""]),
        ("regclass", &["pg_class"]),
        ("jsonpath", &["$.a[*] ? (@ > 1)"]),
    ] {
        compare(&client, &literals(r#type, values), WRITTEN).await;
    }
}

#[tokio::test]
async fn documents_and_bytes_agree() {
    let client = connect().await;
    let documents = [
        "null",
        "1e400",
        "{ \"a\" : [1,\n 2.50] }",
        "\"\\u00e9\\ud834\\udd1e\"",
        "[]",
    ];
    compare(&client, &literals("json", &documents), "v::text").await;
    compare(&client, &literals("jsonb", &documents[..1]), "v::text").await;
    compare(&client, &literals("jsonb", &documents[2..]), "v::text").await;
    let base64 = "to_json(translate(encode(v, 'base64'), E'\\n', ''))::text";
    compare(
        &client,
        &literals(
            "bytea",
            &["", "\\x00", "\\x00ff", "\\x00ff10", "\\\\", "\\000\\377z"],
        ),
        base64,
    )
    .await;
    compare(
        &client,
        "select decode(repeat(md5(i::text), i), 'hex') as v from generate_series(0, 60) as i",
        base64,
    )
    .await;
    client
        .batch_execute("set bytea_output = escape")
        .await
        .unwrap();
    compare(&client, &literals("bytea", &["", "\\x00ff5c41"]), base64).await;
}

#[tokio::test]
async fn extension_types_are_their_text_form() {
    let client = connect().await;
    client
        .batch_execute("create extension if not exists hstore; create extension if not exists citext; create extension if not exists ltree; create extension if not exists cube")
        .await
        .unwrap();
    for (r#type, values) in [
        ("hstore", &["a=>1, \"b c\"=>\"q\\\"\", d=>NULL", ""][..]),
        ("citext", &["MiXed \"q\""]),
        ("ltree", &["a.b.c"]),
        ("cube", &["(1,2),(3,4)"]),
    ] {
        compare(&client, &literals(r#type, values), QUOTED).await;
    }
    compare(
        &client,
        "select array['a.b'::ltree, null] as v",
        "'[\"a.b\",null]'",
    )
    .await;
    compare(
        &client,
        "select array['X'::citext, null] as v",
        "'[\"X\",null]'",
    )
    .await;
}
