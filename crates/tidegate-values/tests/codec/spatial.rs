//! Tests of decoding PostGIS values written by hand.

use tidegate_values::WireFormat;

use super::{binary, geometry, show, text};

fn wkb(pieces: &[&[u8]]) -> Vec<u8> {
    pieces.concat()
}

fn point(x: f64, y: f64) -> Vec<u8> {
    [x.to_le_bytes(), y.to_le_bytes()].concat()
}

fn count(number: u32) -> [u8; 4] {
    number.to_le_bytes()
}

#[test]
fn postgis_values_are_geojson_geometries() {
    let head = |kind: u32| [&[1_u8][..], &kind.to_le_bytes()].concat();
    let a = point(1.0, 2.0);
    let b = point(3.0, 4.5);
    for (raw, shown) in [
        (
            wkb(&[&head(1), &a]),
            r#"{"type":"Point","coordinates":[1,2]}"#,
        ),
        (
            wkb(&[&head(0x2000_0001), &count(4326), &a]),
            r#"{"type":"Point","coordinates":[1,2]}"#,
        ),
        (
            wkb(&[&head(0x2000_0001), &count(3857), &a]),
            r#"{"type":"Point","crs":{"type":"name","properties":{"name":"EPSG:3857"}},"coordinates":[1,2]}"#,
        ),
        (
            wkb(&[&head(0x8000_0001), &a, &7_f64.to_le_bytes()]),
            r#"{"type":"Point","coordinates":[1,2,7]}"#,
        ),
        (
            wkb(&[&head(0x4000_0001), &a, &7_f64.to_le_bytes()]),
            r#"{"type":"Point","coordinates":[1,2]}"#,
        ),
        (
            wkb(&[&head(0xC000_0001), &a, &b]),
            r#"{"type":"Point","coordinates":[1,2,3]}"#,
        ),
        (
            wkb(&[&head(1), &point(f64::NAN, f64::NAN)]),
            r#"{"type":"Point","coordinates":[]}"#,
        ),
        (
            wkb(&[&head(2), &count(2), &a, &b]),
            r#"{"type":"LineString","coordinates":[[1,2],[3,4.5]]}"#,
        ),
        (
            wkb(&[&head(3), &count(1), &count(2), &a, &b]),
            r#"{"type":"Polygon","coordinates":[[[1,2],[3,4.5]]]}"#,
        ),
        (
            wkb(&[&head(4), &count(2), &head(1), &a, &head(1), &b]),
            r#"{"type":"MultiPoint","coordinates":[[1,2],[3,4.5]]}"#,
        ),
        (
            wkb(&[&head(5), &count(1), &head(2), &count(1), &a]),
            r#"{"type":"MultiLineString","coordinates":[[[1,2]]]}"#,
        ),
        (
            wkb(&[&head(6), &count(1), &head(3), &count(1), &count(1), &a]),
            r#"{"type":"MultiPolygon","coordinates":[[[[1,2]]]]}"#,
        ),
        (
            wkb(&[&head(7), &count(2), &head(1), &a, &head(7), &count(0)]),
            r#"{"type":"GeometryCollection","geometries":[{"type":"Point","coordinates":[1,2]},{"type":"GeometryCollection","geometries":[]}]}"#,
        ),
        (
            wkb(&[&[0, 0, 0, 0, 1], &1_f64.to_be_bytes(), &2_f64.to_be_bytes()]),
            r#"{"type":"Point","coordinates":[1,2]}"#,
        ),
    ] {
        assert_eq!(binary(&geometry(), &raw), shown);
        let hex = raw
            .iter()
            .map(|byte| format!("{byte:02X}"))
            .collect::<Vec<_>>()
            .concat();
        assert_eq!(
            text(&geometry(), &hex),
            shown,
            "the text form says the same"
        );
    }
}

#[test]
fn a_curve_is_shown_as_hexadecimal_text() {
    let curve = wkb(&[&[1, 8, 0, 0, 0], &count(0)]);
    assert_eq!(binary(&geometry(), &curve), "\"010800000000000000\"");
    let collection = wkb(&[&[1, 7, 0, 0, 0], &count(1), &curve]);
    assert_eq!(
        binary(&geometry(), &collection),
        "\"010700000001000000010800000000000000\""
    );
}

#[test]
fn a_collection_that_nests_without_end_is_an_error() {
    let nested = [&[1_u8, 7, 0, 0, 0][..], &count(1)]
        .concat()
        .repeat(100_000);
    assert!(show(&geometry(), WireFormat::Binary, &nested).is_err());
}
