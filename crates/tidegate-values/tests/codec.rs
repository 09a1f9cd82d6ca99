//! Tests of decoding, with bytes written by hand.

mod generated;
mod spatial;

use bytes::BytesMut;
use tidegate_values::codec::{ValueWriter, wire_format};
use tidegate_values::{Type, TypeKind, WireFormat};

use crate::rows::column;

fn show(
    r#type: &Type,
    format: WireFormat,
    raw: &[u8],
) -> Result<String, tidegate_values::MalformedValue> {
    let mut out = BytesMut::new();
    ValueWriter::new(&column("v", r#type.clone(), format)).json(raw, &mut out)?;
    Ok(String::from_utf8(out.to_vec()).unwrap())
}

fn binary(r#type: &Type, raw: &[u8]) -> String {
    show(r#type, WireFormat::Binary, raw).unwrap()
}

fn text(r#type: &Type, raw: &str) -> String {
    show(r#type, WireFormat::Text, raw.as_bytes()).unwrap()
}

fn made(name: &str, oid: u32, kind: TypeKind) -> Type {
    Type::new(name.to_owned(), oid, kind, "public".to_owned())
}

fn geometry() -> Type {
    made("geometry", 90_000, TypeKind::Simple)
}

#[test]
fn integers_keep_every_digit() {
    assert_eq!(binary(&Type::INT2, &i16::MIN.to_be_bytes()), "-32768");
    assert_eq!(binary(&Type::INT4, &i32::MIN.to_be_bytes()), "-2147483648");
    assert_eq!(
        binary(&Type::INT8, &i64::MAX.to_be_bytes()),
        "9223372036854775807"
    );
    assert_eq!(binary(&Type::OID, &u32::MAX.to_be_bytes()), "4294967295");
}

#[test]
fn floats_are_the_shortest_numbers_and_words_where_json_has_none() {
    for (value, shown) in [
        (1.0, "1"),
        (-0.0, "-0"),
        (0.1, "0.1"),
        (100_000.0, "100000"),
        (1e20, "1e20"),
        (5e-324, "5e-324"),
        (f64::MAX, "1.7976931348623157e308"),
        (f64::NAN, "\"NaN\""),
        (f64::INFINITY, "\"Infinity\""),
        (f64::NEG_INFINITY, "\"-Infinity\""),
    ] {
        assert_eq!(binary(&Type::FLOAT8, &f64::to_be_bytes(value)), shown);
    }
    assert_eq!(binary(&Type::FLOAT4, &0.1_f32.to_be_bytes()), "0.1");
    assert_eq!(text(&Type::FLOAT8, "1e+20"), "1e20");
    assert_eq!(text(&Type::FLOAT4, "-Infinity"), "\"-Infinity\"");
}

#[test]
fn strings_are_escaped_wherever_the_special_byte_stands() {
    for length in 0..40 {
        for at in 0..length {
            for (special, escaped) in [
                ("\"", "\\\""),
                ("\\", "\\\\"),
                ("\n", "\\n"),
                ("\u{1}", "\\u0001"),
                ("é", "é"),
                ("\u{1f}", "\\u001f"),
            ] {
                let plain = "x".repeat(length);
                let shown = binary(
                    &Type::TEXT,
                    format!("{}{special}{}", &plain[..at], &plain[at..]).as_bytes(),
                );
                assert_eq!(
                    shown,
                    format!("\"{}{escaped}{}\"", &plain[..at], &plain[at..])
                );
            }
        }
    }
}

#[test]
fn bytes_that_are_no_utf8_become_replacement_characters() {
    assert_eq!(binary(&Type::TEXT, b"a\xFFb\""), "\"a\u{FFFD}b\\\"\"");
    assert_eq!(binary(&Type::JSON, b"\"\xC3\""), "\"\u{FFFD}\"");
}

#[test]
fn a_type_is_asked_for_in_binary_only_when_all_of_it_is_read() {
    let money = made("price", 90_001, TypeKind::Domain(Type::MONEY));
    let fields = |r#type: Type| {
        TypeKind::Composite(vec![
            postgres_types::Field::new("a".to_owned(), Type::INT4),
            postgres_types::Field::new("b".to_owned(), r#type),
        ])
    };
    for (r#type, format) in [
        (Type::INT4_ARRAY, WireFormat::Binary),
        (Type::TSTZ_RANGE, WireFormat::Binary),
        (Type::NUMMULTI_RANGE, WireFormat::Binary),
        (Type::INT2_VECTOR, WireFormat::Binary),
        (geometry(), WireFormat::Binary),
        (
            made("status", 90_002, TypeKind::Enum(vec!["on".to_owned()])),
            WireFormat::Binary,
        ),
        (made("pair", 90_003, fields(Type::DATE)), WireFormat::Binary),
        (
            made("offer", 90_004, fields(money.clone())),
            WireFormat::Text,
        ),
        (
            made("_price", 90_005, TypeKind::Array(money)),
            WireFormat::Text,
        ),
        (Type::MONEY, WireFormat::Text),
        (Type::RECORD, WireFormat::Text),
        (made("hstore", 90_006, TypeKind::Simple), WireFormat::Text),
    ] {
        assert_eq!(wire_format(&r#type), format, "{type}");
    }
}

#[test]
fn text_forms_of_containers_are_taken_apart() {
    let money = |kind: fn(Type) -> TypeKind| made("m", 90_010, kind(Type::MONEY));
    for (r#type, raw, shown) in [
        (
            money(TypeKind::Array),
            r#"{"$1,000.00",NULL,"NULL","a\"b\\c",""}"#,
            r#"["$1,000.00",null,"NULL","a\"b\\c",""]"#,
        ),
        (
            money(TypeKind::Array),
            "[0:1][2:2]={{$1.00},{$2.00}}",
            r#"[["$1.00"],["$2.00"]]"#,
        ),
        (money(TypeKind::Array), "{}", "[]"),
        (
            Type::BOX_ARRAY,
            "{(1,1),(0,0);(2,2),(1,1)}",
            r#"[{"start":{"x":1,"y":1},"end":{"x":0,"y":0}},{"start":{"x":2,"y":2},"end":{"x":1,"y":1}}]"#,
        ),
        (Type::INT2_VECTOR, "1 2 3", "[1,2,3]"),
        (
            Type::INT4_RANGE,
            "[1,5)",
            r#"{"lower":1,"upper":5,"lowerInclusive":true,"upperInclusive":false}"#,
        ),
        (
            Type::INT4_RANGE,
            "(,)",
            r#"{"lower":null,"upper":null,"lowerInclusive":false,"upperInclusive":false}"#,
        ),
        (
            Type::INT4_RANGE,
            "empty",
            r#"{"lower":null,"upper":null,"lowerInclusive":false,"upperInclusive":false,"empty":true}"#,
        ),
        (
            Type::TS_RANGE,
            r#"["2020-01-01 00:00:00",infinity]"#,
            r#"{"lower":"2020-01-01T00:00:00","upper":"infinity","lowerInclusive":true,"upperInclusive":true}"#,
        ),
        (Type::INT4MULTI_RANGE, "{}", "[]"),
        (
            Type::RECORD,
            r#"(1,"a ""b"" \\ c",,"")"#,
            r#"{"f1":"1","f2":"a \"b\" \\ c","f3":null,"f4":""}"#,
        ),
        (Type::RECORD, "()", "{}"),
        (
            Type::RECORD_ARRAY,
            r#"{"(1,\"a, b\")",NULL,"(2,)"}"#,
            r#"[{"f1":"1","f2":"a, b"},null,{"f1":"2","f2":null}]"#,
        ),
    ] {
        assert_eq!(text(&r#type, raw), shown, "{raw}");
    }
}

#[test]
fn a_text_under_other_session_settings_is_shown_as_it_is() {
    assert_eq!(text(&Type::DATE, "31.12.2020"), "\"31.12.2020\"");
    assert_eq!(text(&Type::INTERVAL, "P1Y2M"), "\"P1Y2M\"");
}

#[test]
fn a_composite_of_another_shape_is_an_error() {
    let pair = made(
        "pair",
        90_020,
        TypeKind::Composite(vec![postgres_types::Field::new("a".to_owned(), Type::INT4)]),
    );
    let raw = |oid: u32| {
        [
            &1_i32.to_be_bytes()[..],
            &oid.to_be_bytes(),
            &4_i32.to_be_bytes(),
            &7_i32.to_be_bytes(),
        ]
        .concat()
    };
    assert_eq!(binary(&pair, &raw(23)), r#"{"a":7}"#);
    assert!(show(&pair, WireFormat::Binary, &raw(25)).is_err());
}

#[test]
fn dates_reach_the_ends_of_their_range() {
    for (days, shown) in [
        (0_i32, "2000-01-01"),
        (-2_451_545, "4714-11-24 BC"),
        (-730_119, "0001-01-01"),
        (-730_120, "0001-12-31 BC"),
        (2_921_940, "10000-01-01"),
        (2_145_031_948, "5874897-12-31"),
        (i32::MAX, "infinity"),
        (i32::MIN, "-infinity"),
    ] {
        assert_eq!(
            binary(&Type::DATE, &days.to_be_bytes()),
            format!("\"{shown}\"")
        );
        assert_eq!(text(&Type::DATE, shown), format!("\"{shown}\""));
    }
}

#[test]
fn intervals_show_the_sign_of_each_part() {
    let raw = |months: i32, days: i32, micros: i64| {
        [
            &micros.to_be_bytes()[..],
            &days.to_be_bytes(),
            &months.to_be_bytes(),
        ]
        .concat()
    };
    for (raw, as_text, shown) in [
        (
            raw(0, 0, 0),
            "00:00:00",
            r#"{"y":0,"m":0,"d":0,"h":0,"i":0,"s":0}"#,
        ),
        (
            raw(-14, 3, -500_000),
            "-1 years -2 mons +3 days -00:00:00.5",
            r#"{"y":-1,"m":-2,"d":3,"h":0,"i":0,"s":-0.5}"#,
        ),
        (
            raw(1, -1, 93_784_000_000),
            "1 mon -1 days +26:03:04",
            r#"{"y":0,"m":1,"d":-1,"h":26,"i":3,"s":4}"#,
        ),
        (
            raw(0, 0, -60_000_000),
            "-00:01:00",
            r#"{"y":0,"m":0,"d":0,"h":0,"i":-1,"s":0}"#,
        ),
        (
            raw(i32::MAX, i32::MAX, i64::MAX),
            "infinity",
            "\"infinity\"",
        ),
    ] {
        assert_eq!(binary(&Type::INTERVAL, &raw), shown);
        assert_eq!(text(&Type::INTERVAL, as_text), shown);
    }
}

#[test]
fn wide_integers_and_identifiers_can_be_strings() {
    let shown = |r#type: Type, raw: &[u8], format, form: fn(ValueWriter) -> ValueWriter| {
        let mut out = BytesMut::new();
        let writer = form(ValueWriter::new(&column("c", r#type, format)));
        writer.json(raw, &mut out).unwrap();
        String::from_utf8(out.to_vec()).unwrap()
    };
    let (binary, text) = (WireFormat::Binary, WireFormat::Text);
    let wide = i64::MIN.to_be_bytes();
    let exact = ValueWriter::exact;
    assert_eq!(
        shown(Type::INT8, &wide, binary, exact),
        r#""-9223372036854775808""#
    );
    assert_eq!(shown(Type::INT8, b"7", text, exact), r#""7""#);
    assert_eq!(
        shown(Type::OID, b"4294967295", text, exact),
        r#""4294967295""#
    );
    assert_eq!(
        shown(Type::INT8_ARRAY, b"{1,NULL}", text, exact),
        r#"["1",null]"#
    );
    assert!(
        shown(Type::INT8_RANGE, b"[1,)", text, exact).starts_with(r#"{"lower":"1","upper":null"#)
    );
    assert_eq!(shown(Type::INT4, &7_i32.to_be_bytes(), binary, exact), "7");
    assert_eq!(shown(Type::TEXT, b"7", binary, exact), r#""7""#);
    let quoted = ValueWriter::quoted;
    for (r#type, raw, expected) in [
        (Type::INT4, &b"-7"[..], r#""-7""#),
        (Type::BOOL, b"t", r#""true""#),
        (Type::FLOAT8, b"NaN", r#""NaN""#),
        (Type::FLOAT8, b"1.5", r#""1.5""#),
        (Type::NUMERIC, b"1.50", r#""1.50""#),
        (Type::UUID, b"x", r#""x""#),
    ] {
        assert_eq!(shown(r#type, raw, text, quoted), expected);
    }
    assert_eq!(shown(Type::BOOL, &[0], binary, quoted), r#""false""#);
}
