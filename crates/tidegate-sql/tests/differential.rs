//! Our JSON beside PostgreSQL's own answer, for the extremes and for random values of each type.

use bytes::BytesMut;
use tidegate_sql::codec::{ValueWriter, wire_format};
use tidegate_sql::{Type, WireFormat};
use tokio_postgres::types::FromSql;
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

use crate::rows::column;

/// The bytes of a value of any type.
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
    let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
        .batch_execute("set timezone = 'UTC'; select setseed(0.42)")
        .await
        .unwrap();
    client
}

/// The first column as text.
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

/// Checks that the values `v` of the query `source` come out, from both wire formats, as the SQL
/// expression `expected` says. Each argument list is (query, expression).
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

/// A query of literals of a type, NULL among them.
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
/// By the output function: some types' casts to text say more.
const WRITTEN: &str = "case when v is not null then to_json(format('%s', v))::text end";
/// ISO 8601 with `Z`: what `to_json` writes, for a session in UTC.
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
        // A padded char keeps its blanks, which its cast to text would strip.
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
async fn dates_and_times_agree() {
    let client = connect().await;
    let dates = [
        "2000-01-01",
        "1999-12-31",
        "0001-01-01",
        "0044-03-15 BC",
        "4714-11-24 BC",
        "5874897-12-31",
        "9999-12-31",
        "10000-01-01",
        "2024-02-29",
        "infinity",
        "-infinity",
    ];
    compare(&client, &literals("date", &dates), "to_json(v)::text").await;
    compare(&client, "select (date '4713-01-01 BC' + (random() * 3000000)::int) as v from generate_series(1, 3000)", "to_json(v)::text").await;
    let times = [
        "00:00:00",
        "24:00:00",
        "23:59:59.999999",
        "12:30:00.5",
        "01:02:03.000001",
        "01:02:03.10",
    ];
    compare(&client, &literals("time", &times), "to_json(v)::text").await;
    let timestamps = [
        "2000-01-01 00:00:00",
        "1999-12-31 23:59:59.999999",
        "0001-01-01 00:00:00.1",
        "0001-12-31 23:59:59 BC",
        "4714-11-24 00:00:00 BC",
        "294276-12-31 23:59:59.999999",
        "10000-01-01 12:00:00",
        "infinity",
        "-infinity",
    ];
    compare(
        &client,
        &literals("timestamp", &timestamps),
        "to_json(v)::text",
    )
    .await;
    compare(&client, &literals("timestamptz", &timestamps), ZULU).await;
    let random = "select timestamp '4000-01-01 BC' + random() * interval '6000 years' + (random() * 1e6)::int * interval '1 microsecond'";
    compare(
        &client,
        &format!("{random} as v from generate_series(1, 3000)"),
        "to_json(v)::text",
    )
    .await;
    compare(
        &client,
        &format!("select ({random}) at time zone 'UTC' as v from generate_series(1, 50)"),
        ZULU,
    )
    .await;
    // An offset always has its minutes, as ISO 8601 wants them.
    let timetz = "to_json(regexp_replace(v::text, '([+-]\\d\\d)$', '\\1:00'))::text";
    compare(
        &client,
        &literals(
            "timetz",
            &[
                "10:00:00+00",
                "10:00:00.5+05:30",
                "23:59:59-12",
                "00:00:00+15:59:59",
                "24:00:00-00:30",
            ],
        ),
        timetz,
    )
    .await;
    // A session in another zone changes only the text form, not what we show.
    client
        .batch_execute("set timezone = 'America/St_Johns'")
        .await
        .unwrap();
    compare(&client, &literals("timestamptz", &["1800-01-01 00:00:00+00", "2020-07-01 12:00:00.25+00"]), "to_json(to_char(v at time zone 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS') || case when extract(year from v) > 1900 then '.25Z' else 'Z' end)::text").await;
}

