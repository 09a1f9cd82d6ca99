//! Tests of properties that every filter has.

use proptest::prelude::*;
use serde_json::{Value, json};
use tidegate_filter::{Filter, Matcher};

use crate::fixture;

/// Random JSON that contains words of the where language everywhere, so that much of it is nearly
/// valid.
fn any_json() -> impl Strategy<Value = Value> {
    let word = prop_oneof![
        Just("id"),
        Just("title"),
        Just("price"),
        Just("tags"),
        Just("extra"),
        Just("years"),
        Just("length"),
        Just("artists"),
        Just("and"),
        Just("OR"),
        Just("not"),
        Just("eq"),
        Just("in"),
        Just("nin"),
        Just("isNull"),
        Just("like"),
        Just("contains"),
        Just("overlaps"),
        Just("lower"),
        Just("y"),
        Just("name"),
        Just("live"),
        Just("")
    ];
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,6}".prop_map(Value::from),
        Just(json!("1")),
        Just(json!("[1,2)"))
    ];
    scalar.prop_recursive(5, 40, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((word.clone(), inner), 0..4).prop_map(|members| {
                Value::Object(
                    members
                        .into_iter()
                        .map(|(name, value)| (name.to_owned(), value))
                        .collect(),
                )
            }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    #[test]
    fn any_json_is_a_filter_or_an_error_with_a_path(json in any_json()) {
        let schema = fixture::shop();
        let relation = schema.find("albums").unwrap();
        match fixture::parse(&schema, "albums", &json.to_string()) {
            Ok(filter) => {
                let bound = fixture::select(&schema, relation, &filter, "1");
                let count = bound.sets[0].len();
                for number in 0..count {
                    let dollar = format!("${}", number + 1);
                    let is_there = bound.statement.text().contains(&dollar);
                    prop_assert!(is_there);
                    prop_assert!(bound.place(0, number).starts_with("where"));
                }
                let _ = Matcher::compile(&filter, schema.relation(relation));
            }
            Err(error) => prop_assert!(error.place().unwrap().starts_with("where"), "{}", error),
        }
    }

    #[test]
    fn any_text_is_a_condition_or_an_error_with_a_position(
        text in "((id|title|price|=|<|>|'a'|'|\"|1|[.]|-|,| and | or | not | in |like|is|null|between|[(]|[)]| |é){0,12})"
    ) {
        let schema = fixture::shop();
        let relation = schema.relation(schema.find("albums").unwrap());
        if let Err(error) = Filter::parse_condition(&text, relation) {
            let tidegate_filter::Error::Condition { position, .. } = error else {
                return Err(TestCaseError::fail(format!("{text}: {error}")));
            };
            prop_assert!((1..=text.chars().count() + 1).contains(&position), "{}: {}", text, error);
        }
    }

    #[test]
    fn equal_shapes_give_equal_texts(ids in prop::collection::vec(any::<i64>(), 1..5), text in ".{0,8}") {
        let schema = fixture::shop();
        let sql = |json: Value| {
            let filter = fixture::parse(&schema, "albums", &json.to_string()).unwrap();
            let relation = schema.find("albums").unwrap();
            fixture::select(&schema, relation, &filter, "1").statement.text().to_owned()
        };
        let text = text.replace('\0', "");
        let shape = |ids: &[i64], text: &str| json!({"id": {"in": ids}, "title": {"startsWith": text}});
        prop_assert_eq!(sql(shape(&ids, &text)), sql(shape(&[1], "a")));
    }
}
