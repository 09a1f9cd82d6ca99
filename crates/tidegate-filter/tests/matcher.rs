//! The matcher beside PostgreSQL: the same filters on the same rows, thousands of them.

use serde_json::{Value, json};
use tidegate_catalog::{ColumnId, Relation, Schema};
use tidegate_filter::{Error, Filter, Image, Json, KeyReader, Matcher, Verdict};
use tidegate_sql::Type;
use tokio_postgres::types::FromSql;
use tokio_postgres::{Client, SimpleQueryMessage};

use crate::random::Random;
use crate::stage;

const TYPES: &str = "
create type mood as enum ('sad', 'ok', 'glad');
create type \"od\"\"d\" as enum ('b', 'a');
create domain positive as int check (value > 0);
create collation loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
create extension citext;
";

/// A column: its name, its type in DDL, its collation as documents call it, and values as JSON that
/// filters compare with and rows hold.
type Sample = (&'static str, &'static str, &'static str, Vec<Value>);

fn samples() -> Vec<Sample> {
    let texts = || {
        json!([
            "", "a", "A", "ab", "aB", "a b", "b", "ba", "50%", "a_b", "a\\b", "é", "É", "日本",
            "z ", " z", "%", "aa"
        ])
    };
    let list = |values: Value| values.as_array().cloned().unwrap_or_default();
    vec![
        (
            "i2",
            "int2",
            "",
            list(json!([-32768, -1, 0, 1, "2", 32767])),
        ),
        (
            "i4",
            "int4",
            "",
            list(json!([i32::MIN, -1, 0, "1", 2, i32::MAX])),
        ),
        (
            "i8",
            "int8",
            "",
            list(json!([
                i64::MIN,
                "-1",
                0,
                1,
                9_007_199_254_740_993_i64,
                i64::MAX
            ])),
        ),
        ("o", "oid", "", list(json!([0, 1, "4294967295"]))),
        ("d", "positive", "", list(json!([1, 2, "3"]))),
        (
            "n",
            "numeric",
            "",
            list(json!([
                "0",
                "-0.00",
                1,
                "1.000",
                "1e3",
                1000,
                "-1.5",
                "NaN",
                "0.0001",
                "99999999999999999999.5",
                "-99999999999999999999.5",
                "1e-20",
                "9999.9999",
                10000,
                "-10000"
            ])),
        ),
        (
            "n2",
            "numeric(10,2)",
            "",
            list(json!([1, "1.50", 1.5, "-7.25", "0.01", 12345.67])),
        ),
        (
            "f4",
            "float4",
            "",
            list(json!([
                0, "-0", 1.5, "0.1", "NaN", "Infinity", "-inf", 1e30, "1e-45", 16_777_217
            ])),
        ),
        (
            "f8",
            "float8",
            "",
            list(json!([
                0,
                "-0",
                1.5,
                0.1,
                "nan",
                "infinity",
                "-Infinity",
                1e300,
                "5e-324",
                9_007_199_254_740_993_i64
            ])),
        ),
        ("b", "bool", "", list(json!([true, false, "yes", "off"]))),
        ("t", "text collate \"C\"", "bytes", list(texts())),
        (
            "td",
            "text collate \"en-x-icu\"",
            "deterministic",
            list(texts()),
        ),
        ("v", "varchar(20) collate \"C\"", "bytes", list(texts())),
        (
            "c",
            "char(5) collate \"C\"",
            "bytes",
            list(json!(["", "a", "ab", "ab ", "b", "a b", "é", "A", "a%"])),
        ),
        (
            "cd",
            "char(3) collate \"en-x-icu\"",
            "deterministic",
            list(json!(["", "a", "ab", "ab ", "b", "é", "A"])),
        ),
        (
            "nm",
            "name",
            "bytes",
            list(json!(["a", "b", "ab", "A", "é"])),
        ),
        (
            "u",
            "uuid",
            "",
            list(json!([
                "00000000-0000-0000-0000-000000000000",
                "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
                "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11",
                "{ffffffffffffffffffffffffffffffff}"
            ])),
        ),
        (
            "by",
            "bytea",
            "",
            list(json!([
                "",
                "AA==",
                "AQID",
                "\\x0102",
                "\\x010203ff",
                "/w=="
            ])),
        ),
        (
            "da",
            "date",
            "",
            list(json!([
                "2024-02-29",
                "0001-01-01",
                "0044-03-15 BC",
                "infinity",
                "-infinity",
                "1999-12-31",
                "5874897-12-31",
                "4713-11-24 BC"
            ])),
        ),
        (
            "ti",
            "time",
            "",
            list(json!([
                "00:00",
                "10:00:00",
                "10:00:00.5",
                "23:59:59.999999",
                "24:00:00"
            ])),
        ),
        (
            "tz",
            "timetz",
            "",
            list(json!([
                "10:00:00+00",
                "10:00+02",
                "12:00+02:00",
                "08:00:00-02",
                "10:00:00Z",
                "00:00:00+15:59:59"
            ])),
        ),
        (
            "ts",
            "timestamp",
            "",
            list(json!([
                "2024-02-29T10:00:00",
                "2024-02-29 10:00",
                "2024-02-29",
                "infinity",
                "-infinity",
                "2024-02-29T10:00:00.000001",
                "0044-03-15 10:00 BC",
                "2024-02-29T10:00:00Z",
                "294276-12-31 23:59:59.999999"
            ])),
        ),
        (
            "tsz",
            "timestamptz",
            "",
            list(json!([
                "2024-02-29T10:00:00Z",
                "2024-02-29 12:00:00+02",
                "2024-02-29T10:00:00",
                "infinity",
                "-infinity",
                "2024-02-29",
                "2024-02-29T04:30:00-05:30",
                "1900-01-01T00:00:00+00:19:32"
            ])),
        ),
        (
            "iv",
            "interval",
            "",
            list(
                json!([{"h": 1}, "01:00:00", {"i": 60}, {"m": 1}, {"d": 30}, "30 days", "1 mon", {"y": 1, "d": -1},
            "1 year -1 days", {"s": 0.5}, "-00:00:00.5", {"s": -0.5}, "1 day", {"h": 24}]),
            ),
        ),
        ("m", "mood", "", list(json!(["sad", "ok", "glad"]))),
        ("m2", "\"od\"\"d\"", "", list(json!(["b", "a"]))),
    ]
}

/// The raw bytes of a value.
struct Raw(Vec<u8>);

impl<'a> FromSql<'a> for Raw {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        Ok(Self(raw.to_vec()))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

type Row = Vec<Option<Vec<u8>>>;

struct Stage {
    client: Client,
    schema: Schema,
    text: Vec<Row>,
    binary: Vec<Row>,
}

impl Stage {
    fn relation(&self) -> &Relation {
        self.schema.relation(self.schema.find("rows").unwrap())
    }
}

async fn stage(name: &str, count: usize) -> Stage {
    let samples = samples();
    let columns: Vec<_> = samples
        .iter()
        .map(|(name, ddl, ..)| format!("{name} {ddl}"))
        .collect();
    let ddl = format!("{TYPES} create table rows (id int, {})", columns.join(", "));
    let client = stage::database(name, &ddl).await;
    let described = stage::columns(&client, "rows").await;
    let collation = |name: &str| {
        samples
            .iter()
            .find(|sample| sample.0 == name)
            .map_or("", |sample| sample.2)
    };
    let described = described.into_iter().map(|(name, r#type, _)| {
        let collation = collation(&name);
        (name, r#type, collation)
    });
    let schema = stage::schema("public", &[("rows", described.collect())], &[]);
    fill(&client, &schema, &samples, count).await;
    let text = text_rows(&client).await;
    let binary = binary_rows(&client).await;
    Stage {
        client,
        schema,
        text,
        binary,
    }
}

/// Fills the table through the where language's own way of writing values: as parameters.
async fn fill(client: &Client, schema: &Schema, samples: &[Sample], count: usize) {
    let mut random = Random::new(7);
    let relation = schema.relation(schema.find("rows").unwrap());
    for id in 0..count {
        let mut sql = tidegate_sql::statement::SqlWriter::new();
        sql.syntax("insert into public.rows select ")
            .parameter(Json::from(id.to_string()).parameter())
            .syntax("::int");
        for (name, _, _, values) in samples {
            let value = if random.below(6) == 0 {
                Value::Null
            } else {
                random.pick(values).clone()
            };
            let r#type = &relation.column(relation.find_column(name).unwrap()).r#type;
            sql.syntax(", ")
                .parameter(Json::from(value.to_string()).parameter())
                .syntax("::");
            if r#type.schema() != "pg_catalog" {
                sql.identifier(r#type.schema()).syntax(".");
            }
            sql.identifier(r#type.name());
        }
        let bound = sql.finish(tidegate_sql::statement::Kind::Write);
        stage::run(client, &bound).await.unwrap();
    }
}

async fn text_rows(client: &Client) -> Vec<Row> {
    let messages = client
        .simple_query("select * from rows order by id")
        .await
        .unwrap();
    let rows = messages.iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(
            (0..row.len())
                .map(|at| row.get(at).map(|text| text.as_bytes().to_vec()))
                .collect(),
        ),
        _ => None,
    });
    rows.collect()
}

async fn binary_rows(client: &Client) -> Vec<Row> {
    let rows = client
        .query("select * from rows order by id", &[])
        .await
        .unwrap();
    let value = |row: &tokio_postgres::Row, at| row.get::<_, Option<Raw>>(at).map(|raw| raw.0);
    rows.iter()
        .map(|row| (0..row.len()).map(|at| value(row, at)).collect())
        .collect()
}

fn image<'r>(row: &'r Row, binary: bool) -> impl Fn(ColumnId) -> Image<'r> {
    move |column| match &row[column.index()] {
        None => Image::Null,
        Some(raw) if binary => Image::Binary(raw),
        Some(raw) => Image::Text(raw),
    }
}

