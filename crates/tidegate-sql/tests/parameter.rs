//! From JSON to the text that PostgreSQL takes.

use std::cell::Cell;

use bytes::BytesMut;
use postgres_types::Field;
use proptest::prelude::*;
use tidegate_sql::datetime::Zone;
use tidegate_sql::parameter::{IsNull, encode};
use tidegate_sql::statement::InputFormat;
use tidegate_sql::{InputError, Parameter, Type, TypeKind};

fn encoded(json: &str, r#type: &Type, letters: Option<&str>) -> Result<Option<String>, InputError> {
    encoded_in(json, r#type, letters, Zone::default())
}

fn encoded_in(
    json: &str,
    r#type: &Type,
    letters: Option<&str>,
    zone: Zone,
) -> Result<Option<String>, InputError> {
    let format = letters.map(|letters| InputFormat {
        letters: letters.to_owned(),
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
    // No point, flag or range is null, so what begins with null is a dimension.
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
fn intervals_are_objects() {
    check("{}", &Type::INTERVAL, "P0Y0M0DT0H0M0S");
    check(
        r#"{"y":1,"m":-2,"d":3,"h":4,"i":5,"s":-6.25}"#,
        &Type::INTERVAL,
        "P1Y-2M3DT4H5M-6.25S",
    );
    check("\"1 day ago\"", &Type::INTERVAL, "1 day ago");
    check("90", &Type::INTERVAL, "90");
    fails(
        r#"{"days":1}"#,
        &Type::INTERVAL,
        "`params.p.days` is not a interval: unknown, expected `y`, `m`, `d`, `h`, `i`, `s`",
    );
    fails(
        r#"{"d":"1"}"#,
        &Type::INTERVAL,
        "`params.p.d` is not a interval: a string, expected a number",
    );
    fails(
        "[1]",
        &Type::INTERVAL,
        "`params.p` is not a interval: an array, expected an object of `y`, `m`, `d`, `h`, `i`, `s`",
    );
}

#[test]
fn geometry_has_its_forms() {
    check(r#"{"x":1.5,"y":-2e3}"#, &Type::POINT, "(1.5,-2e3)");
    check(
        r#"{"x":"NaN","y":"-Infinity"}"#,
        &Type::POINT,
        "(NaN,-Infinity)",
    );
    check(r#"{"A":1,"B":2,"C":3}"#, &Type::LINE, "{1,2,3}");
    let ends = r#"{"start":{"x":1,"y":2},"end":{"x":3,"y":4}}"#;
    check(ends, &Type::LSEG, "[(1,2),(3,4)]");
    check(ends, &Type::BOX, "(1,2),(3,4)");
    check(
        r#"{"open":true,"points":[{"x":1,"y":2},{"x":3,"y":4}]}"#,
        &Type::PATH,
        "[(1,2),(3,4)]",
    );
    check(
        r#"{"open":false,"points":[{"x":1,"y":2}]}"#,
        &Type::PATH,
        "((1,2))",
    );
    check(
        r#"[true,{"x":1,"y":2},{"x":3,"y":4}]"#,
        &Type::PATH,
        "[(1,2),(3,4)]",
    );
    check(r#"[false,{"x":1,"y":2}]"#, &Type::PATH, "((1,2))");
    check(
        r#"[{"x":1,"y":2},{"x":3,"y":4}]"#,
        &Type::POLYGON,
        "((1,2),(3,4))",
    );
    check(
        r#"{"center":{"x":1,"y":2},"radius":3}"#,
        &Type::CIRCLE,
        "<(1,2),3>",
    );
    check("\"(1,2)\"", &Type::POINT, "(1,2)");
    fails(
        r#"{"x":1}"#,
        &Type::POINT,
        "`params.p.y` is not a point: missing",
    );
    fails(
        r#"{"x":1,"y":"2,3"}"#,
        &Type::POINT,
        "`params.p.y` is not a point: a string, expected a number",
    );
    fails(
        r#"{"x":1,"y":null}"#,
        &Type::POINT,
        "`params.p.y` is not a point: null, expected a number",
    );
    fails(
        r#"{"x":1,"y":2,"z":3}"#,
        &Type::POINT,
        "`params.p.z` is not a point: unknown, expected `x`, `y`",
    );
    fails(
        "[1,2]",
        &Type::POINT,
        "`params.p` is not a point: an array, expected an object of `x`, `y`",
    );
    fails(
        r#"[{"x":1,"y":2},5]"#,
        &Type::POLYGON,
        "`params.p[1]` is not a polygon: a number, expected an object of `x`, `y`",
    );
    fails(
        r#"[{"x":1,"y":2}]"#,
        &Type::PATH,
        "`params.p[0]` is not a path: an object, expected a boolean, true for an open path",
    );
    fails(
        r#"{"open":true,"points":[{"x":1}]}"#,
        &Type::PATH,
        "`params.p.points[0].y` is not a path: missing",
    );
    fails(
        r#"{"open":true}"#,
        &Type::PATH,
        "`params.p.points` is not a path: missing",
    );
    fails(
        r#"{"open":true,"points":5}"#,
        &Type::PATH,
        "`params.p.points` is not a path: a number, expected an array of points",
    );
    fails(
        r#"{"start":{"x":1,"y":2},"end":5}"#,
        &Type::BOX,
        "`params.p.end` is not a box: a number, expected an object of `x`, `y`",
    );
    fails(
        r#"{"center":{"x":1},"radius":3}"#,
        &Type::CIRCLE,
        "`params.p.center.y` is not a circle: missing",
    );
}

#[test]
fn geojson_goes_to_postgis() {
    let geometry = own("geometry", TypeKind::Simple);
    let geography = own("geography", TypeKind::Simple);
    let point = r#"{"type":"Point","coordinates":[10.5,55]}"#;
    check(
        &format!("[{point},null]"),
        &array(&geometry),
        r#"{"SRID=4326;Point(10.5 55)":NULL}"#,
    );
    check("\"POINT(1 2)\"", &geography, "POINT(1 2)");
    for (json, text) in [
        (point, "Point(10.5 55)"),
        (
            r#"{"type":"LineString","coordinates":[[1,2],[3,4,5]]}"#,
            "LineString(1 2,3 4 5)",
        ),
        (
            r#"{"type":"MultiPoint","coordinates":[[1,2],[3,4]]}"#,
            "MultiPoint(1 2,3 4)",
        ),
        (
            r#"{"type":"Polygon","coordinates":[[[1,2],[3,4],[1,2]],[[0,0]]]}"#,
            "Polygon((1 2,3 4,1 2),(0 0))",
        ),
        (
            r#"{"coordinates":[[[[1,2]]],[[[3,4]]]],"type":"MultiPolygon"}"#,
            "MultiPolygon(((1 2)),((3 4)))",
        ),
        (
            r#"{"type":"MultiLineString","coordinates":[]}"#,
            "MultiLineString EMPTY",
        ),
        (
            r#"{"type":"GeometryCollection","geometries":[{"type":"Point","coordinates":[1,2]}]}"#,
            "GeometryCollection(Point(1 2))",
        ),
    ] {
        let text = format!("SRID=4326;{text}");
        check(json, &geography, &text);
        check(json, &geometry, &text);
    }
    fails(
        r#"{"type":"Feature"}"#,
        &geography,
        "`params.p.type` is not a geography: not the name of a GeoJSON geometry",
    );
    fails(
        r#"{"type":"Point","coordinates":[1]}"#,
        &geography,
        "`params.p.coordinates` is not a geography: not a GeoJSON position, which is an array of 2 to 4 numbers",
    );
    fails(
        r#"{"type":"LineString","coordinates":[[1,2],["3",4]]}"#,
        &geography,
        "`params.p.coordinates[1]` is not a geography: not a GeoJSON position, which is an array of 2 to 4 numbers",
    );
    let deep = r#"{"type":"GeometryCollection","geometries":["#.repeat(100);
    let deep = format!("{deep}{point}{}", "]}".repeat(100));
    assert!(
        encoded(&deep, &geography, None)
            .unwrap_err()
            .to_string()
            .contains("more than 32")
    );
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
fn formats_are_read_by_their_letters() {
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
        Err(InputError::InvalidFormat { name, .. }) => assert_eq!(name, "p"),
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

/// Reads the text of a PostgreSQL array of one dimension (PostgreSQL, "Array Input and Output
/// Syntax"), by the book.
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
