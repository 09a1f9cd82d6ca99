//! Compares the parsing of nearly valid texts with PostgreSQL's input functions. A text that is
//! rejected here must be rejected there, and a text that the matcher accepts must have the same
//! meaning.

use serde_json::{Value, json};
use tidegate_catalog::Schema;
use tidegate_filter::{Filter, Json, Matcher, RowValue};

use crate::fixture;
use tidegate_testkit::Random;

const TYPES: &[&str] = &[
    "int2",
    "int4",
    "int8",
    "oid",
    "numeric",
    "float4",
    "float8",
    "bool",
    "uuid",
    "date",
    "time",
    "timetz",
    "timestamp",
    "timestamptz",
    "interval",
];

/// The characters that mutations insert.
const CHARACTERS: &[char] = &[
    '0', '1', '2', '5', '6', '9', '-', '+', ':', '.', ' ', 'T', 'Z', 'z', 'e', 'E', 'B', 'C', 'P',
    'Y', 'M', 'D', 'H', 'S', 'i', 'n', 'f', 'a', 't', 'y', 'o', 's', 'x', '_', '{', '}', '\t',
];

const MORE: &[(&str, &[&str])] = &[
    (
        "time",
        &[
            "04:05",
            "040506",
            "04:05 AM",
            "04:05:06Z",
            "04:05:60",
            "24:00",
            "24:00:01",
            "4:05",
        ],
    ),
    (
        "timetz",
        &[
            "04:05:06",
            "04:05:06+1",
            "04:05:06-0530",
            "04:05:06+15:59:59",
            "04:05+16",
            "04:05 +02",
        ],
    ),
    (
        "date",
        &[
            "2024-1-5",
            "24-01-05",
            "20240105",
            "2024-02-30",
            "January 8, 1999",
            "epoch",
            "today",
            "12024-01-05",
            "2024-01-05 BC",
            "0000-01-01",
            "2024-01-05T10:00",
        ],
    ),
    (
        "timestamptz",
        &[
            "2024-01-05 10:00:00.1234567",
            "2024-01-05T10:00:00.5+0530",
            "2024-01-05 10:00 PST",
            "2024-01-05T10",
            "epoch",
            "2024-01-05 24:00:00",
            "2024-01-05 10:00:00 +02",
            "2024-01-05T10:00:00-00:30:30",
        ],
    ),
    (
        "timestamp",
        &[
            "2024-01-05T10:00:00+05",
            "2024-01-05 10:00 BC",
            "2024-001",
            "2024-01-05 10:60",
            "294277-01-01",
            "4714-11-24 BC",
            "4714-11-23 BC",
            "4713-01-01 00:00 BC",
        ],
    ),
    (
        "interval",
        &[
            "1",
            "1 day ago",
            "P1Y2M3W",
            "P1DT",
            "1 day 1 day",
            "1:2:3",
            "12:34",
            "1 mon -1 days",
            "-1 day -00:00:01",
            "1.5 days",
            "P1.5D",
            "P-1Y",
            "@ 1 minute",
            "infinity",
            "00:00:60",
            "1 year 1 mons 5",
            "PT0.1234567S",
            "PT-0.5S",
            "-P1D",
            "P",
            "+1 day",
            "1 days 25:00:00",
        ],
    ),
    (
        "bool",
        &["t", "T", "tr", "y", "n", "of", "o", "1", "10", "TRUE "],
    ),
    (
        "float4",
        &[
            "1e39",
            "1e-46",
            "-1e-50",
            "1.17549435e-38",
            "0x1p3",
            "+inf",
            "infinit",
            "1e",
            ".5",
            "5.",
        ],
    ),
    (
        "float8",
        &[
            "1e309", "1e-400", "4.9e-324", "2e-324", "0e-999", "nan ", "-nan",
        ],
    ),
    (
        "numeric",
        &[
            "1e131071", "1e-16383", "0x1F", "1_000", ".", "1e+5", "1e-5", " 12 ", "NaN", "-inf",
        ],
    ),
    (
        "uuid",
        &[
            "a0ee-bc99-9c0b-4ef8-bb6d-6bb9-bd38-0a11",
            "a0eebc999c0b4ef8bb6d6bb9bd380a11",
            "{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
            "a0eebc99-9c0b4ef8-bb6d6bb9-bd380a11",
        ],
    ),
];

