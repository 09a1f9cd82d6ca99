//! Tests of what a matcher accepts and rejects, and of its properties.

use tidegate_catalog::Schema;
use tidegate_filter::{Error, Filter, Json, Matcher, RowValue, Truth};
use tidegate_values::Type;

use crate::fixture;

fn compile(schema: &Schema, relation: &str, json: &str) -> Result<Matcher, Error> {
    let id = schema.find(relation).unwrap();
    let filter = Filter::parse(&Json::from(json), schema, id, "where").unwrap();
    Matcher::compile(&filter, schema.relation(id))
}

#[test]
fn what_cannot_be_judged_exactly_is_refused() {
    let schema = fixture::shop();
    for json in [
        r#"{"title": {"gt": "a"}}"#,
        r#"{"title": {"ilike": "é%"}}"#,
        r#"{"title": {"regex": "a"}}"#,
        r#"{"title": {"iregex": "a"}}"#,
        r#"{"tags": ["a"]}"#,
        r#"{"tags": null}"#,
        r#"{"extra": {"contains": {}}}"#,
        r#"{"extra": null}"#,
        r#"{"raw": null}"#,
        r#"{"years": {"contains": 1}}"#,
        r#"{"place": {"x": 1, "y": 1}}"#,
        r#"{"track": null}"#,
        r#"{"artists": {}}"#,
        r#"{"released": "Feb 29, 2024"}"#,
        r#"{"released": "24-01-01"}"#,
        r#"{"released": "today"}"#,
        r#"{"length": "1 day ago"}"#,
        r#"{"length": {"d": 1.5}}"#,
        r#"{"price": "0x10"}"#,
        r#"{"small": "1_0"}"#,
        r#"{"key": "a0ee-bc99-9c0b-4ef8-bb6d-6bb9-bd38-0a11"}"#,
    ] {
        let error = compile(&schema, "albums", json).unwrap_err();
        assert!(
            matches!(error, Error::Unsupported { .. }),
            "{json}: {error}"
        );
    }
    for json in [
        r#"{"released": "2024-02-30"}"#,
        r#"{"released": "9999999-01-01"}"#,
    ] {
        let error = compile(&schema, "albums", json).unwrap_err();
        assert!(
            matches!(error, Error::InvalidValue { .. }),
            "{json}: {error}"
        );
        assert_eq!(error.place(), Some("where.released"));
    }
}

