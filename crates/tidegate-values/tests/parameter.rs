//! Tests of encoding JSON as text for PostgreSQL.

mod containers;
mod shapes;

use std::cell::Cell;

use bytes::BytesMut;
use postgres_types::Field;
use tidegate_values::datetime::Zone;
use tidegate_values::parameter::{IsNull, encode};
use tidegate_values::{InputFormat, Parameter, Type, TypeKind, ValueError};

fn encoded(
    json: &str,
    r#type: &Type,
    specifiers: Option<&str>,
) -> Result<Option<String>, ValueError> {
    encoded_in(json, r#type, specifiers, Zone::default())
}

fn encoded_in(
    json: &str,
    r#type: &Type,
    specifiers: Option<&str>,
    zone: Zone,
) -> Result<Option<String>, ValueError> {
    let format = specifiers.map(|specifiers| InputFormat {
        specifiers: specifiers.to_owned(),
        zone,
    });
    let mut out = BytesMut::from("before:");
    let value = Parameter::Json(json.into());
    let null = encode(
        &value,
        r#type,
        format.as_ref(),
        &|| "params.p".to_owned(),
        &mut out,
    )?;
    let text = str::from_utf8(&out)
        .unwrap()
        .strip_prefix("before:")
        .unwrap()
        .to_owned();
    match null {
        IsNull::Yes => {
            assert_eq!(text, "");
            Ok(None)
        }
        IsNull::No => Ok(Some(text)),
    }
}

fn check(json: &str, r#type: &Type, expected: &str) {
    let text = encoded(json, r#type, None).unwrap_or_else(|error| panic!("{json}: {error}"));
    assert_eq!(text.as_deref(), Some(expected), "{json} as {type}");
}

fn fails(json: &str, r#type: &Type, message: &str) {
    let error = match encoded(json, r#type, None) {
        Err(error) => error.to_string(),
        Ok(text) => panic!("{json} as {type} is {text:?}"),
    };
    assert_eq!(error, message, "{json} as {type}");
}

fn own(name: &str, kind: TypeKind) -> Type {
    Type::new(name.to_owned(), 100_000, kind, "public".to_owned())
}

fn array(element: &Type) -> Type {
    own(
        &format!("_{}", element.name()),
        TypeKind::Array(element.clone()),
    )
}

fn composite() -> Type {
    let fields = vec![
        Field::new("a".to_owned(), Type::INT4),
        Field::new("b c".to_owned(), Type::TEXT),
        Field::new("list".to_owned(), Type::TEXT_ARRAY),
        Field::new("during".to_owned(), Type::TSTZ_RANGE),
    ];
    own("pair", TypeKind::Composite(fields))
}

#[test]
fn scalars_are_handed_on_as_they_are() {
    check("5", &Type::INT4, "5");
    check(
        "-12345678901234567890.123456789012345678901e5",
        &Type::NUMERIC,
        "-12345678901234567890.123456789012345678901e5",
    );
    check("9007199254740993", &Type::INT8, "9007199254740993");
    check("\"5\"", &Type::INT4, "5");
    check("true", &Type::BOOL, "true");
    check("\"yes\"", &Type::BOOL, "yes");
    check("7", &Type::TEXT, "7");
    check(
        " \"a\\n\\\"\\u00e9\\ud83d\\ude00\" ",
        &Type::TEXT,
        "a\n\"é\u{1f600}",
    );
    check("\"\"", &Type::TEXT, "");
    check("\"NaN\"", &Type::FLOAT8, "NaN");
    check("\"infinity\"", &Type::DATE, "infinity");
    check("\"tomorrow\"", &Type::TIMESTAMPTZ, "tomorrow");
    check(
        "\"sad\"",
        &own("mood", TypeKind::Enum(vec!["sad".to_owned()])),
        "sad",
    );
    check("\"1 2\"", &own("cube", TypeKind::Simple), "1 2");
    check("\"x\"", &Type::UNKNOWN, "x");
}

#[test]
fn null_is_null_for_every_type() {
    for r#type in [
        Type::INT4,
        Type::JSONB,
        Type::INT4_ARRAY,
        Type::INT4_RANGE,
        composite(),
    ] {
        assert_eq!(encoded(" null ", &r#type, None), Ok(None));
    }
    let mut out = BytesMut::new();
    let null = encode(&Parameter::Null, &Type::TEXT, None, &String::new, &mut out);
    assert_eq!((null, out.len()), (Ok(IsNull::Yes), 0));
}

#[test]
fn text_is_taken_verbatim() {
    let mut out = BytesMut::new();
    let text = Parameter::Text("{1,2}".into());
    encode(&text, &Type::INT4_ARRAY, None, &String::new, &mut out).unwrap();
    assert_eq!(&out[..], b"{1,2}");
    let nul = Parameter::Text("a\0".into());
    assert!(encode(&nul, &Type::TEXT, None, &String::new, &mut out).is_err());
}

#[test]
fn json_documents_stay_verbatim() {
    for document in [
        r#"{"a": [1.10, null], "a": 2}"#,
        "[1, [2]]",
        "\"text\"",
        "1e400",
        "true",
    ] {
        check(document, &Type::JSON, document);
        check(document, &Type::JSONB, document);
    }
}

#[test]
fn bytes_are_base64_or_hex() {
    check("\"3q2+7w==\"", &Type::BYTEA, "\\xdeadbeef");
    check("\"3q2+7w\"", &Type::BYTEA, "\\xdeadbeef");
    check("\"\"", &Type::BYTEA, "\\x");
    check("\"\\\\xDEAD\"", &Type::BYTEA, "\\xDEAD");
    fails(
        "\"a-b\"",
        &Type::BYTEA,
        "`params.p` is not a bytea: a string that is not base64, expected base64, or `\\x` and hex digits",
    );
    fails(
        "5",
        &Type::BYTEA,
        "`params.p` is not a bytea: a number, expected base64, or `\\x` and hex digits",
    );
}

#[test]
fn domains_are_read_by_their_base() {
    check(
        "[1]",
        &own("ids", TypeKind::Domain(Type::INT4_ARRAY)),
        "{1}",
    );
    let nested = own(
        "outer",
        TypeKind::Domain(own("inner", TypeKind::Domain(Type::JSONB))),
    );
    check("{\"a\":1}", &nested, "{\"a\":1}");
}

#[test]
fn objects_and_arrays_are_no_scalars() {
    fails(
        "{\"a\":1}",
        &Type::INT4,
        "`params.p` is not a int4: an object",
    );
    fails("[1]", &Type::TEXT, "`params.p` is not a text: an array");
    fails(
        "true",
        &Type::INT4_ARRAY,
        "`params.p` is not a int4[]: a boolean, expected an array",
    );
    fails(
        "[{}]",
        &Type::INT4_ARRAY,
        "`params.p[0]` is not a int4: an object",
    );
    for json in ["{\"a\":1}", "\"(1,x)\""] {
        fails(
            json,
            &Type::RECORD,
            "`params.p` is not a record: the statement does not tell the composite type, expected its name in `type_hints`",
        );
    }
}

#[test]
fn what_postgresql_cannot_store_is_refused() {
    fails(
        "\"a\\u0000\"",
        &Type::TEXT,
        "`params.p` is not a text: a string with the character U+0000, which PostgreSQL cannot store",
    );
    fails(
        "[\"\\ud800\"]",
        &Type::TEXT_ARRAY,
        "`params.p[0]` is not a text: a string with half of a surrogate pair (`\\ud800` to `\\udfff`)",
    );
}

#[test]
fn formats_are_read_by_their_specifiers() {
    let formatted = |json, r#type: &Type| encoded(json, r#type, Some("d.m.Y"));
    assert_eq!(
        formatted("\"31.12.2024\"", &Type::DATE),
        Ok(Some("2024-12-31".to_owned()))
    );
    assert_eq!(formatted("null", &Type::DATE), Ok(None));
    assert_eq!(
        formatted("[\"31.12.2024\",null]", &Type::DATE_ARRAY),
        Ok(Some("{\"2024-12-31\",NULL}".to_owned()))
    );
    assert_eq!(
        formatted("{\"lower\":\"31.12.2024\"}", &Type::DATE_RANGE),
        Ok(Some("[\"2024-12-31\",)".to_owned()))
    );
    for (json, r#type) in [
        ("\"2024-12-31\"", &Type::DATE),
        ("null", &Type::INT4),
        ("\"31.12.2024\"", &Type::TEXT),
        ("\"[31.12.2024,)\"", &Type::DATE_RANGE),
    ] {
        let error = formatted(json, r#type).unwrap_err();
        assert!(error.to_string().contains("p`"), "{error}");
    }
    match formatted("5", &Type::INT4) {
        Err(ValueError::InvalidFormat { name, .. }) => assert_eq!(name, "p"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_formatted_time_without_a_zone_is_in_the_requests_zone() {
    let zone = Zone::named("Europe/Copenhagen").unwrap();
    let read = |zone| {
        encoded_in(
            "\"2024-07-01 12:00\"",
            &Type::TIMESTAMPTZ,
            Some("Y-m-d H:i"),
            zone,
        )
    };
    assert!(
        read(zone)
            .unwrap()
            .unwrap()
            .starts_with("2024-07-01T10:00:00"),
        "summer time"
    );
    assert!(
        read(Zone::default())
            .unwrap()
            .unwrap()
            .starts_with("2024-07-01T12:00:00")
    );
}

#[test]
fn the_place_is_asked_for_only_by_an_error() {
    let asked = Cell::new(0);
    let place = || {
        asked.set(asked.get() + 1);
        "params[3].p".to_owned()
    };
    let mut out = BytesMut::new();
    let list = Parameter::Json("[1,2,3]".into());
    encode(&list, &Type::INT4_ARRAY, None, &place, &mut out).unwrap();
    assert_eq!(asked.get(), 0);
    let error = encode(&list, &Type::INT4, None, &place, &mut out).unwrap_err();
    assert!(error.to_string().starts_with("`params[3].p`"));
    assert_eq!(asked.get(), 1);
}

#[test]
fn broken_documents_are_errors_not_panics() {
    let types = [
        Type::INT4,
        Type::TEXT,
        Type::JSONB,
        Type::BYTEA,
        Type::TEXT_ARRAY,
        Type::JSONB_ARRAY,
        Type::INT4_RANGE,
        Type::INT4MULTI_RANGE,
        Type::INTERVAL,
        Type::POINT,
        Type::PATH,
        Type::POLYGON_ARRAY,
        Type::PATH_ARRAY,
        composite(),
        own("geography", TypeKind::Simple),
    ];
    for document in [
        "", " ", "\"", "[", "{", "[[", "[1,", "{\"a\"", "]", "[}", "\"\\", "[\"\\\"]", "é",
    ] {
        for r#type in &types {
            let _ = encoded(document, r#type, None);
            let _ = encoded(&format!("[{document}]"), r#type, None);
        }
    }
}
