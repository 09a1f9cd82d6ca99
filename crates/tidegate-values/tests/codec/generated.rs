//! Tests that decode random bytes as every type.

use bytes::BytesMut;
use proptest::prelude::*;
use tidegate_values::codec::ValueWriter;
use tidegate_values::{Column, Type, TypeKind, WireFormat};

use super::{binary, geometry, made, show};
use crate::rows::column;

/// Types that together have every JSON form.
fn types() -> Vec<Type> {
    let composite = made(
        "c",
        90_030,
        TypeKind::Composite(vec![
            postgres_types::Field::new("a".to_owned(), Type::INT4),
            postgres_types::Field::new("b".to_owned(), Type::NUMERIC_ARRAY),
        ]),
    );
    vec![
        Type::BOOL,
        Type::INT2,
        Type::INT4,
        Type::INT8,
        Type::OID,
        Type::FLOAT4,
        Type::FLOAT8,
        Type::NUMERIC,
        Type::TEXT,
        Type::MONEY,
        Type::JSON,
        Type::JSONB,
        Type::UUID,
        Type::BYTEA,
        Type::DATE,
        Type::TIME,
        Type::TIMETZ,
        Type::TIMESTAMP,
        Type::TIMESTAMPTZ,
        Type::INTERVAL,
        Type::POINT,
        Type::LINE,
        Type::LSEG,
        Type::BOX,
        Type::PATH,
        Type::POLYGON,
        Type::CIRCLE,
        geometry(),
        Type::INT4_ARRAY,
        Type::TEXT_ARRAY,
        Type::BOX_ARRAY,
        Type::INT2_VECTOR,
        Type::INT2_VECTOR_ARRAY,
        Type::NUM_RANGE,
        Type::TSTZ_RANGE,
        Type::NUMMULTI_RANGE,
        Type::INT4_RANGE_ARRAY,
        Type::RECORD,
        composite.clone(),
        made("_c", 90_031, TypeKind::Array(composite)),
    ]
}

fn writers() -> Vec<Column> {
    let formats = [WireFormat::Binary, WireFormat::Text];
    types()
        .into_iter()
        .flat_map(|r#type| formats.map(|format| column("v", r#type.clone(), format)))
        .collect()
}

/// Bytes that consist of small numbers, so that counts and lengths in them are often plausible.
fn believable_bytes() -> impl Strategy<Value = Vec<u8>> {
    let word = prop_oneof![
        Just(vec![0, 0, 0, 0]),
        Just(vec![0, 0, 0, 1]),
        Just(vec![0, 0, 0, 2]),
        Just(vec![0, 0, 0, 23]),
        Just(vec![0, 0, 0, 4]),
        Just(vec![0, 0, 0, 8]),
        Just(vec![255, 255, 255, 255]),
        Just(vec![127, 255, 255, 255]),
        Just(vec![1, 7, 0, 0, 0]),
        Just(vec![1, 4, 0, 0, 0]),
        Just(vec![1, 0, 0, 0]),
        prop::collection::vec(any::<u8>(), 1..9),
        "[{}()\\[\\],\\\\\"0-9a:.+-]{1,8}".prop_map(String::into_bytes),
    ];
    prop::collection::vec(word, 0..16).prop_map(|words| words.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn no_bytes_make_a_writer_panic(raw in believable_bytes()) {
        for column in writers() {
            let writer = ValueWriter::new(&column);
            let mut out = BytesMut::new();
            let _ = writer.json(&raw, &mut out);
            let _ = writer.plain(&raw, &mut out);
            let _ = writer.geojson(&raw, &mut out);
        }
    }

    #[test]
    fn what_is_written_for_any_text_is_json(raw in prop::collection::vec(any::<u8>(), 0..64)) {
        let shown = binary(&Type::TEXT, &raw);
        let read: String = serde_json::from_str(&shown).unwrap();
        prop_assert_eq!(read, String::from_utf8_lossy(&raw));
    }

    #[test]
    fn whatever_is_accepted_is_json(raw in believable_bytes()) {
        for column in writers().iter().filter(|column| !matches!(column.r#type, Type::JSON | Type::JSONB)) {
            if let Ok(shown) = show(&column.r#type, column.format, &raw) {
                prop_assert!(serde_json::from_str::<serde_json::Value>(&shown).is_ok(), "{}: {shown}", column.r#type);
            }
        }
    }

    #[test]
    fn floats_read_back_as_the_same_number(bits in any::<u64>()) {
        let value = f64::from_bits(bits);
        prop_assume!(value.is_finite());
        let shown = binary(&Type::FLOAT8, &value.to_be_bytes());
        prop_assert_eq!(shown.parse::<f64>().unwrap().to_bits(), bits);
    }
}
