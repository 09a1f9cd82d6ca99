//! Tests that an unknown operator is an error on every column, wherever it occurs.

use proptest::prelude::*;
use serde_json::{Value, json};
use tidegate_catalog::Schema;
use tidegate_filter::Error;
use tidegate_values::{Type, TypeField, TypeKind};

use crate::fixture;

fn made(name: &str, oid: u32, kind: TypeKind) -> Type {
    Type::new(name.to_owned(), oid, kind, "ext".to_owned())
}

/// A column for each class of types, named like its type.
fn columns() -> Vec<(&'static str, Type)> {
    let attributes = vec![
        TypeField::new("a".to_owned(), Type::INT4),
        TypeField::new("b".to_owned(), Type::JSONB),
    ];
    vec![
        ("id", Type::INT4),
        ("numeric", Type::NUMERIC),
        ("float8", Type::FLOAT8),
        ("bool", Type::BOOL),
        ("money", Type::MONEY),
        ("text", Type::TEXT),
        ("uuid", Type::UUID),
        ("bytea", Type::BYTEA),
        ("interval", Type::INTERVAL),
        ("timestamptz", Type::TIMESTAMPTZ),
        ("json", Type::JSON),
        ("jsonb", Type::JSONB),
        ("xml", Type::XML),
        ("text_array", Type::TEXT_ARRAY),
        ("jsonb_array", Type::JSONB_ARRAY),
        ("int4range", Type::INT4_RANGE),
        ("int4multirange", Type::INT4MULTI_RANGE),
        ("point", Type::POINT),
        ("line", Type::LINE),
        ("lseg", Type::LSEG),
        ("box", Type::BOX),
        ("path", Type::PATH),
        ("polygon", Type::POLYGON),
        ("circle", Type::CIRCLE),
        ("inet", Type::INET),
        ("tsvector", Type::TS_VECTOR),
        ("cid", Type::CID),
        (
            "mood",
            made("mood", 90_001, TypeKind::Enum(vec!["ok".to_owned()])),
        ),
        (
            "pair",
            made("pair", 90_002, TypeKind::Composite(attributes)),
        ),
        (
            "document",
            made("document", 90_003, TypeKind::Domain(Type::JSONB)),
        ),
        ("hstore", made("hstore", 90_004, TypeKind::Simple)),
        ("geometry", made("geometry", 90_005, TypeKind::Simple)),
        ("citext", made("citext", 90_006, TypeKind::Simple)),
        ("lquery", made("lquery", 90_007, TypeKind::Simple)),
    ]
}

/// The schema: `things`, each of which has a parent in `parents`.
fn schema() -> Schema {
    let things = [columns(), vec![("parent", Type::INT4)]].concat();
    fixture::schema(
        "public",
        &[
            ("things", fixture::named(&things)),
            ("parents", fixture::named(&[("id", Type::INT4)])),
        ],
        &[("things_parent", ("things", "parent"), ("parents", "id"))],
    )
}

const OPERATORS: &[&str] = &[
    "eq",
    "neq",
    "gt",
    "gte",
    "lt",
    "lte",
    "in",
    "nin",
    "isNull",
    "like",
    "ilike",
    "startsWith",
    "endsWith",
    "contains",
    "regex",
    "iregex",
    "containedBy",
    "overlaps",
];

/// The members that values have if they are objects, of any type above.
const MEMBERS: &[&str] = &[
    "lower",
    "upper",
    "lowerInclusive",
    "upperInclusive",
    "empty",
    "y",
    "m",
    "d",
    "h",
    "i",
    "s",
    "x",
    "A",
    "B",
    "C",
    "start",
    "end",
    "open",
    "points",
    "center",
    "radius",
    "type",
    "coordinates",
    "geometries",
    "bbox",
    "crs",
    "a",
    "b",
];

/// A plausible misspelling of an operator.
fn word() -> impl Strategy<Value = String> {
    let near = prop::sample::select(OPERATORS).prop_flat_map(|name| {
        prop::sample::select(vec![
            format!("_{name}"),
            format!("${name}"),
            name[..1].to_uppercase() + &name[1..],
            name.to_uppercase(),
            format!("{name}s"),
            format!("{name} "),
            format!("not_{name}"),
        ])
    });
    let other = prop::sample::select(vec![
        "has_key",
        "_has_key",
        "contained_in",
        "is",
        "=",
        "and",
    ]);
    let word = prop_oneof![
        near,
        other.prop_map(str::to_owned),
        "[a-zA-Z_]{1,9}",
        ".{0,4}"
    ];
    word.prop_filter("it is a word of the language", |word| {
        !OPERATORS.contains(&&**word) && !MEMBERS.contains(&&**word) && !word.contains('\0')
    })
}

