//! Tests of limits, and of filters that are rejected.

use tidegate_filter::{Error, Filter, Json};

use crate::fixture;

#[test]
fn anything_but_an_object_or_null_is_no_filter() {
    let schema = fixture::shop();
    for json in ["1", "\"id = 1\"", "[]", "true"] {
        let error = fixture::parse(&schema, "albums", json).unwrap_err();
        assert!(matches!(error, Error::WrongKind { .. }), "{json}: {error}");
        assert_eq!(error.place(), Some("where"), "{json}");
    }
}

#[test]
fn nesting_ends_somewhere() {
    let schema = fixture::shop();
    let nested = |levels: usize| {
        format!(
            "{}{{\"id\":1}}{}",
            "{\"not\":".repeat(levels),
            "}".repeat(levels)
        )
    };
    assert!(fixture::parse(&schema, "albums", &nested(31)).is_ok());
    let error = fixture::parse(&schema, "albums", &nested(32)).unwrap_err();
    assert!(matches!(error, Error::TooDeep { most: 32, .. }), "{error}");
    let error = fixture::parse(&schema, "albums", &nested(100)).unwrap_err();
    assert!(matches!(error, Error::TooDeep { .. }), "{error}");
    let far = format!(
        "{}{{}}{}",
        "{\"artists\":{\"albums\":".repeat(20),
        "}}".repeat(20)
    );
    let error = fixture::parse(&schema, "albums", &far).unwrap_err();
    assert!(matches!(error, Error::TooDeep { .. }), "{error}");
}

#[test]
fn conditions_end_somewhere() {
    let schema = fixture::shop();
    let many = |count: usize| format!("{{\"OR\":[{}]}}", vec!["{\"id\":1}"; count].join(","));
    assert!(fixture::parse(&schema, "albums", &many(10_000)).is_ok());
    let error = fixture::parse(&schema, "albums", &many(10_001)).unwrap_err();
    assert_eq!(error.place(), Some("where.OR[10000].id"));
}

#[test]
fn a_literal_with_values_reads_like_the_text_of_it() {
    let schema = fixture::shop();
    let relation = schema.find("albums").unwrap();
    let scalar = |text: &'static str| Json::from(text);
    let object = |members: Vec<(&'static str, Json<'static>)>| {
        Json::Object(
            members
                .into_iter()
                .map(|(name, value)| (name.into(), value))
                .collect(),
        )
    };
    let literal = object(vec![
        (
            "id",
            object(vec![("in", Json::List(vec![scalar("1"), scalar("\"2\"")]))]),
        ),
        (
            "AND",
            Json::List(vec![object(vec![(
                "extra",
                object(vec![("eq", object(vec![("a\"b", scalar("[1, 2]"))]))]),
            )])]),
        ),
    ]);
    let text = r#"{"id":{"in":[1,"2"]},"AND":[{"extra":{"eq":{"a\"b":[1, 2]}}}]}"#;
    assert_eq!(literal.text(), text);
    let ours = Filter::parse(&literal, &schema, relation, "where").unwrap();
    assert_eq!(ours, fixture::parse(&schema, "albums", text).unwrap());
    let twice = object(vec![("id", scalar("1")), ("id", scalar("2"))]);
    let error = Filter::parse(&twice, &schema, relation, "where").unwrap_err();
    assert_eq!(
        error,
        Error::Repeated {
            place: "where.id".to_owned()
        }
    );
}

#[test]
fn an_id_takes_numbers_and_strings_but_no_null() {
    let schema = fixture::shop();
    let relation = schema.relation(schema.find("albums").unwrap());
    let id = relation.find_column("id").unwrap();
    let equals = |json: &'static str| Filter::equals(&Json::from(json), relation, id, "id");
    assert!(equals("7").is_ok());
    assert!(equals("\"7\"").is_ok());
    for json in ["null", "\"x\"", "{}", "[]", "true", "1.5"] {
        assert_eq!(equals(json).unwrap_err().place(), Some("id"), "{json}");
    }
}

#[test]
fn a_filter_that_says_something_is_not_empty_and_stays_so_beside_one_that_does_not() {
    let schema = fixture::shop();
    let filter = |json| fixture::parse(&schema, "albums", json).unwrap();
    assert!(filter("null").and(filter("{}")).is_empty());
    assert!(!filter("null").and(filter("{\"id\":1}")).is_empty());
    assert!(!filter("{\"id\":1}").and(filter("{}")).is_empty());
    let both = filter("{\"id\":1,\"live\":true}").and(filter("{\"title\":null}"));
    assert_eq!(both, filter("{\"id\":1,\"live\":true,\"title\":null}"));
}
