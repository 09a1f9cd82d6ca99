//! Tests of whole results in the four output formats.

use bytes::BytesMut;
use tidegate_values::datetime::Zone;
use tidegate_values::output::column_names;
use tidegate_values::{
    Column, MalformedValue, OutputFormat, OutputOptions, RawRow, RowWriter, Type, TypeKind,
    ValueError, WireFormat,
};

use crate::rows::{body, column};

/// Columns whose values are given as text.
fn columns(columns: &[(&str, Type)]) -> Vec<Column> {
    columns
        .iter()
        .map(|(name, r#type)| column(name, r#type.clone(), WireFormat::Text))
        .collect()
}

fn write(
    format: OutputFormat,
    options: OutputOptions,
    columns: &[Column],
    rows: &[&[Option<&str>]],
) -> Result<String, ValueError> {
    let mut writer = RowWriter::new(format, options)?;
    let mut out = BytesMut::new();
    writer.columns(columns, &mut out)?;
    for row in rows {
        let body = body(row);
        writer
            .row(RawRow::new(columns.len(), &body).unwrap(), &mut out)
            .unwrap();
    }
    writer.finish(None, &mut out);
    Ok(String::from_utf8(out.to_vec()).unwrap())
}

fn plain(format: OutputFormat, columns: &[Column], rows: &[&[Option<&str>]]) -> String {
    write(format, OutputOptions::default(), columns, rows).unwrap()
}

#[test]
fn json_has_schema_and_data_in_column_order() {
    let columns = columns(&[
        ("id", Type::INT4),
        ("tags", Type::TEXT_ARRAY),
        ("a \"b\"", Type::VARCHAR),
    ]);
    assert_eq!(
        plain(
            OutputFormat::Json,
            &columns,
            &[
                &[Some("1"), Some("{x,y}"), None],
                &[Some("2"), None, Some("")]
            ]
        ),
        concat!(
            r#"{"schema":{"id":{"type":"int4","array":false},"tags":{"type":"text","array":true},"#,
            r#""a \"b\"":{"type":"varchar","array":false}},"data":["#,
            r#"{"id":1,"tags":["x","y"],"a \"b\"":null},{"id":2,"tags":null,"a \"b\"":""}]}"#
        )
    );
}

#[test]
fn a_result_without_rows_or_columns_is_complete() {
    assert_eq!(
        plain(OutputFormat::Json, &[], &[]),
        r#"{"schema":{},"data":[]}"#
    );
    assert_eq!(
        plain(OutputFormat::Json, &[], &[&[], &[]]),
        r#"{"schema":{},"data":[{},{}]}"#
    );
    assert_eq!(plain(OutputFormat::Csv, &[], &[]), "");
    assert_eq!(plain(OutputFormat::Ndjson, &[], &[]), "");
    assert_eq!(
        plain(OutputFormat::GeoJson, &[], &[]),
        r#"{"type":"FeatureCollection","features":[]}"#
    );
    assert_eq!(
        plain(OutputFormat::Csv, &columns(&[("a", Type::INT4)]), &[]),
        "a\r\n"
    );
}

#[test]
fn a_write_tells_its_affected_rows_and_an_id_comes_back() {
    let options = OutputOptions {
        id: Some("\"q7\"".to_owned()),
        ..OutputOptions::default()
    };
    let mut writer = RowWriter::new(OutputFormat::Json, options).unwrap();
    let mut out = BytesMut::new();
    writer.columns(&[], &mut out).unwrap();
    writer.finish(Some(3), &mut out);
    assert_eq!(
        out,
        r#"{"schema":{},"data":[],"affected_rows":3,"id":"q7"}"#
    );
}

#[test]
fn repeated_names_get_the_first_free_number() {
    for (given, shown) in [
        (&["a", "a", "a"][..], &["a", "a_1", "a_2"][..]),
        (&["a", "a", "a_1"], &["a", "a_2", "a_1"]),
        (&["a_1", "a", "a"], &["a_1", "a", "a_2"]),
        (
            &["a", "a", "a_1", "a_1", "a"],
            &["a", "a_2", "a_1", "a_1_1", "a_3"],
        ),
        (&["?column?", "?column?"], &["?column?", "?column?_1"]),
    ] {
        let columns: Vec<_> = given
            .iter()
            .map(|name| column(name, Type::INT4, WireFormat::Text))
            .collect();
        assert_eq!(column_names(&columns), shown);
    }
}

#[test]
fn the_schema_shows_what_domains_and_arrays_are_made_of() {
    let made = |name: &str, kind| Type::new(name.to_owned(), 90_000, kind, "public".to_owned());
    let year = made("year", TypeKind::Domain(Type::INT4));
    let shown = plain(
        OutputFormat::Json,
        &columns(&[
            ("a", year.clone()),
            ("b", made("_year", TypeKind::Array(year))),
            ("c", made("ints", TypeKind::Domain(Type::INT4_ARRAY))),
            ("d", Type::INT2_VECTOR),
        ]),
        &[],
    );
    let schema = concat!(
        r#"{"a":{"type":"int4","array":false},"b":{"type":"int4","array":true},"#,
        r#""c":{"type":"int4","array":true},"d":{"type":"int2","array":true}}"#
    );
    assert_eq!(shown, format!(r#"{{"schema":{schema},"data":[]}}"#));
}

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

fn formats(formats: &[(&str, &str)], placeholders: &[&str]) -> OutputOptions {
    OutputOptions {
        type_formats: formats
            .iter()
            .map(|(name, letters)| ((*name).to_owned(), (*letters).to_owned()))
            .collect(),
        placeholders: placeholders.iter().map(|name| (*name).to_owned()).collect(),
        ..OutputOptions::default()
    }
}

#[test]
fn type_formats_apply_by_column_in_every_output_format() {
    let columns = columns(&[("day", Type::DATE), ("other", Type::DATE)]);
    let rows: &[&[Option<&str>]] = &[&[Some("2020-01-02"), Some("2020-01-02")]];
    for (format, shown) in [
        (
            OutputFormat::Ndjson,
            "{\"day\":\"Thu, 2nd\",\"other\":\"2020-01-02\"}\n",
        ),
        (
            OutputFormat::Csv,
            "day,other\r\n\"Thu, 2nd\",2020-01-02\r\n",
        ),
    ] {
        assert_eq!(
            write(format, formats(&[("day", "D, jS")], &[]), &columns, rows).unwrap(),
            shown
        );
    }
}

#[test]
fn formatted_values_are_shown_in_the_zone_asked_for() {
    let options = OutputOptions {
        timezone: Zone::named("America/New_York"),
        ..formats(&[("at", "H:i T")], &[])
    };
    let columns = columns(&[("at", Type::TIMESTAMPTZ), ("raw", Type::TIMESTAMPTZ)]);
    let moment = Some("2020-01-02 12:00:00+00");
    assert_eq!(
        write(
            OutputFormat::Ndjson,
            options,
            &columns,
            &[&[moment, moment]]
        )
        .unwrap(),
        "{\"at\":\"07:00 EST\",\"raw\":\"2020-01-02T12:00:00Z\"}\n"
    );
}

#[test]
fn a_format_that_fits_nothing_is_named() {
    let columns = columns(&[("id", Type::INT4), ("day", Type::DATE)]);
    for (given, placeholders, wrong) in [
        (&[("id", "Y")][..], &[][..], Some("id")),
        (&[("nothing", "Y")], &["day"], Some("nothing")),
        (&[("day", "Y\\")], &[], Some("day")),
        (&[("since", "Y")], &["since"], None),
        (&[("id", "Y")], &["id"], None),
    ] {
        let result = write(
            OutputFormat::Json,
            formats(given, placeholders),
            &columns,
            &[],
        );
        match (result, wrong) {
            (Ok(_), None) => {}
            (Err(ValueError::InvalidFormat { name, .. }), Some(wrong)) => {
                assert_eq!(name, wrong);
            }
            (result, wrong) => panic!("{result:?} for {wrong:?}"),
        }
    }
}

#[test]
fn a_row_of_fewer_values_than_columns_is_an_error() {
    let columns = columns(&[("a", Type::TEXT), ("b", Type::TEXT)]);
    for format in [
        OutputFormat::Json,
        OutputFormat::Csv,
        OutputFormat::Ndjson,
        OutputFormat::GeoJson,
    ] {
        let mut writer = RowWriter::new(format, OutputOptions::default()).unwrap();
        let mut out = BytesMut::new();
        writer.columns(&columns, &mut out).unwrap();
        let row = body(&[Some("x")]);
        assert!(matches!(
            writer.row(RawRow::new(1, &row).unwrap(), &mut out),
            Err(MalformedValue)
        ));
    }
}

#[test]
fn formats_have_their_names_and_media_types() {
    for (name, media_type, streams) in [
        ("json", "application/json; charset=utf-8", false),
        ("csv", "text/csv; charset=utf-8", true),
        ("ndjson", "application/x-ndjson", true),
        ("geojson", "application/geo+json", false),
    ] {
        let format = OutputFormat::parse(name).unwrap();
        assert_eq!(
            (format.media_type(), format.streams()),
            (media_type, streams)
        );
    }
    assert_eq!(OutputFormat::parse("excel"), None);
}