fn any_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        Just(json!(true)),
        Just(json!(1)),
        Just(json!("a")),
        Just(json!([1])),
        Just(json!({"keep": true})),
        Just(json!({"eq": 1})),
        Just(json!({"type": "Point", "coordinates": [1, 2]})),
    ]
}

/// Puts a condition on `things` below `and`, `or`, `not` and relationships; also returns the path
/// that leads to it.
fn nested(steps: &[u8], condition: Value) -> (Value, String) {
    let (mut condition, mut path) = (condition, String::new());
    for step in steps {
        let step_path;
        (condition, step_path) = match step {
            0 => (json!({"and": [{"id": 1}, condition]}), ".and[1]"),
            1 => (json!({"OR": [condition, {"id": 1}]}), ".OR[0]"),
            2 => (json!({"Not": condition}), ".Not"),
            3 => (json!({"not": [condition]}), ".not[0]"),
            _ => (json!({"parents": {"things": condition}}), ".parents.things"),
        };
        path = format!("{step_path}{path}");
    }
    (condition, path)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn a_word_that_is_no_operator_is_refused_by_name_on_every_column(
        column in prop::sample::select(columns()),
        word in word(),
        value in any_value(),
        beside in prop_oneof![Just(None), Just(Some(("isNull", json!(false)))), Just(Some(("eq", json!("1"))))],
        steps in prop::collection::vec(0..5_u8, 0..6),
    ) {
        let schema = schema();
        let mut object = serde_json::Map::new();
        if let Some((name, value)) = beside {
            object.insert(name.to_owned(), value);
        }
        object.insert(word.clone(), value);
        let (condition, path) = nested(&steps, json!({column.0: object}));
        let error = fixture::parse(&schema, "things", &condition.to_string());
        let place = format!("where{path}.{}.{word}", column.0);
        match error {
            Err(Error::UnknownOperator { place: found, expected, .. }) => {
                prop_assert_eq!(found, place);
                prop_assert!(expected.contains("`isNull`"), "{}", expected);
            }
            other => prop_assert!(false, "{}: {:?}", condition, other),
        }
    }

    #[test]
    fn an_object_without_an_operator_is_refused_on_every_column(
        column in prop::sample::select(columns()),
        steps in prop::collection::vec(0..5_u8, 0..6),
    ) {
        let (condition, path) = nested(&steps, json!({column.0: {}}));
        let error = fixture::parse(&schema(), "things", &condition.to_string()).unwrap_err();
        prop_assert!(matches!(error, Error::IncompleteObject { .. }), "{}", error);
        let place = format!("where{path}.{}", column.0);
        prop_assert_eq!(error.place(), Some(&*place));
    }
}

#[test]
fn an_object_that_is_a_value_needs_no_operator() {
    let schema = schema();
    for json in [
        r#"{"interval": {"h": 1}}"#,
        r#"{"pair": {"a": 1, "b": null}}"#,
        r#"{"pair": {"eq": {"a": 1}}}"#,
        r#"{"int4range": {"lower": 1}}"#,
        r#"{"int4multirange": {"lower": 1}}"#,
        r#"{"point": {"x": 1, "y": 2}}"#,
        r#"{"polygon": {"points": []}}"#,
        r#"{"geometry": {"type": "Point", "coordinates": [1, 2]}}"#,
        r#"{"jsonb": {"eq": {"a": {"eq": 1}}}}"#,
        r#"{"jsonb": [{"a": 1}]}"#,
        r#"{"document": {"in": [{"a": 1}]}}"#,
    ] {
        assert!(fixture::parse(&schema, "things", json).is_ok(), "{json}");
    }
}

#[test]
fn a_composite_needs_an_operator_or_all_its_attributes() {
    let error = fixture::parse(&schema(), "things", r#"{"not": {"pair": {"a": 1}}}"#).unwrap_err();
    assert_eq!(error.place(), Some("where.not.pair"));
}
