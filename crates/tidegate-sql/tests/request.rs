//! Tests of parsing the body of a request.

use tidegate_sql::request::{Limits, RequestError, Requests, SqlRequest, parse};
use tidegate_sql::{InputError, Params};
use tidegate_values::OutputFormat;

fn one(body: &str) -> SqlRequest<'_> {
    match parse(body.as_bytes(), Limits::default()) {
        Ok(Requests::One(request)) => request,
        other => panic!("{body}: {other:?}"),
    }
}

fn error(body: impl AsRef<[u8]>) -> RequestError {
    parse(body.as_ref(), Limits::default()).unwrap_err()
}

fn pairs(entries: &[(impl AsRef<str>, impl AsRef<str>)]) -> Vec<(String, String)> {
    entries
        .iter()
        .map(|(a, b)| (a.as_ref().to_owned(), b.as_ref().to_owned()))
        .collect()
}

#[test]
fn a_request_is_read_with_all_its_members() {
    let request = one(
        r#" {"q":"select :a","params":{"a":1.2300000000000000000000000001},
            "type_hints":{"a":"numeric"},"type_formats":{"d":"Y-m-d"},
            "output_format":"ndjson","id":{"n": 7},"srs":4326,"geo_format":"wkt",
            "convert_types":false,"lifetime":5,"format":"x"} "#,
    );
    assert_eq!(request.q, "select :a");
    let Params::One(set) = request.params else {
        panic!("one set")
    };
    assert_eq!(
        (&*set[0].0, set[0].1.get()),
        ("a", "1.2300000000000000000000000001")
    );
    assert_eq!(pairs(&request.type_hints), pairs(&[("a", "numeric")]));
    assert_eq!(pairs(&request.type_formats), pairs(&[("d", "Y-m-d")]));
    assert_eq!(request.output_format, Some(OutputFormat::Ndjson));
    assert_eq!(request.id.unwrap().get(), r#"{"n": 7}"#);
}

