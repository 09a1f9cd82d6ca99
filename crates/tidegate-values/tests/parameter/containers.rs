//! Tests of arrays, ranges and composites from JSON.

use proptest::prelude::*;
use tidegate_values::{Type, TypeKind};

use super::{array, check, composite, encoded, fails, own};

#[test]
fn arrays_keep_nulls_quotes_and_dimensions() {
    check("[]", &Type::INT4_ARRAY, "{}");
    check("[1, 2.0,null]", &Type::INT4_ARRAY, "{1,2.0,NULL}");
    check("[true,\"f\"]", &Type::BOOL_ARRAY, "{true,\"f\"}");
    check(
        r#"["a","","NULL","a,b","{x}","say \"hi\"","back\\slash"," é "]"#,
        &Type::TEXT_ARRAY,
        r#"{"a","","NULL","a,b","{x}","say \"hi\"","back\\slash"," é "}"#,
    );
    check("[[1,2],[3,null]]", &Type::INT4_ARRAY, "{{1,2},{3,NULL}}");
    check("[[[[[[\"x\"]]]]]]", &Type::TEXT_ARRAY, "{{{{{{\"x\"}}}}}}");
    check("[[],[]]", &Type::INT4_ARRAY, "{}");
    check("\"[0:1]={1,2}\"", &Type::INT4_ARRAY, "[0:1]={1,2}");
    check(
        "[{\"a\":1},[2],\"s\",null,3]",
        &Type::JSONB_ARRAY,
        r#"{"{\"a\":1}","[2]","\"s\"",NULL,3}"#,
    );
    check("[\"3q2+7w==\"]", &Type::BYTEA_ARRAY, r#"{"\\xdeadbeef"}"#);
    check("[1,2]", &Type::INT2_VECTOR, "1 2");
    check(
        "[[\"a\"]]",
        &array(&own("label", TypeKind::Domain(Type::TEXT))),
        "{{\"a\"}}",
    );
    let row = own("row", TypeKind::Domain(Type::INT4_ARRAY));
    check("[[1,2],[3]]", &array(&row), r#"{"{1,2}","{3}"}"#);
}

#[test]
fn elements_may_be_of_any_type() {
    check(
        r#"[{"lower":1,"upper":5},{"empty":true}]"#,
        &Type::INT4_RANGE_ARRAY,
        r#"{"[1,5)","empty"}"#,
    );
    check(
        r#"[{"a":1,"b c":"x\"y"},null]"#,
        &array(&composite()),
        r#"{"(1,\"x\\\"y\",,)",NULL}"#,
    );
    check(r#"[{"x":1,"y":2}]"#, &Type::POINT_ARRAY, r#"{"(1,2)"}"#);
    check(r#"[[{"x":1,"y":2}]]"#, &Type::POINT_ARRAY, r#"{{"(1,2)"}}"#);
    check(
        r#"[{"start":{"x":1,"y":2},"end":{"x":3,"y":4}},null]"#,
        &Type::BOX_ARRAY,
        r#"{"(1,2),(3,4)";NULL}"#,
    );
    check(
        r#"[[{"x":1,"y":2}],[{"x":3,"y":4}]]"#,
        &Type::POLYGON_ARRAY,
        r#"{"((1,2))","((3,4))"}"#,
    );
    check(
        r#"[[[{"x":1,"y":2}]]]"#,
        &Type::POLYGON_ARRAY,
        r#"{{"((1,2))"}}"#,
    );
    check(
        r#"[[true,{"x":1,"y":2}],{"open":false,"points":[]}]"#,
        &Type::PATH_ARRAY,
        r#"{"[(1,2)]","()"}"#,
    );
    check(
        r#"[[{"lower":1}],[]]"#,
        &Type::INT4MULTI_RANGE_ARRAY,
        r#"{"{[1,)}","{}"}"#,
    );
    // Points, flags and ranges are never null, so an array that begins with null is a dimension.
    check(
        r#"[[[{"x":1,"y":2}],null],[null,[{"x":3,"y":4}]]]"#,
        &Type::POLYGON_ARRAY,
        r#"{{"((1,2))",NULL},{NULL,"((3,4))"}}"#,
    );
    check(
        r#"[["((1,2))","((3,4))"],["((5,6))",null]]"#,
        &Type::POLYGON_ARRAY,
        r#"{{"((1,2))","((3,4))"},{"((5,6))",NULL}}"#,
    );
    check(
        r#"[[[true,{"x":1,"y":2}],null],[null,[false,{"x":3,"y":4}]]]"#,
        &Type::PATH_ARRAY,
        r#"{{"[(1,2)]",NULL},{NULL,"((3,4))"}}"#,
    );
    check(
        r#"[[[{"lower":1}],null],[null,[]]]"#,
        &Type::INT4MULTI_RANGE_ARRAY,
        r#"{{"{[1,)}",NULL},{NULL,"{}"}}"#,
    );
    check(
        r#"[{"points":[{"x":1,"y":2}]},[{"x":3,"y":4}]]"#,
        &Type::POLYGON_ARRAY,
        r#"{"((1,2))","((3,4))"}"#,
    );
    check(
        r#"[[ { "points":[{"x":1,"y":2}]}],[{"points":[]}]]"#,
        &Type::POLYGON_ARRAY,
        r#"{{"((1,2))"},{"()"}}"#,
    );
    check("[[],[]]", &Type::POLYGON_ARRAY, "{}");
    check(
        r#"[{"d":1}]"#,
        &Type::INTERVAL_ARRAY,
        r#"{"P0Y0M1DT0H0M0S"}"#,
    );
}

#[test]
fn ragged_arrays_are_refused_where_they_break() {
    let int = &Type::INT4_ARRAY;
    fails(
        "[[1,2],[3]]",
        int,
        "`params.p[1]` is not a int4[]: an array of 1 elements, expected 2 as beside it",
    );
    fails(
        "[[1],2]",
        int,
        "`params.p[1]` is not a int4: a number, expected an array as beside it",
    );
    fails(
        "[[1],null]",
        int,
        "`params.p[1]` is not a int4: null, expected an array as beside it",
    );
    fails(
        "[1,[2]]",
        int,
        "`params.p[1]` is not a int4[]: an array, expected none as beside it",
    );
    fails(
        "[[],null]",
        int,
        "`params.p[1]` is not a int4: null, expected an array as beside it",
    );
    fails(
        "[[[1]],[[2],[3]]]",
        int,
        "`params.p[1]` is not a int4[]: an array of 2 elements, expected 1 as beside it",
    );
    fails(
        "[[[[[[[1]]]]]]]",
        int,
        "`params.p[0][0][0][0][0][0]` is not a int4[]: more than 6 dimensions",
    );
}

#[test]
fn ranges_are_objects() {
    check(r#"{"lower":1,"upper":5}"#, &Type::INT4_RANGE, "[1,5)");
    check(
        r#"{"upperInclusive":true,"upper":5,"lowerInclusive":false,"lower":1}"#,
        &Type::INT4_RANGE,
        "(1,5]",
    );
    check("{}", &Type::INT4_RANGE, "[,)");
    check(
        r#"{"lower":null,"upper":null,"lowerInclusive":false}"#,
        &Type::INT8_RANGE,
        "(,)",
    );
    check(r#"{"empty":true}"#, &Type::NUM_RANGE, "empty");
    check(
        r#"{"lower":null,"upper":null,"lowerInclusive":false,"upperInclusive":false,"empty":true}"#,
        &Type::NUM_RANGE,
        "empty",
    );
    check(
        r#"{"lower":"1.50","upper":2,"empty":false}"#,
        &Type::NUM_RANGE,
        "[\"1.50\",2)",
    );
    check(
        r#"{"lower":"2024-01-01T00:00:00Z"}"#,
        &Type::TSTZ_RANGE,
        "[\"2024-01-01T00:00:00Z\",)",
    );
    let texts = own("textrange", TypeKind::Range(Type::TEXT));
    check(
        r#"{"lower":"","upper":"a\"\\,)"}"#,
        &texts,
        r#"["","a\"\\,)")"#,
    );
    check("\"[1,2]\"", &Type::INT4_RANGE, "[1,2]");
}

#[test]
fn wrong_ranges_are_named() {
    let range = &Type::INT4_RANGE;
    fails(
        "5",
        range,
        "`params.p` is not a int4range: a number, expected an object with `lower` and `upper`",
    );
    fails(
        "[1,2]",
        range,
        "`params.p` is not a int4range: an array, expected an object with `lower` and `upper`",
    );
    fails(
        r#"{"from":1}"#,
        range,
        "`params.p.from` is not a int4range: unknown, expected `lower`, `upper`, `lowerInclusive`, `upperInclusive`, `empty`",
    );
    fails(
        r#"{"lower":1,"lower":2}"#,
        range,
        "`params.p.lower` is not a int4range: given twice",
    );
    fails(
        r#"{"lower":{"a":1}}"#,
        range,
        "`params.p.lower` is not a int4: an object",
    );
    fails(
        r#"{"lowerInclusive":1}"#,
        range,
        "`params.p.lowerInclusive` is not a int4range: a number, expected a boolean",
    );
    fails(
        r#"{"empty":true,"lower":1}"#,
        range,
        "`params.p` is not a int4range: empty, but with a bound",
    );
}

#[test]
fn multiranges_are_arrays_of_ranges() {
    check("[]", &Type::INT4MULTI_RANGE, "{}");
    check(
        r#"[{"lower":1,"upper":2},{"lower":5},"[3,4)"]"#,
        &Type::INT4MULTI_RANGE,
        "{[1,2),[5,),[3,4)}",
    );
    let own = own("m", TypeKind::Multirange(Type::NUM_RANGE));
    check(r#"[{"lower":"1.5"}]"#, &own, "{[\"1.5\",)}");
    check("\"{}\"", &Type::INT4MULTI_RANGE, "{}");
    fails(
        "[null]",
        &Type::INT4MULTI_RANGE,
        "`params.p[0]` is not a int4multirange: null, expected a range",
    );
    fails(
        "{}",
        &Type::INT4MULTI_RANGE,
        "`params.p` is not a int4multirange: an object, expected an array of ranges",
    );
}

#[test]
fn composites_are_objects_by_attribute() {
    check(
        r#"{"b c":"x, \"y\"","a":1,"list":["p\"q",null],"during":{"lower":"2024-01-01"}}"#,
        &composite(),
        r#"(1,"x, \"y\"","{\"p\\\"q\",NULL}","[\"2024-01-01\",)")"#,
    );
    check("{}", &composite(), "(,,,)");
    check(r#"{"a":null,"b c":""}"#, &composite(), r#"(,"",,)"#);
    check("\"(1,,,)\"", &composite(), "(1,,,)");
    fails(
        r#"{"a":1,"z":2}"#,
        &composite(),
        "`params.p.z` is not a pair: not an attribute of the type",
    );
    fails(
        r#"{"a":1,"a":2}"#,
        &composite(),
        "`params.p.a` is not a pair: given twice",
    );
    fails(
        r#"{"list":[{}]}"#,
        &composite(),
        "`params.p.list[0]` is not a text: an object",
    );
    fails(
        "[1]",
        &composite(),
        "`params.p` is not a pair: an array, expected an object",
    );
}

/// Parses the text of a PostgreSQL array of one dimension (PostgreSQL, "Array Input and Output
/// Syntax").
fn read_array(text: &str) -> Vec<Option<String>> {
    let mut elements = Vec::new();
    let mut rest = text
        .strip_prefix('{')
        .unwrap()
        .strip_suffix('}')
        .unwrap()
        .chars()
        .peekable();
    while rest.peek().is_some() {
        let mut element = String::new();
        let quoted = rest.next_if_eq(&'"').is_some();
        loop {
            match rest.next() {
                None => break,
                Some(',') if !quoted => break,
                Some('"') if quoted => {
                    assert!(matches!(rest.next(), None | Some(',')));
                    break;
                }
                Some('\\') => element.push(rest.next().unwrap()),
                Some(character) => element.push(character),
            }
        }
        elements.push((quoted || element != "NULL").then_some(element));
    }
    elements
}

proptest! {
    #[test]
    fn every_array_of_texts_comes_through(texts in prop::collection::vec(prop::option::of("[^\0]*"), 0..8)) {
        let json = serde_json::to_string(&texts).unwrap();
        let text = encoded(&json, &Type::TEXT_ARRAY, None).unwrap().unwrap();
        prop_assert_eq!(read_array(&text), texts);
    }

    #[test]
    fn quoting_in_quoting_comes_through(text in "[^\0]*") {
        let json = serde_json::to_string(&[&[&text]]).unwrap();
        let row = own("row", TypeKind::Domain(Type::TEXT_ARRAY));
        let outer = encoded(&json, &array(&row), None).unwrap().unwrap();
        let inner = read_array(&outer)[0].clone().unwrap();
        prop_assert_eq!(read_array(&inner), [Some(text)]);
    }
}
