//! Tests of results as CSV, NDJSON and GeoJSON.

use tidegate_values::{OutputFormat, Type, TypeKind};

use crate::output::{columns, plain};

#[test]
fn csv_quotes_only_where_needed_and_tells_null_from_empty() {
    let columns = columns(&[
        ("a,b", Type::TEXT),
        ("n", Type::NUMERIC),
        ("d", Type::DATE),
        ("j", Type::JSONB),
    ]);
    assert_eq!(
        plain(
            OutputFormat::Csv,
            &columns,
            &[
                &[
                    Some("plain text"),
                    Some("1.50"),
                    Some("2020-01-02"),
                    Some(r#"{"a": "x"}"#)
                ],
                &[Some(""), None, None, None],
                &[
                    Some("say \"hi\""),
                    Some("NaN"),
                    Some("infinity"),
                    Some("[1, 2]")
                ],
                &[Some("two\nlines"), None, None, Some("3")],
                &[Some("\r"), None, None, Some("null")],
            ]
        ),
        concat!(
            "\"a,b\",n,d,j\r\n",
            "plain text,1.50,2020-01-02,\"{\"\"a\"\": \"\"x\"\"}\"\r\n",
            "\"\",,,\r\n",
            "\"say \"\"hi\"\"\",NaN,infinity,\"[1, 2]\"\r\n",
            "\"two\nlines\",,,3\r\n",
            "\"\r\",,,null\r\n",
        )
    );
}

#[test]
fn csv_shows_objects_as_json_and_scalars_bare() {
    let columns = columns(&[
        ("a", Type::INT4_ARRAY),
        ("b", Type::BOOL),
        ("c", Type::TIMESTAMPTZ),
        ("d", Type::FLOAT8),
        ("e", Type::BYTEA),
        ("f", Type::POINT),
    ]);
    let row = [
        Some("{1,2}"),
        Some("t"),
        Some("2020-01-02 03:04:05.5+00"),
        Some("Infinity"),
        Some("\\x00ff"),
        Some("(1,2)"),
    ];
    assert_eq!(
        plain(OutputFormat::Csv, &columns, &[&row]),
        "a,b,c,d,e,f\r\n\"[1,2]\",true,2020-01-02T03:04:05.5Z,Infinity,AP8=,\"{\"\"x\"\":1,\"\"y\"\":2}\"\r\n"
    );
}

#[test]
fn ndjson_is_one_object_a_line_whatever_a_document_holds() {
    let composite = Type::new(
        "c".to_owned(),
        90_001,
        TypeKind::Composite(vec![postgres_types::Field::new("j".to_owned(), Type::JSON)]),
        "public".to_owned(),
    );
    let columns = columns(&[
        ("t", Type::TEXT),
        ("j", Type::JSON),
        ("js", Type::JSON_ARRAY),
        ("c", composite),
    ]);
    assert_eq!(
        plain(
            OutputFormat::Ndjson,
            &columns,
            &[
                &[
                    Some("a\nb"),
                    Some("{\n\"a\":\r\n1}"),
                    Some("{\"[\n1]\"}"),
                    Some("(\"[\n2]\")")
                ],
                &[None, None, None, None]
            ]
        ),
        concat!(
            r#"{"t":"a\nb","j":{ "a":  1},"js":[[ 1]],"c":{"j":[ 2]}}"#,
            "\n",
            r#"{"t":null,"j":null,"js":null,"c":null}"#,
            "\n"
        )
    );
}

#[test]
fn geojson_takes_the_first_geometry_and_leaves_the_rest_as_properties() {
    let geometry = Type::new(
        "geometry".to_owned(),
        90_002,
        TypeKind::Simple,
        "public".to_owned(),
    );
    let point = "0101000000000000000000F03F0000000000000040";
    let columns = columns(&[
        ("at", Type::POINT),
        ("id", Type::INT4),
        ("geom", geometry.clone()),
        ("more", geometry),
    ]);
    assert_eq!(
        plain(
            OutputFormat::GeoJson,
            &columns,
            &[
                &[Some("(5,6)"), Some("1"), Some(point), Some(point)],
                &[None, Some("2"), None, None]
            ]
        ),
        concat!(
            r#"{"type":"FeatureCollection","features":["#,
            r#"{"type":"Feature","geometry":{"type":"Point","coordinates":[1,2]},"properties":{"at":{"x":5,"y":6},"id":1,"more":{"type":"Point","coordinates":[1,2]}}},"#,
            r#"{"type":"Feature","geometry":null,"properties":{"at":null,"id":2,"more":null}}]}"#
        )
    );
}

#[test]
fn geojson_falls_back_on_the_built_in_shapes() {
    for (r#type, text, geometry) in [
        (
            Type::POINT,
            "(1,2)",
            r#"{"type":"Point","coordinates":[1,2]}"#,
        ),
        (
            Type::LSEG,
            "[(1,2),(3,4)]",
            r#"{"type":"LineString","coordinates":[[1,2],[3,4]]}"#,
        ),
        (
            Type::PATH,
            "[(1,2),(3,4)]",
            r#"{"type":"LineString","coordinates":[[1,2],[3,4]]}"#,
        ),
        (
            Type::PATH,
            "((1,2),(3,4),(5,0))",
            r#"{"type":"Polygon","coordinates":[[[1,2],[3,4],[5,0],[1,2]]]}"#,
        ),
        (
            Type::POLYGON,
            "((1,2),(3,4),(5,0))",
            r#"{"type":"Polygon","coordinates":[[[1,2],[3,4],[5,0],[1,2]]]}"#,
        ),
        (
            Type::BOX,
            "(3,4),(1,2)",
            r#"{"type":"Polygon","coordinates":[[[1,2],[3,2],[3,4],[1,4],[1,2]]]}"#,
        ),
        (Type::POINT, "(NaN,2)", "null"),
    ] {
        let shown = plain(
            OutputFormat::GeoJson,
            &columns(&[("shape", r#type)]),
            &[&[Some(text)]],
        );
        let feature = format!(r#"{{"type":"Feature","geometry":{geometry},"properties":{{}}}}"#);
        assert_eq!(
            shown,
            format!(r#"{{"type":"FeatureCollection","features":[{feature}]}}"#)
        );
    }
    let shown = plain(
        OutputFormat::GeoJson,
        &columns(&[("c", Type::CIRCLE), ("id", Type::INT4)]),
        &[&[None, Some("1")]],
    );
    assert!(
        shown.contains(r#""geometry":null,"properties":{"c":null,"id":1}"#),
        "{shown}"
    );
}