/// What PostgreSQL finds for each row: true, false or NULL.
async fn judged_by_postgresql(stage: &Stage, filter: &Filter) -> Result<Vec<Option<bool>>, String> {
    let relation = stage.schema.find("rows").unwrap();
    let mut sql = tidegate_sql::statement::SqlWriter::new();
    sql.syntax("select (");
    filter.write(
        &mut sql,
        &stage.schema,
        relation,
        tidegate_filter::Alias("t", 0),
    );
    sql.syntax(") from public.rows t0 order by id");
    let bound = sql.finish(tidegate_sql::statement::Kind::Read);
    let rows = stage::run(&stage.client, &bound)
        .await
        .map_err(|error| format!("{error:?}"))?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

fn same(verdict: Verdict, expected: Option<bool>) -> bool {
    match expected {
        Some(true) => verdict == Verdict::True,
        Some(false) => verdict == Verdict::False,
        None => verdict == Verdict::Unknown,
    }
}

/// Compares both judges on all rows.
async fn check(stage: &Stage, json: &Value) {
    let relation = stage.schema.find("rows").unwrap();
    let text = json.to_string();
    let filter = Filter::parse(&Json::from(&*text), &stage.schema, relation, "where")
        .unwrap_or_else(|error| panic!("{text}: {error}"));
    let matcher = Matcher::compile(&filter, stage.relation())
        .unwrap_or_else(|error| panic!("{text}: {error}"));
    let expected = judged_by_postgresql(stage, &filter)
        .await
        .unwrap_or_else(|error| panic!("{text}: {error}"));
    for (id, expected) in expected.into_iter().enumerate() {
        for (rows, binary) in [(&stage.text, false), (&stage.binary, true)] {
            let verdict = matcher.judge(image(&rows[id], binary)).unwrap();
            assert!(
                same(verdict, expected),
                "{text}: PostgreSQL finds {expected:?}, the matcher {verdict:?} for {:?}",
                stage.text[id]
                    .iter()
                    .map(|raw| raw.as_ref().map(|raw| String::from_utf8_lossy(raw)))
                    .collect::<Vec<_>>()
            );
            if verdict.passes() {
                pinned(stage, &matcher, &rows[id], (binary, &text));
            }
        }
    }
}

/// A row that passes has one of the keys of every pin.
fn pinned(stage: &Stage, matcher: &Matcher, row: &Row, (binary, text): (bool, &str)) {
    for pin in matcher.pins() {
        let reader = KeyReader::new(stage.relation().column(pin.column)).unwrap();
        let key = reader
            .read(image(row, binary)(pin.column))
            .unwrap()
            .unwrap();
        assert!(pin.keys.contains(&key), "{text}: {key:?} is not in {pin:?}");
    }
}

#[tokio::test]
async fn every_scalar_type_is_judged_as_postgresql_judges_it() {
    let stage = stage("filter_scalars", 120).await;
    for (name, _, collation, values) in samples() {
        for value in &values {
            for operator in ["eq", "neq", "gt", "gte", "lt", "lte"] {
                if collation == "deterministic"
                    && operator.len() > 1
                    && !["eq", "neq"].contains(&operator)
                {
                    continue;
                }
                check(&stage, &json!({name: {operator: value}})).await;
            }
            check(&stage, &json!({name: {"in": [value, values[0], null]}})).await;
            check(&stage, &json!({name: {"nin": [value, values[0]]}})).await;
        }
        check(&stage, &json!({name: null})).await;
        check(&stage, &json!({name: {"isNull": false}})).await;
    }
}

#[tokio::test]
async fn patterns_are_judged_as_postgresql_judges_them() {
    let stage = stage("filter_patterns", 150).await;
    let patterns = [
        "", "%", "_", "__", "a%", "%b", "%a%", "a_b", "a\\_b", "%\\%", "a\\\\b", "A%", "_B", "é",
        "_é", "%é%", "日_", "z%", "% %", "ab   ", "\\a", "%_", "a%b%",
    ];
    for column in ["t", "td", "v", "c", "cd", "nm"] {
        for pattern in patterns {
            check(&stage, &json!({column: {"like": pattern}})).await;
            let language = column == "td" || column == "cd";
            if pattern.is_ascii() || !language {
                check(&stage, &json!({column: {"ilike": pattern}})).await;
            }
            for operator in ["startsWith", "endsWith", "contains"] {
                check(&stage, &json!({column: {operator: pattern}})).await;
            }
        }
    }
}

fn leaf(random: &mut Random, samples: &[Sample]) -> Value {
    let (name, _, collation, values) = random.pick(samples);
    let value = random.pick(values);
    let ordered = *collation != "deterministic";
    match random.below(10) {
        0 => json!({*name: null}),
        1 => json!({*name: {"isNull": false}}),
        2 => json!({*name: {"in": [value, random.pick(values)]}}),
        3 => json!({*name: {"nin": [value, null]}}),
        4 | 5 => json!({*name: {"neq": value}}),
        6 if ordered => json!({*name: {"gt": value, "lte": random.pick(values)}}),
        7 if ordered => json!({*name: {"lt": value}}),
        8 if !collation.is_empty() => json!({*name: {"ilike": "%a%"}}),
        // An interval without members of operators' names is a value.
        _ => json!({*name: {"eq": value}}),
    }
}

fn tree(random: &mut Random, samples: &[Sample], depth: usize) -> Value {
    if depth == 0 {
        return leaf(random, samples);
    }
    let count = random.below(4);
    let inner = |random: &mut Random| -> Vec<Value> {
        (0..count)
            .map(|_| tree(random, samples, depth - 1))
            .collect()
    };
    match random.below(5) {
        0 => json!({"and": inner(random)}),
        1 | 2 => json!({"OR": inner(random)}),
        3 => json!({"Not": tree(random, samples, depth - 1)}),
        _ => leaf(random, samples),
    }
}

#[tokio::test]
async fn random_filters_are_judged_as_postgresql_judges_them() {
    let stage = stage("filter_random", 200).await;
    let samples = samples();
    let mut random = Random::new(42);
    for _ in 0..1_500 {
        let filter = tree(&mut random, &samples, 3);
        check(&stage, &filter).await;
    }
}

fn compile(schema: &Schema, relation: &str, json: &str) -> Result<Matcher, Error> {
    let id = schema.find(relation).unwrap();
    let filter = Filter::parse(&Json::from(json), schema, id, "where").unwrap();
    Matcher::compile(&filter, schema.relation(id))
}

#[test]
fn what_cannot_be_judged_exactly_is_refused() {
    let schema = stage::shop();
    for json in [
        r#"{"title": {"gt": "a"}}"#,
        r#"{"title": {"ilike": "é%"}}"#,
        r#"{"title": {"regex": "a"}}"#,
        r#"{"title": {"iregex": "a"}}"#,
        r#"{"tags": ["a"]}"#,
        r#"{"tags": null}"#,
        r#"{"extra": {"contains": {}}}"#,
        r#"{"extra": null}"#,
        r#"{"raw": null}"#,
        r#"{"years": {"contains": 1}}"#,
        r#"{"place": {"x": 1, "y": 1}}"#,
        r#"{"track": null}"#,
        r#"{"artists": {}}"#,
        r#"{"released": "Feb 29, 2024"}"#,
        r#"{"released": "24-01-01"}"#,
        r#"{"released": "today"}"#,
        r#"{"length": "1 day ago"}"#,
        r#"{"length": {"d": 1.5}}"#,
        r#"{"price": "0x10"}"#,
        r#"{"small": "1_0"}"#,
        r#"{"key": "a0ee-bc99-9c0b-4ef8-bb6d-6bb9-bd38-0a11"}"#,
    ] {
        let error = compile(&schema, "albums", json).unwrap_err();
        assert!(
            matches!(error, Error::Unsupported { .. }),
            "{json}: {error}"
        );
    }
    for json in [
        r#"{"released": "2024-02-30"}"#,
        r#"{"released": "9999999-01-01"}"#,
    ] {
        let error = compile(&schema, "albums", json).unwrap_err();
        assert!(
            matches!(error, Error::InvalidValue { .. }),
            "{json}: {error}"
        );
        assert_eq!(error.place(), Some("where.released"));
    }
}

#[test]
fn text_under_a_loose_collation_is_only_asked_for_null() {
    let columns = |collation| vec![("t".to_owned(), Type::TEXT, collation)];
    let schema = stage::schema("public", &[("rows", columns("non_deterministic"))], &[]);
    for json in [
        r#"{"t": "a"}"#,
        r#"{"t": {"in": ["a"]}}"#,
        r#"{"t": {"like": "a"}}"#,
        r#"{"t": {"startsWith": "a"}}"#,
    ] {
        assert!(
            matches!(
                compile(&schema, "rows", json),
                Err(Error::Unsupported { .. })
            ),
            "{json}"
        );
    }
    assert!(compile(&schema, "rows", r#"{"t": null}"#).is_ok());
}

#[test]
fn a_missing_column_leaves_open_what_depends_on_it() {
    let schema = stage::shop();
    let relation = schema.relation(schema.find("albums").unwrap());
    let id = relation.find_column("id").unwrap();
    let image = |column| {
        if column == id {
            Image::Text(b"1")
        } else {
            Image::Missing
        }
    };
    for (json, expected) in [
        (r#"{"price": 1}"#, Verdict::Undecided),
        (r#"{"price": null}"#, Verdict::Undecided),
        (r#"{"price": {"in": [1]}}"#, Verdict::Undecided),
        (r#"{"title": {"like": "a"}}"#, Verdict::Undecided),
        (r#"{"not": {"price": 1}}"#, Verdict::Undecided),
        (r#"{"id": 1, "price": 1}"#, Verdict::Undecided),
        (r#"{"price": 1, "id": 2}"#, Verdict::False),
        (r#"{"OR": [{"price": 1}, {"id": 1}]}"#, Verdict::True),
        (r#"{"OR": [{"price": 1}, {"id": 2}]}"#, Verdict::Undecided),
    ] {
        let matcher = compile(&schema, "albums", json).unwrap();
        assert_eq!(matcher.judge(image).unwrap(), expected, "{json}");
    }
}

#[test]
fn a_label_that_is_newer_than_the_schema_equals_no_other_and_has_no_order() {
    let mood = Type::new(
        "mood".to_owned(),
        90_000,
        tidegate_sql::TypeKind::Enum(vec!["sad".to_owned(), "glad".to_owned()]),
        "public".to_owned(),
    );
    let schema = stage::schema("public", &[("rows", vec![("m".to_owned(), mood, "")])], &[]);
    let judge = |json| {
        compile(&schema, "rows", json)
            .unwrap()
            .judge(|_| Image::Text(b"new"))
            .unwrap()
    };
    assert_eq!(judge(r#"{"m": "sad"}"#), Verdict::False);
    assert_eq!(judge(r#"{"m": {"neq": "sad"}}"#), Verdict::True);
    assert_eq!(judge(r#"{"m": {"gt": "sad"}}"#), Verdict::Undecided);
    let error = compile(&schema, "rows", r#"{"m": "none"}"#).unwrap_err();
    assert!(matches!(error, Error::InvalidValue { .. }), "{error}");
}

#[test]
fn bytes_that_are_no_value_are_an_error() {
    let schema = stage::shop();
    for (json, raw) in [
        (r#"{"id": 1}"#, Image::Binary(b"123")),
        (r#"{"id": 1}"#, Image::Text(b"x")),
        (r#"{"price": 1}"#, Image::Binary(b"")),
        (
            r#"{"price": 1}"#,
            Image::Binary(b"\0\x01\0\0\0\0\0\0\xff\xff"),
        ),
        (r#"{"released": "2024-01-01"}"#, Image::Text(b"01/02/2024")),
        (
            r#"{"key": "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"}"#,
            Image::Binary(b"short"),
        ),
        (r#"{"live": true}"#, Image::Binary(b"")),
        (r#"{"length": "1 day"}"#, Image::Text(b"P1D")),
    ] {
        let matcher = compile(&schema, "albums", json).unwrap();
        assert!(matcher.judge(|_| raw).is_err(), "{json} {raw:?}");
    }
}

#[test]
fn equalities_that_every_row_fulfils_are_pins() {
    let schema = stage::shop();
    let relation = schema.relation(schema.find("albums").unwrap());
    for (json, expected) in [
        (r#"{"id": 1}"#, &[("id", 1)][..]),
        (r#"{"id": 1, "live": true}"#, &[("id", 1), ("live", 1)]),
        (r#"{"id": {"in": [1, "1", 2, null]}}"#, &[("id", 2)]),
        (
            r#"{"OR": [{"id": 1}, {"id": 2, "live": true}, {"id": 1}]}"#,
            &[("id", 2)],
        ),
        (r#"{"OR": [{"id": 1}, {"live": true}]}"#, &[]),
        (r#"{"OR": []}"#, &[]),
        (r#"{"id": {"gt": 1}}"#, &[]),
        (r#"{"id": null}"#, &[]),
        (r#"{"not": {"id": 1}}"#, &[]),
        (r#"{"id": {"nin": [1]}}"#, &[]),
        (r#"{}"#, &[]),
    ] {
        let matcher = compile(&schema, "albums", json).unwrap();
        let pins: Vec<_> = matcher
            .pins()
            .iter()
            .map(|pin| (&*relation.column(pin.column).name, pin.keys.len()))
            .collect();
        assert_eq!(pins, expected, "{json}");
    }
}

#[test]
fn a_matcher_tells_its_columns_once_each() {
    let schema = stage::shop();
    let relation = schema.relation(schema.find("albums").unwrap());
    let matcher = compile(
        &schema,
        "albums",
        r#"{"title": null, "id": {"gt": 1, "lt": 5}, "OR": [{"id": 3}]}"#,
    )
    .unwrap();
    let names: Vec<_> = matcher
        .columns()
        .iter()
        .map(|column| &*relation.column(*column).name)
        .collect();
    assert_eq!(names, ["id", "title"]);
}
