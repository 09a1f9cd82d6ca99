//! Tests of intervals and geometry from JSON.

use tidegate_values::{Type, TypeKind};

use super::{array, check, encoded, fails, own};

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
        r#"{"points":[{"x":1,"y":2},{"x":3,"y":4}]}"#,
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
        r#"{"points":[{"x":1,"y":2},5]}"#,
        &Type::POLYGON,
        "`params.p.points[1]` is not a polygon: a number, expected an object of `x`, `y`",
    );
    fails(
        r#"{"points":{"x":1,"y":2}}"#,
        &Type::POLYGON,
        "`params.p.points` is not a polygon: an object, expected an array of points",
    );
    fails(
        "{}",
        &Type::POLYGON,
        "`params.p.points` is not a polygon: missing",
    );
    fails(
        r#"{"open":false,"points":[]}"#,
        &Type::POLYGON,
        "`params.p.open` is not a polygon: unknown, expected `points`",
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
        (r#"{"type":"Point","coordinates":[]}"#, "Point EMPTY"),
    ] {
        let text = format!("SRID=4326;{text}");
        check(json, &geography, &text);
        check(json, &geometry, &text);
    }
    for name in ["EPSG:3857", "urn:ogc:def:crs:EPSG::3857"] {
        let crs = format!(r#"{{"type":"name","properties":{{"name":"{name}"}}}}"#);
        let named = format!(r#"{{"type":"Point","crs":{crs},"coordinates":[1,2]}}"#);
        check(&named, &geometry, "SRID=3857;Point(1 2)");
    }
    fails(
        r#"{"type":"Point","crs":{"type":"name","properties":{"name":"mars"}},"coordinates":[1,2]}"#,
        &geometry,
        "`params.p.crs` is not a geometry: not the name of a reference system such as `EPSG:3857`",
    );
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
fn hstore_takes_an_object_of_strings_and_nulls() {
    let hstore = own("hstore", TypeKind::Simple);
    check(
        r#"{"a":"1","b \"c\"":null,"":"\\"}"#,
        &hstore,
        r#""a"=>"1","b \"c\""=>NULL,""=>"\\""#,
    );
    check("{}", &hstore, "");
    check(r#""a=>1""#, &hstore, "a=>1");
    check(
        r#"[{"a":"1"},null]"#,
        &own("_hstore", TypeKind::Array(hstore.clone())),
        r#"{"\"a\"=>\"1\"",NULL}"#,
    );
    let tags = own("tags", TypeKind::Domain(hstore.clone()));
    check(r#"{"a":"1"}"#, &tags, r#""a"=>"1""#);
    fails(
        r#"{"a":1}"#,
        &hstore,
        "`params.p.a` is not a hstore: a number, expected a string or null",
    );
    fails(
        r#"{"a":"1","a":"2"}"#,
        &hstore,
        "`params.p.a` is not a hstore: given twice",
    );
}