#[test]
fn only_the_statement_is_required() {
    let request = one(r#"{"q":"select \"\u00e9\" \ud83d\ude00"}"#);
    assert_eq!(request.q, "select \"é\" \u{1f600}");
    assert!(matches!(request.params, Params::One(set) if set.is_empty()));
    assert!(request.output_format.is_none() && request.id.is_none());
    one(
        r#"{"q":"x","params":null,"type_hints":null,"type_formats":null,"output_format":null,"base64":null}"#,
    );
}

#[test]
fn parameter_sets_may_be_a_list() {
    let request = one(r#"{"q":"x","params":[{"a":1},{"a":2}]}"#);
    assert!(matches!(request.params, Params::Many(sets) if sets.len() == 2));
}

#[test]
fn an_array_holds_several_requests() {
    let body = br#"[{"q":"select 1"},{"q":"select 2","id":"b"}]"#;
    let Ok(Requests::Many(requests)) = parse(body, Limits::default()) else {
        panic!("an array")
    };
    assert_eq!(requests[1].q, "select 2");
    assert_eq!(requests[1].id.unwrap().get(), "\"b\"");
}

#[test]
fn a_statement_may_be_base64url() {
    for q in [
        "c2VsZWN0ICc_Pj4n",
        "c2VsZWN0ICc_Pj4nIA",
        "c2VsZWN0ICc_Pj4nIA==",
    ] {
        let body = format!(r#"{{"q":"{q}","base64":true}}"#);
        assert_eq!(one(&body).q.trim_end(), "select '?>>'");
    }
    assert_eq!(one(r#"{"base64":false,"q":"c2Vs"}"#).q, "c2Vs");
    for (q, problem) in [("a b", "not base64url"), ("_w", "not UTF-8")] {
        let message = error(format!(r#"{{"q":"{q}","base64":true}}"#)).to_string();
        assert!(
            message.contains("`q`") && message.contains(problem),
            "{message}"
        );
    }
}

#[test]
fn wrong_members_are_named_with_what_was_expected() {
    for (body, start) in [
        (
            r#"{"params":{}}"#,
            "`q`: missing, expected an SQL statement",
        ),
        (r#"{"q":5}"#, "`q`: a number, expected a string"),
        (r#"{"q":null}"#, "`q`: null, expected a string"),
        (r#"{"q":"x","foo":1}"#, "`foo`: unknown, expected `q`, "),
        (r#"{"q":"x","foo":null}"#, "`foo`: unknown"),
        (r#"{"q":"x","method":"m"}"#, "`method`: unknown"),
        (r#"{"q":"x","q":"y"}"#, "`q`: given twice"),
        (r#"[{"q":"x"},{"q":"y","foo":1}]"#, "`[1].foo`: unknown"),
        (r#"[{"q":"x"},{"params":{}}]"#, "`[1].q`: missing"),
        (r#"[{"q":"x"},5]"#, "`[1]`: a number, expected an object"),
        (
            r#"[{"q":"x","params":[{},1]}]"#,
            "`[0].params[1]`: a number, expected an object",
        ),
        (
            r#"{"q":"x","params":"y"}"#,
            "`params`: a string, expected an object or an array of objects",
        ),
        (
            r#"{"q":"x","type_hints":["int"]}"#,
            "`type_hints`: an array, expected an object of strings",
        ),
        (
            r#"{"q":"x","type_hints":{"a":1}}"#,
            "`type_hints.a`: a number, expected a string",
        ),
        (
            r#"{"q":"x","type_formats":{"a":"Y","a":"m"}}"#,
            "`type_formats.a`: given twice",
        ),
        (
            r#"{"q":"x","output_format":"xml"}"#,
            "`output_format`: `xml` is unknown, expected `json`, `csv`, `ndjson` or `geojson`",
        ),
        (
            r#"{"q":"x","output_format":true}"#,
            "`output_format`: a boolean, expected a string",
        ),
        (
            r#"{"q":"x","base64":"yes"}"#,
            "`base64`: a string, expected a boolean",
        ),
        (
            r#"{"q":"\ud800"}"#,
            "`q`: a string with half of a surrogate pair",
        ),
        (
            r#"{"q":"\u0000"}"#,
            "`q`: a string with the character U+0000",
        ),
        (
            r#"{"q":"x","type_hints":{"a":"\u0000"}}"#,
            "`type_hints.a`: a string with the character U+0000",
        ),
        (
            "5",
            "the body is a number, expected an object or an array of objects",
        ),
        (
            "[]",
            "the body is an array of 0 requests, expected 1 to 1000",
        ),
    ] {
        let message = error(body).to_string();
        assert!(message.starts_with(start), "{body}: {message}");
    }
}

#[test]
fn names_that_cannot_be_read_are_errors_not_panics() {
    for body in [
        r#"{"\ud800":1}"#,
        r#"[{"\udc00":1}]"#,
        r#"{"q":"x","params":{"\ud800":1}}"#,
        r#"{"q":"x","params":{"\u0000":1}}"#,
    ] {
        error(body);
    }
}

#[test]
fn invalid_json_is_reported_with_its_position() {
    for (body, at) in [
        (&b""[..], (1, 1)),
        (b"{", (1, 1)),
        (b"{\"q\":\n 'x'}", (2, 2)),
        (b"{\"q\":\"x\"} x", (1, 11)),
        (b"{\"q\":\"\xff\"}", (1, 7)),
        (b"{\"q\":\"a\nb\"}", (1, 7)),
        (b"{\"q\":01}", (1, 7)),
    ] {
        match error(body) {
            RequestError::InvalidJson {
                line,
                column,
                problem,
            } => {
                assert_eq!((line, column), at, "{problem}");
                assert!(!problem.contains(" at line "), "{problem}");
            }
            other => panic!("{other}"),
        }
    }
}

#[test]
fn deep_nesting_is_an_error_and_no_overflow() {
    for open in ["[", "{\"a\":", "{\"q\":\"\\\"[[\",\"params\":["] {
        let body = open.repeat(200_000);
        let message = error(&body).to_string();
        assert!(
            message.contains("nesting of more than 128 levels"),
            "{message}"
        );
    }
    let deep = format!(
        r#"{{"q":"{}","params":{{"a":{}1{}}}}}"#,
        "[".repeat(500),
        "[".repeat(126),
        "]".repeat(126)
    );
    one(&deep);
}

#[test]
fn limits_are_kept() {
    let limits = Limits {
        statement: 8,
        requests: 2,
        parameter_sets: 3,
        depth: 4,
    };
    let fails = |body: &str| parse(body.as_bytes(), limits).unwrap_err().to_string();
    assert!(parse(br#"{"q":"select 1"}"#, limits).is_ok());
    assert_eq!(
        fails(r#"{"q":"select 12"}"#),
        "`q`: 9 bytes of SQL, at most 8 are accepted"
    );
    let three = format!("[{}]", [r#"{"q":"x"}"#; 3].join(","));
    assert_eq!(
        fails(&three),
        "the body is an array of 3 requests, expected 1 to 2"
    );
    let sets = r#"[{"q":"x","params":[{},{}]},{"q":"x","params":[{},{}]}]"#;
    assert_eq!(
        fails(sets),
        "`[1].params`: more than 3 parameter sets in one body"
    );
}

#[test]
fn input_errors_keep_their_kind() {
    assert!(matches!(
        error(r#"{"q":1}"#),
        RequestError::Input(InputError::InvalidField { field, .. }) if field == "q"
    ));
}
