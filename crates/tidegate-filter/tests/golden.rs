//! Compares the SQL of JSON filters with `tests/golden/where.txt`.

use std::fmt::Write as _;

use tidegate_testkit::assert_golden;
use tidegate_values::Parameter;

use crate::fixture;

/// In the file, each case is a line of JSON, followed by the SQL text and the parameters, or by an
/// error.
#[test]
fn json_becomes_the_sql_of_the_golden_file() {
    let path = "tests/golden/where.txt";
    let golden = std::fs::read_to_string(path).unwrap();
    let schema = fixture::shop();
    let mut written = String::new();
    let cases = golden
        .lines()
        .filter(|line| line.starts_with('{') || line.starts_with("null"));
    for json in cases {
        let _ = writeln!(written, "{json}\n{}\n", outcome(&schema, json));
    }
    assert!(written.lines().count() > 150, "{path} has lost its cases");
    assert_golden(path, &written);
}

fn outcome(schema: &tidegate_catalog::Schema, json: &str) -> String {
    let filter = match fixture::parse(schema, "albums", json) {
        Ok(filter) => filter,
        Err(error) => return format!("  ! {error}"),
    };
    let relation = schema.find("albums").unwrap();
    let bound = fixture::select(schema, relation, &filter, "1");
    let text = bound.statement.text();
    let condition = text.split_once(" where ").unwrap().1;
    let mut out = format!("  {condition}");
    for (number, value) in bound.sets[0].iter().enumerate() {
        let place = bound.place(0, number);
        let value = match value {
            Parameter::Null => "NULL".to_owned(),
            Parameter::Json(json) => format!("json {json}"),
            Parameter::Text(text) => format!("text {text}"),
        };
        let _ = write!(out, "\n  ${} = {value} -- {place}", number + 1);
    }
    if filter.is_empty() {
        out.push_str("\n  -- keeps no row out");
    }
    out
}
