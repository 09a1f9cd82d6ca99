//! Compares `hstore` values as objects with `hstore_to_json`.

use std::collections::BTreeMap;

use bytes::BytesMut;
use proptest::collection::btree_map;
use proptest::option;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use serde_json::Value;
use tidegate_values::codec::ValueWriter;
use tidegate_values::parameter::encode;
use tidegate_values::{Parameter, Type, WireFormat};

use super::{connect, texts};
use crate::rows::column;

fn object(r#type: &Type, raw: &str) -> Value {
    let writer = ValueWriter::new(&column("v", r#type.clone(), WireFormat::Text));
    let mut out = BytesMut::new();
    let written = writer.with_hstore_objects().json(raw.as_bytes(), &mut out);
    written.unwrap_or_else(|error| panic!("{raw}: {error:?}"));
    serde_json::from_slice(&out).unwrap()
}

#[tokio::test]
async fn objects_of_pairs_go_in_and_come_out_as_postgresql_reads_them() {
    let client = connect().await;
    client
        .batch_execute("create extension if not exists hstore")
        .await
        .unwrap();
    let pairs = client.prepare("select null::hstore").await.unwrap();
    let r#type = pairs.columns()[0].type_().clone();
    let text = "[\"\\\\=>,{}() \\PC]{0,6}|NULL|null";
    let maps = btree_map(text, option::of(text), 0..5);
    let mut runner = TestRunner::deterministic();
    for _ in 0..200 {
        let map: BTreeMap<String, Option<String>> = maps.new_tree(&mut runner).unwrap().current();
        let json = serde_json::to_string(&map).unwrap();
        let mut given = BytesMut::new();
        let parameter = Parameter::Json(json.clone().into());
        encode(&parameter, &r#type, None, &String::new, &mut given).unwrap();
        let given = String::from_utf8(given.to_vec())
            .unwrap()
            .replace('\'', "''");
        let query = |what: &str| format!("select {what} from (values ('{given}'::hstore)) as s(v)");
        let theirs = texts(&client, &query("hstore_to_json(v)")).await;
        let ours = texts(&client, &query("v::text")).await;
        let expected: Value = serde_json::from_str(&json).unwrap();
        let theirs: Value = serde_json::from_str(theirs[0].as_deref().unwrap()).unwrap();
        assert_eq!(theirs, expected, "{given}");
        assert_eq!(
            object(&r#type, ours[0].as_deref().unwrap()),
            expected,
            "{given}"
        );
    }
}

#[tokio::test]
async fn objects_stand_in_arrays_and_composites() {
    let client = connect().await;
    client
        .batch_execute(
            "create extension if not exists hstore;
             create type pg_temp.tagged as (n int8, tags hstore, more hstore[])",
        )
        .await
        .unwrap();
    let value =
        r#"row(9007199254740993, 'a=>"b, c"', array['d=>NULL'::hstore, null])::pg_temp.tagged"#;
    let expected = serde_json::json!({
        "n": 9_007_199_254_740_993_i64,
        "tags": {"a": "b, c"},
        "more": [{"d": null}, null],
    });
    for (value, expected) in [
        (value.to_owned(), expected.clone()),
        (format!("array[{value}]"), serde_json::json!([expected])),
    ] {
        let statement = client.prepare(&format!("select {value}")).await.unwrap();
        let shown = texts(&client, &format!("select {value}")).await;
        let r#type = statement.columns()[0].type_();
        assert_eq!(object(r#type, shown[0].as_deref().unwrap()), expected);
    }
}
