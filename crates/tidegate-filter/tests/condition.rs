//! Compares condition texts with JSON of the same meaning, and checks their errors.

use tidegate_filter::{Error, Filter, Json, Matcher};

use crate::fixture;

/// The filter without the paths of its values, which differ between the two languages.
fn shape(filter: &Filter) -> Filter {
    let all = |filters: &[Filter]| filters.iter().map(shape).collect();
    match filter {
        Filter::All(filters) => Filter::All(all(filters)),
        Filter::Any(filters) => Filter::Any(all(filters)),
        Filter::Not(filter) => Filter::Not(Box::new(shape(filter))),
        Filter::Exists(id, filter) => Filter::Exists(*id, Box::new(shape(filter))),
        Filter::Compare(comparison) => {
            let mut comparison = comparison.clone();
            comparison.place = "".into();
            Filter::Compare(comparison)
        }
    }
}

fn condition(text: &str) -> Result<Filter, Error> {
    let schema = fixture::shop();
    let relation = schema.relation(schema.find("albums").unwrap());
    Filter::parse_condition(text, relation)
}

const MEANINGS: &[(&str, &str)] = &[
    ("id = 1", r#"{"id": 1}"#),
    ("id='1'", r#"{"id": "1"}"#),
    ("ID <> 1", r#"{"id": {"neq": 1}}"#),
    ("id != -1", r#"{"id": {"neq": -1}}"#),
    ("id < 1", r#"{"id": {"lt": 1}}"#),
    ("id<=1", r#"{"id": {"lte": 1}}"#),
    ("id > 1", r#"{"id": {"gt": 1}}"#),
    ("id >= 1", r#"{"id": {"gte": 1}}"#),
    ("1 < id", r#"{"id": {"gt": 1}}"#),
    ("'1' = id", r#"{"id": "1"}"#),
    ("price > 10.50", r#"{"price": {"gt": 10.50}}"#),
    ("price > 1e3", r#"{"price": {"gt": 1e3}}"#),
    ("price > .5", r#"{"price": {"gt": ".5"}}"#),
    ("price > 5.", r#"{"price": {"gt": "5."}}"#),
    ("id = 007", r#"{"id": "007"}"#),
    ("id = +7", r#"{"id": "+7"}"#),
    ("title = 'it''s'", r#"{"title": "it's"}"#),
    ("title = '\"\\'", r#"{"title": "\"\\"}"#),
    ("title = ''", r#"{"title": ""}"#),
    ("title like 'a%'", r#"{"title": {"like": "a%"}}"#),
    (
        "title NOT ILIKE 'a%'",
        r#"{"not": {"title": {"ilike": "a%"}}}"#,
    ),
    ("id in (1, '2',null)", r#"{"id": {"in": [1,"2",null]}}"#),
    ("id Not In (1)", r#"{"not": {"id": {"in": [1]}}}"#),
    ("title is null", r#"{"title": null}"#),
    ("title IS NOT NULL", r#"{"title": {"neq": null}}"#),
    ("id between 1 and 5", r#"{"id": {"gte": 1, "lte": 5}}"#),
    (
        "id not between 1 and 5",
        r#"{"not": {"id": {"gte": 1, "lte": 5}}}"#,
    ),
    (
        "id between 1 and 5 and live = true",
        r#"{"and": [{"id": {"gte": 1, "lte": 5}}, {"live": true}]}"#,
    ),
    (
        "live = TRUE or live = false",
        r#"{"OR": [{"live": true}, {"live": false}]}"#,
    ),
    (
        "id = 1 or id = 2 and live = true",
        r#"{"OR": [{"id": 1}, {"id": 2, "live": true}]}"#,
    ),
    (
        "(id = 1 or id = 2) and live = true",
        r#"{"and": [{"OR": [{"id": 1}, {"id": 2}]}, {"live": true}]}"#,
    ),
    (
        "not id = 1 and live = true",
        r#"{"and": [{"not": {"id": 1}}, {"live": true}]}"#,
    ),
    (
        "NOT (id = 1 AND live = true)",
        r#"{"not": {"id": 1, "live": true}}"#,
    ),
    ("not not id = 1", r#"{"not": {"not": {"id": 1}}}"#),
    ("((id = 1))", r#"{"id": 1}"#),
    ("\"odd \"\"name\" = 1", r#"{"odd \"name": 1}"#),
    ("\"or\" = true", r#"{"or": true}"#),
    ("  id\n=\t1  ", r#"{"id": 1}"#),
    (
        "released >= '2024-01-01'",
        r#"{"released": {"gte": "2024-01-01"}}"#,
    ),
];

#[test]
fn a_condition_means_what_its_json_means() {
    let schema = fixture::shop();
    for (text, json) in MEANINGS {
        let ours = condition(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(
            shape(&ours),
            shape(&fixture::parse(&schema, "albums", json).unwrap()),
            "{text}"
        );
    }
}

const ERRORS: &[(&str, usize, &str)] = &[
    ("", 1, "the end, expected a column"),
    ("id", 3, "the end, expected a comparison"),
    ("id =", 5, "expected a text in single quotes"),
    ("id = 1 live", 8, "`live`, expected `AND`, `OR` or the end"),
    ("nothing = 1", 1, "`nothing` is not a column of `albums`"),
    ("\"ID\" = 1", 1, "the name `ID` is not a column"),
    ("id = title", 6, "`title`, expected a text"),
    ("id = null", 6, "write IS NULL"),
    ("id is 1", 7, "`1`, expected `NULL`"),
    ("id = 'abc'", 6, "abc is not an integer"),
    ("id = '99999999999999999999'", 6, "is not between"),
    ("id = '4.5'", 6, "4.5 is not an integer"),
    ("id in (1, '4.5')", 7, "4.5 is not an integer"),
    ("id like 'a'", 9, "no such comparison for int8"),
    ("title = true", 9, "expected a string"),
    ("title = 5", 9, "a number, expected a string"),
    ("title in ('a', 5)", 10, "a number, expected a string"),
    ("title = 'a", 9, "never closed"),
    ("\"title = 'a'", 1, "never closed"),
    ("id in ()", 8, "`)`, expected a text"),
    ("id in (1", 9, "the end, expected `)`"),
    ("id in (1, 'x')", 7, "x is not an integer"),
    ("id in 1", 7, "`1`, expected `(`"),
    ("(id = 1", 8, "the end, expected `)`"),
    ("id = 1)", 7, "`)`, expected"),
    ("id between 1 or 2", 14, "`or`, expected `AND`"),
    ("id not 1", 8, "expected `IN`"),
    ("id = 1; drop table albums", 7, "`;` has no meaning"),
    ("id = 1 -- and", 8, "not a valid number"),
    ("id = 1 /* */", 8, "`/` has no meaning"),
    ("id::text = '1'", 3, "`:` has no meaning"),
    ("lower(title) = 'a'", 1, "`lower` is not a column"),
    ("id = 1x", 6, "not a valid number"),
    ("id = 1.2.3", 6, "not a valid number"),
    ("albums.id = 1", 7, "`.` has no meaning"),
    ("id = e'a'", 6, "`e`, expected"),
    ("id = $1", 6, "`$` has no meaning"),
    ("title = 'é' and x = 1", 17, "`x` is not a column"),
    ("title like 'a\\'", 12, "backslash"),
    ("title = 'a\0b'", 14, "U+0000"),
];

#[test]
fn errors_name_the_character() {
    for (text, position, part) in ERRORS {
        let error = condition(text).unwrap_err();
        let Error::Condition {
            position: found,
            problem,
        } = &error
        else {
            panic!("{text}: {error}");
        };
        assert!(problem.contains(*part), "{text}: {error}");
        assert_eq!(found, position, "{text}: {error}");
    }
}

#[test]
fn nesting_and_length_end_somewhere() {
    let nested = |levels: usize| format!("{}id = 1{}", "(".repeat(levels), ")".repeat(levels));
    assert!(condition(&nested(64)).is_ok());
    assert!(matches!(
        condition(&nested(65)),
        Err(Error::Condition { position: 66, .. })
    ));
    assert!(condition(&format!("{}id = 1", "not ".repeat(100_000))).is_err());
    let many = |count: usize| vec!["id = 1"; count].join(" or ");
    assert!(condition(&many(10_000)).is_ok());
    assert!(condition(&many(10_001)).is_err());
}

#[test]
fn a_subscription_takes_an_object_or_a_condition() {
    let schema = fixture::shop();
    let relation = schema.find("albums").unwrap();
    let parse = |json: &'static str| {
        Filter::parse_subscription(&Json::from(json), &schema, relation, "where")
    };
    let object = parse(r#"{"id": {"gt": 3}}"#).unwrap();
    assert_eq!(shape(&object), shape(&parse(r#""id > 3""#).unwrap()));
    assert!(parse("null").unwrap().is_empty());
    assert_eq!(parse("[]").unwrap_err().place(), Some("where"));
    let regex = parse(r#"{"title": {"regex": "a"}}"#).unwrap();
    assert!(Matcher::compile(&regex, schema.relation(relation)).is_err());
    let order = parse(r#""title > 'a'""#).unwrap();
    let error = Matcher::compile(&order, schema.relation(relation)).unwrap_err();
    assert_eq!(error.place(), Some("where at character 9"));
}
