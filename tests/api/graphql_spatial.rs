//! Tests PostGIS over GraphQL (API.md, "GraphQL"), if the extension is installed.

use serde_json::{Value, json};
use tidegate_testkit::left_out;

use crate::graphql::{ask, data, wait_for_type};
use crate::graphql_forms::count;
use crate::graphql_types::{TYPE, written};
use crate::service::demo;
use crate::socket_client::socket;

/// Installs PostGIS in a schema that other tests do not describe. Returns false if PostGIS is not
/// available.
async fn postgis() -> bool {
    let admin = demo().admin().await;
    let there = "select 1 from pg_available_extensions where name = 'postgis'";
    if admin.query_opt(there, &[]).await.unwrap().is_none() {
        left_out("postgis", "PostGIS is not installed");
        return false;
    }
    admin
        .batch_execute(
            "select pg_advisory_xact_lock(1504); create schema if not exists gis;
             create extension if not exists postgis schema gis; grant usage on schema gis to public",
        )
        .await
        .unwrap();
    true
}

const SHAPES: [&str; 14] = [
    "POINT(1.5 2)",
    "POINT Z (1 2 3.5)",
    "POINT EMPTY",
    "SRID=4326;POINT(1 2)",
    "SRID=3857;POINT(1e6 -2)",
    "SRID=25832;LINESTRING Z (0 0 1,1 1 2)",
    "LINESTRING EMPTY",
    "POLYGON((0 0,4 0,4 4,0 0),(1 1,2 1,2 2,1 1))",
    "MULTIPOINT(0 0,1 1)",
    "MULTILINESTRING((0 0,1 1))",
    "MULTIPOLYGON(((0 0,4 0,4 4,0 0)))",
    "GEOMETRYCOLLECTION(POINT(1 2),LINESTRING(0 0,1 1))",
    "GEOMETRYCOLLECTION EMPTY",
    "POINT ZM (1 2 3 4)",
];

