//! Compares the JSON of geometric values with what PostgreSQL and PostGIS write.

use tidegate_testkit::left_out;

use super::{compare, connect, literals};

#[tokio::test]
async fn geometric_values_have_their_objects() {
    let client = connect().await;
    for (r#type, literal, object) in [
        ("point", "(1.5,-2)", r#"{"x":1.5,"y":-2}"#),
        ("point", "(Infinity,NaN)", r#"{"x":"Infinity","y":"NaN"}"#),
        ("line", "{1,-1,0.5}", r#"{"A":1,"B":-1,"C":0.5}"#),
        (
            "lseg",
            "[(0,0),(1e300,2)]",
            r#"{"start":{"x":0,"y":0},"end":{"x":1e300,"y":2}}"#,
        ),
        (
            "box",
            "(0,0),(1,2)",
            r#"{"start":{"x":1,"y":2},"end":{"x":0,"y":0}}"#,
        ),
        (
            "path",
            "[(0,0),(1,1)]",
            r#"{"open":true,"points":[{"x":0,"y":0},{"x":1,"y":1}]}"#,
        ),
        (
            "path",
            "((0,0),(1,1))",
            r#"{"open":false,"points":[{"x":0,"y":0},{"x":1,"y":1}]}"#,
        ),
        (
            "polygon",
            "((0,0),(1,1),(1,0))",
            r#"[{"x":0,"y":0},{"x":1,"y":1},{"x":1,"y":0}]"#,
        ),
        (
            "circle",
            "<(1,2),3>",
            r#"{"center":{"x":1,"y":2},"radius":3}"#,
        ),
    ] {
        let expected = format!("case when v is not null then '{object}' end");
        compare(&client, &literals(r#type, &[literal]), &expected).await;
    }
    compare(
        &client,
        "select array[box '(0,0),(1,1)', null] as v",
        r#"'[{"start":{"x":1,"y":1},"end":{"x":0,"y":0}},null]'"#,
    )
    .await;
}

#[tokio::test]
async fn postgis_values_are_what_postgis_says() {
    let client = connect().await;
    let there = "select 1 from pg_available_extensions where name = 'postgis'";
    if client.query_opt(there, &[]).await.unwrap().is_none() {
        left_out("postgis", "PostGIS is not installed");
        return;
    }
    client
        .batch_execute("create extension if not exists postgis")
        .await
        .unwrap();
    let kinds = [
        "POINT(1 2)",
        "POINT Z (1 2 3.5)",
        "POINT EMPTY",
        "LINESTRING(0 0,1 1)",
        "POLYGON((0 0,4 0,4 4,0 0),(1 1,2 1,2 2,1 1))",
        "POLYGON EMPTY",
        "MULTIPOINT((1 2),(3 4))",
        "MULTILINESTRING((0 0,1 1),(2 2,3 3))",
        "MULTIPOLYGON(((0 0,4 0,4 4,0 0)))",
        "GEOMETRYCOLLECTION(POINT(1 2),LINESTRING(0 0,1 1))",
        "GEOMETRYCOLLECTION EMPTY",
    ];
    for r#type in ["geometry", "geography"] {
        let source = literals(
            r#type,
            &kinds
                .map(|kind| format!("SRID=4326;{kind}"))
                .each_ref()
                .map(String::as_str),
        );
        compare(&client, &source, "ST_AsGeoJSON(v, 15, 0)").await;
    }
    let elsewhere = [
        "SRID=3857;POINT(1 2)",
        "SRID=25832;GEOMETRYCOLLECTION(POINT(1 2),LINESTRING(0 0,1 1))",
    ];
    // The option 8 makes PostGIS write the reference system if it is not WGS 84.
    let expected = "ST_AsGeoJSON(v, 15, 8)";
    compare(&client, &literals("geometry", &elsewhere), expected).await;
    let expected = "ST_AsGeoJSON(ST_Force2D(v), 15, 0)";
    compare(
        &client,
        &literals("geometry", &["POINT M (1 2 9)"]),
        expected,
    )
    .await;
    compare(
        &client,
        &literals("geometry", &["CIRCULARSTRING(0 0,1 1,2 0)"]),
        "to_json(lower(v::text))::text",
    )
    .await;
    compare(
        &client,
        "select array['POINT(1 2)'::geometry, null] as v",
        r#"'[{"type":"Point","coordinates":[1,2]},null]'"#,
    )
    .await;
}