fn mutated(random: &mut Random, text: &str) -> String {
    let mut characters: Vec<char> = text.chars().collect();
    for _ in 0..random.below(3) {
        let at = random.below(characters.len() + 1);
        match random.below(3) {
            0 => characters.insert(at, *random.pick(CHARACTERS)),
            1 if at < characters.len() => drop(characters.remove(at)),
            _ if at < characters.len() => characters[at] = *random.pick(CHARACTERS),
            _ => {}
        }
    }
    characters.into_iter().collect()
}

/// The texts of a type's samples, and more.
fn bases(r#type: &str) -> Vec<String> {
    let samples: Vec<(String, String, String, Vec<Value>)> =
        serde_json::from_str(include_str!("golden/scalars.json")).unwrap();
    let values = samples
        .into_iter()
        .filter(|sample| sample.1 == r#type)
        .flat_map(|sample| sample.3);
    let texts = values.map(|value| {
        value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned)
    });
    let more = MORE
        .iter()
        .filter(|(name, _)| *name == r#type)
        .flat_map(|(_, texts)| texts.iter());
    texts
        .filter(|text| !text.starts_with("{\""))
        .chain(more.map(|text| (*text).to_owned()))
        .collect()
}

/// The values that PostgreSQL reads from the texts; `None` if it rejects a text.
async fn read_by_postgresql(
    client: &tokio_postgres::Client,
    r#type: &str,
    texts: &[String],
) -> Vec<Option<String>> {
    let sql = format!(
        "select pg_temp.try(t, '{type}') from unnest($1::text[]) with ordinality u(t, n) order by n"
    );
    let rows = client.query(&sql, &[&texts]).await.unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

#[tokio::test]
async fn no_text_is_read_otherwise_than_postgresql_reads_it() {
    let ddl: Vec<_> = TYPES
        .iter()
        .map(|name| format!("\"{name}\" {name}"))
        .collect();
    let ddl = format!("create table rows ({})", ddl.join(", "));
    let client = fixture::database("filter_constants", &ddl).await;
    let columns = fixture::columns(&client, "rows").await;
    let schema = fixture::schema("public", &[("rows", columns)], &[]);
    client
        .batch_execute(
            "create function pg_temp.try(t text, type text) returns text language plpgsql as $$ \
             declare result text; begin execute format('select format(''%%s'', %L::%s)', t, type) into result; \
             return result; exception when others then return null; end $$",
        )
        .await
        .unwrap();
    let mut random = Random::new(3);
    let mut problems = Vec::new();
    for r#type in TYPES {
        let bases = bases(r#type);
        let mut texts = bases.clone();
        for _ in 0..1_500 {
            let base = random.pick(&bases).clone();
            texts.push(mutated(&mut random, &base));
        }
        let theirs = read_by_postgresql(&client, r#type, &texts).await;
        let mut read = 0;
        for (text, theirs) in texts.iter().zip(theirs) {
            match agrees(&schema, r#type, text, theirs.as_deref()) {
                Ok(is_read) => read += usize::from(is_read),
                Err(problem) => problems.push(format!("{type} {text:?}: {problem}")),
            }
        }
        assert!(read > 100, "only {read} texts of {type} were read");
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// Whether the matcher reads the text. If so, PostgreSQL must read the same value.
fn agrees(schema: &Schema, r#type: &str, text: &str, theirs: Option<&str>) -> Result<bool, String> {
    let relation = schema.find("rows").unwrap();
    let json = json!({r#type: {"eq": text}}).to_string();
    let filter = match (
        Filter::parse(&Json::from(&*json), schema, relation, "where"),
        theirs,
    ) {
        (Ok(filter), _) => filter,
        (Err(_), None) => return Ok(false),
        (Err(error), Some(_)) => return Err(format!("PostgreSQL reads what is refused: {error}")),
    };
    let Ok(matcher) = Matcher::compile(&filter, schema.relation(relation)) else {
        return Ok(false);
    };
    let theirs = theirs.ok_or("PostgreSQL refuses what the matcher reads")?;
    match matcher.evaluate(|_| RowValue::Text(theirs.as_bytes())) {
        Ok(verdict) if verdict.passes() => Ok(true),
        other => Err(format!("{theirs:?} for PostgreSQL: {other:?}")),
    }
}