#[tokio::test]
async fn what_is_shown_is_accepted_back() {
    let client = connect().await;
    for (r#type, values) in [
        (
            "timestamptz",
            &[
                "0044-03-15 12:00:00.5+00 BC",
                "294276-12-31 23:59:59.999999+00",
                "infinity",
            ][..],
        ),
        (
            "timestamp",
            &[
                "0044-03-15 12:00:00.5 BC",
                "10000-01-01 00:00:00",
                "-infinity",
            ],
        ),
        ("date", &["0044-03-15 BC", "5874897-12-31", "-infinity"]),
        (
            "timetz",
            &["10:00:00.5+05:30", "00:00:00-12", "00:00:00+15:59:59"],
        ),
        ("numeric", &["NaN", "-Infinity", "0.00"]),
    ] {
        for value in values {
            let shown = write(
                &client
                    .prepare(&format!("select null::{type} as v"))
                    .await
                    .unwrap()
                    .columns()[0]
                    .type_()
                    .clone(),
                WireFormat::Text,
                texts(&client, &format!("select '{value}'::{type}")).await[0]
                    .as_ref()
                    .unwrap()
                    .as_bytes(),
            );
            let text: String = serde_json::from_str(&shown).unwrap();
            assert_eq!(
                texts(
                    &client,
                    &format!("select '{text}'::{type} = '{value}'::{type}")
                )
                .await,
                [Some("t".to_owned())],
                "{shown}"
            );
        }
    }
}

#[tokio::test]
async fn intervals_agree() {
    let client = connect().await;
    let object = "case when v is null then null else replace(json_build_object('y', extract(year from v)::int, 'm', extract(month from v)::int, 'd', extract(day from v)::int, 'h', extract(hour from v)::int8, 'i', extract(minute from v)::int, 's', trim_scale(extract(second from v)))::text, ' ', '') end";
    let intervals = [
        "0",
        "1 year 2 mons 3 days 04:05:06.789",
        "-1 year -2 mons +3 days -04:05:06",
        "1 mon -1 day",
        "-0.5 sec",
        "178000000 years",
        "-178000000 years",
        "100 days 2562047788:00:54.775807",
        "-00:00:00.000001",
        "-90 sec",
    ];
    compare(&client, &literals("interval", &intervals), object).await;
    let random = "select make_interval(months => (random() * 200 - 100)::int, days => (random() * 200 - 100)::int, secs => round((random() * 2e6 - 1e6)::numeric, (random() * 6)::int)::float8) as v from generate_series(1, 1000)";
    compare(&client, random, object).await;
    client
        .batch_execute("set intervalstyle = iso_8601")
        .await
        .unwrap();
    assert_eq!(write(&Type::INTERVAL, WireFormat::Text, b"P1Y"), "\"P1Y\"");
}