#[test]
fn text_under_a_loose_collation_is_only_asked_for_null() {
    let columns = |collation| vec![("t".to_owned(), Type::TEXT, collation)];
    let schema = fixture::schema("public", &[("rows", columns("non_deterministic"))], &[]);
    for json in [
        r#"{"t": "a"}"#,
        r#"{"t": {"in": ["a"]}}"#,
        r#"{"t": {"like": "a"}}"#,
        r#"{"t": {"startsWith": "a"}}"#,
    ] {
        assert!(
            matches!(
                compile(&schema, "rows", json),
                Err(Error::Unsupported { .. })
            ),
            "{json}"
        );
    }
    assert!(compile(&schema, "rows", r#"{"t": null}"#).is_ok());
}

#[test]
fn a_missing_column_leaves_open_what_depends_on_it() {
    let schema = fixture::shop();
    let relation = schema.relation(schema.find("albums").unwrap());
    let id = relation.find_column("id").unwrap();
    let image = |column| {
        if column == id {
            RowValue::Text(b"1")
        } else {
            RowValue::Missing
        }
    };
    for (json, expected) in [
        (r#"{"price": 1}"#, Truth::Undecided),
        (r#"{"price": null}"#, Truth::Undecided),
        (r#"{"price": {"in": [1]}}"#, Truth::Undecided),
        (r#"{"title": {"like": "a"}}"#, Truth::Undecided),
        (r#"{"not": {"price": 1}}"#, Truth::Undecided),
        (r#"{"id": 1, "price": 1}"#, Truth::Undecided),
        (r#"{"price": 1, "id": 2}"#, Truth::False),
        (r#"{"OR": [{"price": 1}, {"id": 1}]}"#, Truth::True),
        (r#"{"OR": [{"price": 1}, {"id": 2}]}"#, Truth::Undecided),
    ] {
        let matcher = compile(&schema, "albums", json).unwrap();
        assert_eq!(matcher.evaluate(image).unwrap(), expected, "{json}");
    }
}

#[test]
fn an_unknown_label_makes_every_comparison_undecided() {
    let mood = Type::new(
        "mood".to_owned(),
        90_000,
        tidegate_values::TypeKind::Enum(vec!["sad".to_owned(), "glad".to_owned()]),
        "public".to_owned(),
    );
    let schema = fixture::schema("public", &[("rows", vec![("m".to_owned(), mood, "")])], &[]);
    let judge = |json| {
        compile(&schema, "rows", json)
            .unwrap()
            .evaluate(|_| RowValue::Text(b"new"))
            .unwrap()
    };
    // The unknown label may be a new name of a known one.
    for json in [
        r#"{"m": "sad"}"#,
        r#"{"m": {"neq": "sad"}}"#,
        r#"{"m": {"gt": "sad"}}"#,
        r#"{"m": {"in": ["sad"]}}"#,
        r#"{"m": {"nin": ["sad"]}}"#,
    ] {
        assert_eq!(judge(json), Truth::Undecided, "{json}");
    }
    let error = compile(&schema, "rows", r#"{"m": "none"}"#).unwrap_err();
    assert!(matches!(error, Error::InvalidValue { .. }), "{error}");
}

#[test]
fn bytes_that_are_no_value_are_an_error() {
    let schema = fixture::shop();
    for (json, raw) in [
        (r#"{"id": 1}"#, RowValue::Binary(b"123")),
        (r#"{"id": 1}"#, RowValue::Text(b"x")),
        (r#"{"price": 1}"#, RowValue::Binary(b"")),
        (
            r#"{"price": 1}"#,
            RowValue::Binary(b"\0\x01\0\0\0\0\0\0\xff\xff"),
        ),
        (
            r#"{"released": "2024-01-01"}"#,
            RowValue::Text(b"01/02/2024"),
        ),
        (
            r#"{"key": "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"}"#,
            RowValue::Binary(b"short"),
        ),
        (r#"{"live": true}"#, RowValue::Binary(b"")),
        (r#"{"length": "1 day"}"#, RowValue::Text(b"P1D")),
    ] {
        let matcher = compile(&schema, "albums", json).unwrap();
        assert!(matcher.evaluate(|_| raw).is_err(), "{json} {raw:?}");
    }
}

#[test]
fn equalities_that_every_row_fulfils_are_pins() {
    let schema = fixture::shop();
    let relation = schema.relation(schema.find("albums").unwrap());
    for (json, expected) in [
        (r#"{"id": 1}"#, &[("id", 1)][..]),
        (r#"{"id": 1, "live": true}"#, &[("id", 1), ("live", 1)]),
        (r#"{"id": {"in": [1, "1", 2, null]}}"#, &[("id", 2)]),
        (
            r#"{"OR": [{"id": 1}, {"id": 2, "live": true}, {"id": 1}]}"#,
            &[("id", 2)],
        ),
        (r#"{"OR": [{"id": 1}, {"live": true}]}"#, &[]),
        (r#"{"OR": []}"#, &[]),
        (r#"{"id": {"gt": 1}}"#, &[]),
        (r#"{"id": null}"#, &[]),
        (r#"{"not": {"id": 1}}"#, &[]),
        (r#"{"id": {"nin": [1]}}"#, &[]),
        ("{}", &[]),
    ] {
        let matcher = compile(&schema, "albums", json).unwrap();
        let pins: Vec<_> = matcher
            .required_values()
            .iter()
            .map(|pin| (&*relation.column(pin.column).name, pin.keys.len()))
            .collect();
        assert_eq!(pins, expected, "{json}");
    }
}

#[test]
fn a_matcher_tells_its_columns_once_each() {
    let schema = fixture::shop();
    let relation = schema.relation(schema.find("albums").unwrap());
    let matcher = compile(
        &schema,
        "albums",
        r#"{"title": null, "id": {"gt": 1, "lt": 5}, "OR": [{"id": 3}]}"#,
    )
    .unwrap();
    let names: Vec<_> = matcher
        .columns()
        .iter()
        .map(|column| &*relation.column(*column).name)
        .collect();
    assert_eq!(names, ["id", "title"]);
}
