//! Runs random inserts. The returned rows must be the given ones, with defaults, in the given
//! order.

use std::fmt::Write as _;

use tidegate_testkit::Random;

use crate::fixture::Fixture;

const SETUP: &str = r#"create table t (id int primary key, a int default 5, b text default 'd"\',
    c int[] default '{7}', j jsonb default '[]', d date)"#;

/// A member of an object and the value that is shown for it. Without a member, the default is
/// shown.
fn value(random: &mut Random, column: usize) -> (Option<String>, String) {
    let number = random.below(1000);
    let texts = ["", "NULL", "a\\\\b", "{x,\\\"y\\\"}", "é 'q' $1", "\\n"];
    let text = format!("\"{}\"", texts[number % texts.len()]);
    let (given, default) = match column {
        0 => (number.to_string(), "5"),
        1 => (text, r#""d\"\\""#),
        2 => (format!("[{number},null]"), "[7]"),
        3 => (format!(r#"{{"k": [{number}, null, {text}]}}"#), "[]"),
        _ => (format!("\"2024-01-{:02}\"", 1 + number % 28), "null"),
    };
    match random.below(3) {
        0 => (None, default.to_owned()),
        1 => (Some("null".to_owned()), "null".to_owned()),
        _ => (Some(given.clone()), given),
    }
}

#[tokio::test]
async fn inserted_rows_come_back_as_given_and_in_their_order() {
    let fixture = Fixture::new("plan_random_writes", SETUP).await;
    let mut id = 0;
    for seed in 0..60 {
        let mut random = Random::new(seed);
        let (mut objects, mut expected) = (Vec::new(), Vec::new());
        for _ in 0..=random.below(12) {
            id += 1;
            let (mut given, mut shown) =
                (vec![format!(r#""id": {id}"#)], format!(r#"{{"id":"{id}""#));
            for (column, name) in ["a", "b", "c", "j", "d"].iter().enumerate() {
                let (member, value) = value(&mut random, column);
                given.extend(member.map(|member| format!("{name:?}: {member}")));
                let _ = write!(shown, ",{name:?}:{value}");
            }
            objects.push(format!("{{{}}}", given.join(",")));
            expected.push(format!("{shown}}}"));
        }
        let fields = "{ id a b c j d }";
        let insert = format!(
            r#"insert.t({{"objects": [{}]}}) {fields}"#,
            objects.join(",")
        );
        let expected = format!(r#"{{"t":[{}]}}"#, expected.join(","));
        assert_eq!(fixture.data(&insert).await, expected, "{seed}: {insert}");
        let first = id - objects.len() + 1;
        let read =
            format!(r#"t({{"where": {{"id": {{"gte": {first}}}}}, "order": ["id"]}}) {fields}"#);
        assert_eq!(fixture.data(&read).await, expected, "{seed}: {insert}");
    }
}