#[tokio::test]
async fn geometric_values_have_their_objects() {
    let client = connect().await;
    for (r#type, literal, object) in [
        ("point", "(1.5,-2)", r#"{"x":1.5,"y":-2}"#),
        ("point", "(Infinity,NaN)", r#"{"x":"Infinity","y":"NaN"}"#),
        ("line", "{1,-1,0.5}", r#"{"A":1,"B":-1,"C":0.5}"#),
        (
            "lseg",
            "[(0,0),(1e300,2)]",
            r#"{"start":{"x":0,"y":0},"end":{"x":1e300,"y":2}}"#,
        ),
        (
            "box",
            "(0,0),(1,2)",
            r#"{"start":{"x":1,"y":2},"end":{"x":0,"y":0}}"#,
        ),
        (
            "path",
            "[(0,0),(1,1)]",
            r#"{"open":true,"points":[{"x":0,"y":0},{"x":1,"y":1}]}"#,
        ),
        (
            "path",
            "((0,0),(1,1))",
            r#"{"open":false,"points":[{"x":0,"y":0},{"x":1,"y":1}]}"#,
        ),
        (
            "polygon",
            "((0,0),(1,1),(1,0))",
            r#"[{"x":0,"y":0},{"x":1,"y":1},{"x":1,"y":0}]"#,
        ),
        (
            "circle",
            "<(1,2),3>",
            r#"{"center":{"x":1,"y":2},"radius":3}"#,
        ),
    ] {
        let expected = format!("case when v is not null then '{object}' end");
        compare(&client, &literals(r#type, &[literal]), &expected).await;
    }
    compare(
        &client,
        "select array[box '(0,0),(1,1)', null] as v",
        r#"'[{"start":{"x":1,"y":1},"end":{"x":0,"y":0}},null]'"#,
    )
    .await;
}

/// The object of a range in SQL, with `bound` around the bounds.
fn range(v: &str, bound: &str) -> String {
    let bound = |which: &str| bound.replace('%', &format!("{which}({v})"));
    format!(
        "case when {v} is null then null else replace(json_build_object('lower', {}, 'upper', {}, 'lowerInclusive', lower_inc({v}), 'upperInclusive', upper_inc({v}))::text, ' : ', ':') end",
        bound("lower"),
        bound("upper")
    )
}

/// PostgreSQL's object with the spaces of `json_build_object` taken out and the fifth key of an
/// empty range put in.
fn range_text(v: &str, bound: &str) -> String {
    let object = format!(
        "replace(replace({}, ', \"', ',\"'), '\" :', '\":')",
        range(v, bound)
    );
    format!(
        "case when isempty({v}) then replace({object}, '}}', ',\"empty\":true}}') else {object} end"
    )
}

#[tokio::test]
async fn ranges_and_multiranges_agree() {
    let client = connect().await;
    let zulu = "replace(to_json(%)#>>'{}', '+00:00', 'Z')";
    for (name, bound, values) in [
        ("int4", "%", &["[1,5)", "(,)", "[3,)", "(,3]", "empty"][..]),
        ("int8", "%", &["[1,5)", "empty"]),
        (
            "num",
            "%::text",
            &["[1.50,5]", "(-Infinity,1)", "[,0.0)", "empty"],
        ),
        (
            "date",
            "%",
            &[
                "[2020-01-01,2020-02-01)",
                "[0044-03-15 BC,infinity)",
                "(,2020-01-01)",
            ],
        ),
        (
            "ts",
            "%",
            &[
                "[2020-01-01 00:00,2020-02-01 12:30:00.5)",
                "(,infinity]",
                "empty",
            ],
        ),
        (
            "tstz",
            zulu,
            &[
                "[2020-01-01 00:00+02,2020-02-01 12:30:00.5+00)",
                "(,)",
                "empty",
            ],
        ),
    ] {
        compare(
            &client,
            &literals(&format!("{name}range"), values),
            &range_text("v", bound),
        )
        .await;
        let object = range_text("r", bound);
        let list = format!(
            "case when v is not null then coalesce((select '[' || string_agg({object}, ',' order by r) || ']' from unnest(v) as r), '[]') end"
        );
        let present: Vec<_> = values
            .iter()
            .filter(|value| !value.starts_with("(,"))
            .collect();
        let all = format!(
            "{{{}}}",
            present
                .iter()
                .map(|value| (**value).to_owned())
                .collect::<Vec<_>>()
                .join(",")
        );
        let all = all
            .replace("empty", "(,)")
            .replace(",(,)", "")
            .replace("{(,)}", "{}");
        compare(
            &client,
            &literals(&format!("{name}multirange"), &["{}", &all]),
            &list,
        )
        .await;
    }
    client
        .batch_execute("create type pg_temp.textrange as range (subtype = text, collation = \"C\")")
        .await
        .unwrap();
    compare(
        &client,
        &literals(
            "pg_temp.textrange",
            &["[\"a \"\"q\"\" \\\\ , )\",zz)", "[\"\",b]", "[NULL,\u{e9})"],
        ),
        &range_text("v", "%"),
    )
    .await;
}

#[tokio::test]
async fn arrays_agree() {
    let client = connect().await;
    for (r#type, values) in [
        (
            "int4[]",
            &[
                "{}",
                "{1,NULL,3}",
                "{{1,2},{3,4}}",
                "[0:1]={5,6}",
                "[2:2][3:4]={{1,2}}",
                "{{{{{{1}}}}}}",
            ][..],
        ),
        (
            "text[]",
            &[
                "{\"\",NULL,\"NULL\",\"a,b\",\"q\\\"\\\\\",\"{}\",\" x \"}",
                "{{a},{b}}",
            ],
        ),
        ("bool[]", &["{t,f,NULL}"]),
        ("date[]", &["{2020-01-01,NULL,infinity}"]),
        ("timestamp[]", &["{\"2020-01-01 10:00\"}"]),
        ("jsonb[]", &["{\"{\\\"a\\\": [1, 2]}\",NULL}"]),
        ("uuid[]", &["{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}"]),
        ("inet[]", &["{10.0.0.1,NULL}"]),
        ("int2vector", &["1 2 3", ""]),
        ("money[]", &["{\"$1,000.00\",NULL}"]),
        ("varbit[]", &["{101,NULL}"]),
    ] {
        compare(&client, &literals(r#type, values), "to_json(v)::text").await;
    }
    compare(
        &client,
        "select array[1.50, null, 'NaN']::numeric[] as v",
        "'[\"1.50\",null,\"NaN\"]'",
    )
    .await;
    compare(
        &client,
        "select indkey as v from pg_index where indnatts = 3",
        "to_json(v)::text",
    )
    .await;
}

#[tokio::test]
async fn composites_agree() {
    let client = connect().await;
    client
        .batch_execute(
            "create domain year as int check (value > 0);
             create domain price as money;
             create type inner_pair as (a int, \"b \"\"q\"\"\" text);
             create type plain_row as (id int, name text, day date, ok bool, p inner_pair, ps inner_pair[], y year, nothing text);
             create type offer as (id int, price price, p inner_pair, tags text[], at timestamp, raw bytea, during int4range);",
        )
        .await
        .unwrap();
    let plain = "(1,\"it's \"\"x\"\" \\\\\",2020-01-01,t,\"(1,\"\"a b\"\")\",\"{\"\"(1,)\"\",NULL,\"\"(,\\\\\"\"q,\\\\\"\")\"\"}\",1999,)";
    compare(
        &client,
        &literals("plain_row", &[plain, "(,,,,,,,)"]),
        "to_json(v)::text",
    )
    .await;
    compare(
        &client,
        &format!(
            "select array['{}'::plain_row, null] as v",
            plain.replace('\'', "''")
        ),
        "to_json(v)::text",
    )
    .await;
    // Money has no binary form of ours, so the whole row comes as text and still looks the same.
    let offer = "(7,$1.50,\"(1,\"\"x \\\\\"\"y\\\\\"\"\"\")\",\"{a,\"\"b c\"\",NULL}\",\"2020-01-01 10:00:00\",\"\\\\x00ff\",\"[1,5)\")";
    let expected = r#"'{"id":7,"price":"$1.50","p":{"a":1,"b \"q\"":"x \"y\""},"tags":["a","b c",null],"at":"2020-01-01T10:00:00","raw":"AP8=","during":{"lower":1,"upper":5,"lowerInclusive":true,"upperInclusive":false}}'"#;
    compare(&client, &format!("select '{offer}'::offer as v"), expected).await;
    compare(
        &client,
        "select '{1999,2000,NULL}'::year[] as v",
        "'[1999,2000,null]'",
    )
    .await;
    assert_eq!(
        texts(&client, "select row(1, 'a \"b\"', null, true)")
            .await
            .first()
            .unwrap()
            .as_deref()
            .map(|text| write(&Type::RECORD, WireFormat::Text, text.as_bytes()))
            .unwrap(),
        r#"{"f1":"1","f2":"a \"b\"","f3":null,"f4":"t"}"#
    );
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

/// Whether this run must not leave out what needs `part` (docs/TESTING.md).
#[expect(
    clippy::disallowed_methods,
    reason = "tests have no caller who could say what must be there"
)]
fn required(part: &str) -> bool {
    std::env::var("TIDEGATE_TEST_REQUIRE").is_ok_and(|parts| parts.split(',').any(|it| it == part))
}

#[tokio::test]
async fn postgis_values_are_what_postgis_says() {
    let client = connect().await;
    let there = "select 1 from pg_available_extensions where name = 'postgis'";
    if client.query_opt(there, &[]).await.unwrap().is_none() {
        assert!(!required("postgis"), "PostGIS is not installed");
        eprintln!("left out: PostGIS is not installed");
        return;
    }
    client
        .batch_execute("create extension if not exists postgis")
        .await
        .unwrap();
    let kinds = [
        "POINT(1 2)",
        "POINT Z (1 2 3.5)",
        "POINT EMPTY",
        "LINESTRING(0 0,1 1)",
        "POLYGON((0 0,4 0,4 4,0 0),(1 1,2 1,2 2,1 1))",
        "POLYGON EMPTY",
        "MULTIPOINT((1 2),(3 4))",
        "MULTILINESTRING((0 0,1 1),(2 2,3 3))",
        "MULTIPOLYGON(((0 0,4 0,4 4,0 0)))",
        "GEOMETRYCOLLECTION(POINT(1 2),LINESTRING(0 0,1 1))",
        "GEOMETRYCOLLECTION EMPTY",
    ];
    for r#type in ["geometry", "geography"] {
        let source = literals(
            r#type,
            &kinds
                .map(|kind| format!("SRID=4326;{kind}"))
                .each_ref()
                .map(String::as_str),
        );
        compare(&client, &source, "ST_AsGeoJSON(v, 15, 0)").await;
    }
    let expected = "ST_AsGeoJSON(ST_Force2D(v), 15, 0)";
    compare(
        &client,
        &literals("geometry", &["POINT M (1 2 9)"]),
        expected,
    )
    .await;
    compare(
        &client,
        &literals("geometry", &["CIRCULARSTRING(0 0,1 1,2 0)"]),
        "to_json(lower(v::text))::text",
    )
    .await;
    compare(
        &client,
        "select array['POINT(1 2)'::geometry, null] as v",
        r#"'[{"type":"Point","coordinates":[1,2]},null]'"#,
    )
    .await;
}
