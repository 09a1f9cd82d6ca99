//! Tests PostGIS at `POST /api/v4/sql` (API.md, "SQL"), if the extension is installed.

use serde_json::{Value, json};
use tidegate_testkit::left_out;

use crate::service::{Service, demo_folder};

#[tokio::test]
async fn geometries_are_geojson_both_ways() {
    // The test has a demo of its own, because the extension fills the schema that other tests
    // describe.
    let folder = demo_folder();
    let demo = Service::start(folder.path().to_str().unwrap(), &[]);
    let admin = demo.admin().await;
    let there = "select 1 from pg_available_extensions where name = 'postgis'";
    if admin.query_opt(there, &[]).await.unwrap().is_none() {
        left_out("postgis", "PostGIS is not installed");
        return;
    }
    admin
        .batch_execute("create extension postgis")
        .await
        .unwrap();
    let ring = json!([[0, 0], [4, 0], [4, 4], [0, 0]]);
    for geometry in [
        json!({"type": "Point", "coordinates": [1.5, 2]}),
        json!({"type": "Point", "coordinates": [1, 2, 3.5]}),
        json!({"type": "LineString", "coordinates": [[0, 0], [1, 1]]}),
        json!({"type": "Polygon", "coordinates": [ring]}),
        json!({"type": "MultiPoint", "coordinates": [[0, 0], [1, 1]]}),
        json!({"type": "MultiPolygon", "coordinates": [[ring]]}),
        json!({"type": "GeometryCollection", "geometries": [
            {"type": "Point", "coordinates": [1, 2]},
        ]}),
    ] {
        for r#type in ["geometry", "geography"] {
            let body = json!({
                "q": "select :v as v, array[:v, null] as list, st_srid(:v::geometry) as srid, \
                      st_astext(:v::geometry) = st_astext(st_geomfromgeojson(:text)) as same",
                "params": {"v": geometry, "text": geometry.to_string()},
                "type_hints": {"v": r#type, "text": "text"},
            });
            let response = demo.sql(Some("demo"), &body).await;
            let response: Value = response.json().await.unwrap();
            let schema = json!({"type": r#type, "array": false});
            assert_eq!(response["schema"]["v"], schema, "{geometry}: {response}");
            let row = json!({"v": geometry, "list": [geometry, null], "srid": 4326, "same": true});
            assert_eq!(
                response["data"][0].to_string(),
                row.to_string(),
                "{response}"
            );
        }
    }
    let q = "select 7 as id, 'POINT(1 2)'::geometry as place, 'POINT(3 4)'::geometry as other";
    let body = json!({"q": q, "output_format": "geojson"});
    let response = demo.sql(Some("demo"), &body).await.text().await.unwrap();
    let response: Value = serde_json::from_str(&response).unwrap();
    let other = json!({"type": "Point", "coordinates": [3, 4]});
    assert_eq!(
        response["features"],
        json!([{
            "type": "Feature", "geometry": {"type": "Point", "coordinates": [1, 2]},
            "properties": {"id": 7, "other": other},
        }])
    );
    let wrong = json!({
        "q": "select :v as v", "params": {"v": {"type": "Dot", "coordinates": [1, 2]}},
        "type_hints": {"v": "geometry"},
    });
    let (status, error) = demo.refusal("demo", &wrong).await;
    assert_eq!(status, 400, "{error}");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("params.v.type"), "{message}");
    // PostGIS reports invalid geometry without a SQLSTATE of its own.
    let wrong = json!({"q": "select :v::geometry as v", "params": {"v": "x"}});
    let (status, error) = demo.refusal("demo", &wrong).await;
    assert_eq!(
        (status, &error["sqlstate"]),
        (400, &json!("22P02")),
        "{error}"
    );
}
