use proptest::prelude::*;
use tidegate_methods::definition::is_definition;
use tidegate_methods::{Definition, Error, Limits};
use tidegate_sql::InputError;
use tidegate_sql::request::RequestError;
use tidegate_values::OutputFormat;

use crate::fixture::definition;

fn refusal(body: &str) -> String {
    let error = Definition::parse(body.as_bytes(), Limits::default()).unwrap_err();
    error.to_string()
}

#[test]
fn every_member_is_read() {
    let read = definition(
        r#"{"method":"getDate","q":"select :d::timestamptz as d","type_hints":{"d":"timestamptz","z":"int"},
            "type_formats":{"d":"D M d Y"},"output_format":"csv"}"#,
    );
    assert_eq!(read.name.as_str(), "getDate");
    assert_eq!(read.q, "select :d::timestamptz as d");
    let hints = [("d", "timestamptz"), ("z", "int")];
    assert_eq!(
        read.type_hints,
        hints.map(|(a, b)| (a.to_owned(), b.to_owned()))
    );
    assert_eq!(read.type_formats, [("d".to_owned(), "D M d Y".to_owned())]);
    assert_eq!(read.output_format, Some(OutputFormat::Csv));
    assert_eq!(read.statement().unwrap().placeholders(), ["d"]);
}