#[tokio::test]
async fn shapes_are_geojson_out_and_in() {
    if !postgis().await {
        eprintln!("left out: PostGIS is not installed");
        return;
    }
    let setup = "create domain gis.gqf_where as gis.geometry; create type gqf_site as (name text, at gis.geometry);
         create table gqf_shapes (id int primary key, g gis.geometry not null, gs gis.geometry[],
            w gis.gqf_where, site gqf_site, earth gis.geography, sites gqf_site[]);
         create table gqf_shapes_2 (like gqf_shapes including all);
         create table \"GeoJSON\" (id int primary key);
         alter table gqf_shapes owner to demo; alter table gqf_shapes_2 owner to demo;
         alter table \"GeoJSON\" owner to demo";
    let admin = demo().admin().await;
    admin.batch_execute(setup).await.unwrap();
    wait_for_type("GeoJSON2").await;
    wait_for_type("GqfShapes2").await;
    let mut socket = socket("demo").await;
    let fields = "id g gs w site earth sites";
    let document = format!("subscription {{ GqfShapesMessageAdded {{ {fields} }} }}");
    socket.subscribe("a", &document).await;
    let mut events = Vec::new();
    for (at, shape) in SHAPES.iter().enumerate() {
        let insert = format!(
            "with s as (select gis.st_geomfromewkt('{shape}') as g) insert into gqf_shapes
             select {at}, g, array[g, null], g, row('s', g)::gqf_site,
                 case when gis.st_srid(g) in (0, 4326) then g::gis.geography end,
                 array[row(null, g)::gqf_site, row('n', null)::gqf_site, null] from s"
        );
        admin.batch_execute(&insert).await.unwrap();
        events.push(socket.receive().await["data"]["GqfShapesMessageAdded"][0].clone());
    }
    let query = format!("{{ rows: getGqfShapes(orderBy: {{id: asc}}) {{ {fields} }} }}");
    let rows = data("demo", &query, json!({})).await["rows"].take();
    let rows = rows.as_array().unwrap();
    assert_eq!(rows, &events);
    // The values equal those of the SQL endpoint. Without a reference system they also equal those
    // of PostGIS.
    let q = "select g, gs, w, site, earth, sites, gis.st_asgeojson(g, 15, 0)::jsonb as theirs from gqf_shapes order by id";
    let expected = demo().rows("demo", q, json!({})).await["data"].take();
    for (at, (row, expected)) in rows.iter().zip(expected.as_array().unwrap()).enumerate() {
        for name in ["g", "gs", "w", "site", "earth", "sites"] {
            assert_eq!(row[name], expected[name], "{name} {}", SHAPES[at]);
        }
        let mut plain = row["g"].clone();
        let named = plain.as_object_mut().unwrap().remove("crs").is_some();
        let other = SHAPES[at].starts_with("SRID=") && !SHAPES[at].starts_with("SRID=4326");
        assert_eq!(named, other, "{row}");
        assert_eq!(
            number_free(&plain),
            number_free(&expected["theirs"]),
            "{}",
            SHAPES[at]
        );
    }

    // The output is valid input. It is read with the coordinate system that it names, or otherwise
    // with WGS 84.
    let many = "mutation($o: [JSON]) { insertGqfShapes2(objects: $o) { id } }";
    data("demo", many, json!({"o": rows})).await;
    let same = "select count(*) from gqf_shapes r join gqf_shapes_2 w using (id)
         where gis.st_asewkb(gis.st_force3d(r.g)) = gis.st_asewkb(gis.st_force3d(gis.st_setsrid(w.g, gis.st_srid(r.g))))
         and gis.st_srid(w.g) = case gis.st_srid(r.g) when 0 then 4326 else gis.st_srid(r.g) end
         and (r.site).name = (w.site).name and (w.site).at is not null
         and cardinality(w.gs) = 2 and cardinality(w.sites) = 3";
    assert_eq!(count(same).await, 14);
    let again = format!("{{ rows: getGqfShapes2(orderBy: {{id: asc}}) {{ {fields} }} }}");
    let again = data("demo", &again, json!({})).await;
    assert_eq!(again["rows"], json!(rows));

    let query = "query($g: GeoJSON, $w: JSON) {
            a: getGqfShapes2(where: {g: {eq: $g}}) { id } b: getGqfShapes2(where: {g: {in: [$g]}}) { id }
            c: getGqfShapes2(where: $w) { id } }";
    let variables = json!({"g": rows[4]["g"], "w": {"g": {"eq": "SRID=3857;POINT(1e6 -2)"}}});
    let found = data("demo", query, variables).await;
    let id = json!([{"id": "4"}]);
    assert_eq!(found, json!({"a": id, "b": id, "c": id}));
    let update = "mutation($g: GeoJSON) { updateGqfShapes2(id: 4, data: {g: $g}) { g } }";
    let found = data("demo", update, json!({"g": rows[5]["g"]})).await;
    assert_eq!(found["updateGqfShapes2"][0]["g"], rows[5]["g"]);
    let literal = "mutation { updateGqfShapes2(id: 4, data: {g: {type: \"Point\", coordinates: [1, 2]}}) { g } }";
    let found = data("demo", literal, json!({})).await;
    assert_eq!(
        found["updateGqfShapes2"][0]["g"],
        json!({"type": "Point", "coordinates": [1, 2]})
    );

    let query = format!(
        "{{ s: __type(name: \"GeoJSON\") {{ kind specifiedByURL description }}
            t: __type(name: \"GqfShapes\") {{ fields {{ {TYPE} }} }} }}"
    );
    let found = data("demo", &query, json!({})).await;
    assert_eq!(found["s"]["kind"], "SCALAR");
    assert_eq!(
        found["s"]["specifiedByURL"],
        "https://www.rfc-editor.org/rfc/rfc7946"
    );
    let types: Vec<_> = found["t"]["fields"]
        .as_array()
        .unwrap()
        .iter()
        .map(|field| written(&field["type"]))
        .collect();
    assert_eq!(
        types,
        [
            "ID!",
            "GeoJSON!",
            "[GeoJSON]",
            "GeoJSON",
            "JSON",
            "GeoJSON",
            "[JSON]"
        ]
    );

    // A coordinate that is not a number cannot be represented.
    let odd = "insert into gqf_shapes (id, g, w) select 99, 'POINT(0 0)', gis.st_makepoint('Infinity', 1)";
    let odd = odd.replace("'POINT(0 0)'", "gis.st_makepoint(0, 0)");
    admin.batch_execute(&odd).await.unwrap();
    let query = "{ x: getGqfShapes(id: 99) { g w } }";
    let response = ask(Some("demo"), query, json!({})).await;
    assert_eq!(response["data"]["x"][0]["w"], Value::Null, "{response}");
    assert_eq!(
        response["errors"][0]["path"],
        json!(["x", 0, "w"]),
        "{response}"
    );
}

/// The value with all numbers as floats, because PostGIS writes 1e6 as 1000000.
fn number_free(value: &Value) -> Value {
    match value {
        Value::Number(number) => json!(number.as_f64()),
        Value::Array(elements) => elements.iter().map(number_free).collect(),
        Value::Object(members) => members
            .iter()
            .map(|(name, member)| (name.clone(), number_free(member)))
            .collect(),
        other => other.clone(),
    }
}
