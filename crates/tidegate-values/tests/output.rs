//! Tests of whole results: schemas, repeated names, formats of columns.

use bytes::BytesMut;
use tidegate_values::datetime::Zone;
use tidegate_values::output::column_names;
use tidegate_values::{
    Column, MalformedValue, OutputFormat, OutputOptions, RawRow, RowWriter, Type, TypeKind,
    ValueError, WireFormat,
};

use crate::rows::{body, column};

/// Columns whose values are given as text.
pub(crate) fn columns(columns: &[(&str, Type)]) -> Vec<Column> {
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

pub(crate) fn plain(format: OutputFormat, columns: &[Column], rows: &[&[Option<&str>]]) -> String {
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