#[test]
fn a_null_is_as_good_as_nothing() {
    let read = definition(
        r#"{"method":"a","q":"select 1","type_hints":null,"type_formats":null,"output_format":null}"#,
    );
    assert_eq!(read, definition(r#"{"q":"select 1","method":"a"}"#));
}

#[test]
fn an_array_holds_several() {
    let body = br#"[{"method":"a","q":"select 1"},{"method":"b","q":"select 2"}]"#;
    let all = Definition::parse(body, Limits::default()).unwrap();
    let names: Vec<_> = all.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
}

#[test]
fn sql_that_postgresql_would_refuse_is_accepted() {
    for q in [
        "selec 1",
        "select from where",
        "select * from no_such_table where )(",
    ] {
        let body = serde_json::json!({"method": "a", "q": q}).to_string();
        assert_eq!(definition(&body).q, q);
    }
}

const WRONG: &[(&str, &str)] = &[
    (
        r#"{"q":"select 1"}"#,
        "`method`: missing, expected the method's name",
    ),
    (
        r#"{"method":"a"}"#,
        "`q`: missing, expected an SQL statement",
    ),
    (
        r#"{"method":"a","q":null}"#,
        "`q`: missing, expected an SQL statement",
    ),
    (
        r#"{"method":7,"q":"select 1"}"#,
        "`method`: a number, expected a string",
    ),
    (
        r#"{"method":"a b","q":"select 1"}"#,
        "`method`: not a method's name, expected 1 to 128 letters, digits, `_`, `.` and `-` \
             that begin with a letter or `_`",
    ),
    (
        r#"{"method":"rpc.discover","q":"select 1"}"#,
        "`method`: a name that begins with `rpc.`, which JSON-RPC keeps for itself",
    ),
    (
        r#"{"method":"a","q":["select 1"]}"#,
        "`q`: an array, expected a string",
    ),
    (
        r#"{"method":"a","q":"select 1","params":{}}"#,
        "`params`: values come with a call; a definition has none",
    ),
    (
        r#"{"method":"a","q":"select 1","id":1}"#,
        "`id`: unknown, expected `method`, `q`, `type_hints`, `type_formats` and \
             `output_format`",
    ),
    (
        r#"{"method":"a","q":"select 1","q":"select 2"}"#,
        "`q`: given twice",
    ),
    (
        r#"{"method":"a","q":"select 1","type_hints":[]}"#,
        "`type_hints`: an array, expected an object of strings",
    ),
    (
        r#"{"method":"a","q":"select 1","type_hints":{"x":1}}"#,
        "`type_hints.x`: a number, expected a string",
    ),
    (
        r#"{"method":"a","q":"select 1","type_formats":{"x":"Y","x":"m"}}"#,
        "`type_formats.x`: given twice",
    ),
    (
        r#"{"method":"a","q":"select 1","output_format":"geojson"}"#,
        "`output_format`: `geojson` is unknown, expected `json`, `csv` or `ndjson`",
    ),
    (
        r#"{"method":"a","q":"select '\u0000'"}"#,
        "`q`: a string with the character U+0000, which PostgreSQL cannot store",
    ),
    (
        r#"{"method":"a","q":"\ud800"}"#,
        "`q`: a string with half of a surrogate pair (`\\ud800` to `\\udfff`)",
    ),
    (
        r#"{"method":"a","q":" -- nothing"}"#,
        "`q` holds no statement",
    ),
    (
        "7",
        "the body is a number, expected an object or an array of objects",
    ),
    (
        "[]",
        "the body is an array of 0 definitions, expected 1 to 1000",
    ),
    ("[1]", "`[0]`: a number, expected an object"),
    (
        r#"[{"method":"a","q":"select 1"},{"method":"b"}]"#,
        "`[1].q`: missing, expected an SQL statement",
    ),
    (
        r#"[{"method":"a","q":"select 1"},{"method":"b","q":"select 1;select 2"}]"#,
        "[1]: `q` holds more than one statement: something follows the `;` at character 9",
    ),
    (
        r#"[{"method":"a","q":"select 1"},{"method":"b","q":"select 1","type_hints":{"a":0}}]"#,
        "`[1].type_hints.a`: a number, expected a string",
    ),
];

#[test]
fn what_is_wrong_is_named() {
    for (body, expected) in WRONG {
        assert_eq!(refusal(body), *expected, "{body}");
    }
}

#[test]
fn a_refused_kind_keeps_its_kind_of_error() {
    let body = br#"[{"method":"a","q":"commit"}]"#;
    let error = Definition::parse(body, Limits::default()).unwrap_err();
    let Error::Statement {
        index: Some(0),
        source,
    } = error
    else {
        unreachable!("{error}")
    };
    assert!(matches!(
        source,
        InputError::StatementNotAllowed {
            keyword: "COMMIT",
            ..
        }
    ));
}

#[test]
fn invalid_json_and_invalid_definitions_are_distinguished() {
    for body in ["", "{", "{\"a\":}", "nul", "{} {}", "\u{feff}{}"] {
        let error = Definition::parse(body.as_bytes(), Limits::default()).unwrap_err();
        let Error::Request(RequestError::InvalidJson {
            line: 1, column, ..
        }) = error
        else {
            unreachable!("{body}: {error}")
        };
        assert!(column >= 1);
    }
    let error = Definition::parse(b"\"\xff\"", Limits::default()).unwrap_err();
    assert!(matches!(
        error,
        Error::Request(RequestError::InvalidJson { .. })
    ));
}

#[test]
fn limits_are_kept() {
    let limits = Limits {
        statement: 8,
        definitions: 1,
    };
    assert!(Definition::parse(br#"{"method":"a","q":"select 1"}"#, limits).is_ok());
    let long = Definition::parse(br#"{"method":"a","q":"select 12"}"#, limits).unwrap_err();
    assert_eq!(
        long.to_string(),
        "`q`: 9 bytes of SQL, at most 8 are accepted"
    );
    let many = br#"[{"method":"a","q":"select 1"},{"method":"b","q":"select 1"}]"#;
    let many = Definition::parse(many, limits).unwrap_err();
    assert_eq!(
        many.to_string(),
        "the body is an array of 2 definitions, expected 1 to 1"
    );
}

#[test]
fn deep_nesting_is_an_error_like_another() {
    let deep = format!(
        r#"{{"method":{}1{}}}"#,
        "[".repeat(100_000),
        "]".repeat(100_000)
    );
    assert_eq!(refusal(&deep), "`method`: an array, expected a string");
}

#[test]
fn a_body_with_method_is_a_definition() {
    for (body, expected) in [
        (r#"{"method":"a","q":"select 1"}"#, true),
        (r#"{"q":"select 1","method":null}"#, true),
        (r#"[{"method":"a"},{"q":"b"}]"#, true),
        (r#"{"q":"select 1"}"#, false),
        (r#"[{"q":"select 1"}]"#, false),
        ("[]", false),
        ("7", false),
        ("{", false),
    ] {
        assert_eq!(is_definition(body.as_bytes()), expected, "{body}");
    }
}

proptest! {
    #[test]
    fn no_body_makes_it_panic(body in "[\\[\\]{}\",:a-z0-9 \\\\]{0,60}") {
        let _ = Definition::parse(body.as_bytes(), Limits::default());
        let _ = is_definition(body.as_bytes());
    }
}
