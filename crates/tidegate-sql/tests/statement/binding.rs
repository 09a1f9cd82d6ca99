//! Tests of binding values to the placeholders of a statement.

use std::sync::Arc;

use serde_json::value::RawValue;
use tidegate_sql::statement::Purity;
use tidegate_sql::{BoundStatement, InputError, Params, Statement, TypeHint};
use tidegate_values::Parameter;
use tidegate_values::datetime::Zone;

use super::{read, refused};

fn json(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

const NONE: &[(&str, &str)] = &[];

fn bind(q: &str, params: &str) -> Result<BoundStatement, InputError> {
    let raw = json(params);
    Arc::new(read(q)).bind(&Params::read(&raw, "params")?, NONE, NONE)
}

#[test]
fn values_are_bound_in_the_order_of_the_placeholders() {
    let bound = bind(
        "select :b, :a, :c",
        r#"{"a": 1.50, "b": null, "c": {"x": [1]}}"#,
    )
    .unwrap();
    let expected = vec![
        Parameter::Null,
        Parameter::Json("1.50".into()),
        Parameter::Json(r#"{"x": [1]}"#.into()),
    ];
    assert_eq!(bound.sets, [expected]);
    assert_eq!(bound.place(0, 1), "params.a");

    let bound = bind("select :a", r#"[{"a":1},{"a":"2"}]"#).unwrap();
    assert_eq!(
        bound.sets,
        [
            [Parameter::Json("1".into())],
            [Parameter::Json("\"2\"".into())]
        ]
    );
    assert_eq!(bound.place(1, 0), "params[1].a");

    assert_eq!(bind("select 1", "null").unwrap().sets, [vec![]]);
    assert_eq!(bind("select 1", "[{},{}]").unwrap().sets, [vec![], vec![]]);
}

#[test]
fn many_placeholders_are_bound_too() {
    let names: Vec<_> = (0..100).map(|n| format!("p{n}")).collect();
    let q = format!("select :{}", names.join(", :"));
    let members: Vec<_> = names
        .iter()
        .rev()
        .map(|name| format!("\"{name}\":\"{name}\""))
        .collect();
    let bound = bind(&q, &format!("{{{}}}", members.join(","))).unwrap();
    assert_eq!(bound.statement.placeholders(), names);
    assert!(bound.statement.text().ends_with("$99, $100"));
    for (value, name) in bound.sets[0].iter().zip(&names) {
        assert_eq!(*value, Parameter::Json(format!("\"{name}\"").into()));
    }
}

#[test]
fn more_placeholders_than_postgresql_counts_are_refused_quickly() {
    let names: Vec<_> = (0..=65_535).map(|n| format!(":p{n}")).collect();
    assert!(Statement::parse(&format!("select {}", names[1..].join(","))).is_ok());
    let error = refused(&format!("select {}", names.join(","))).to_string();
    assert!(error.contains("65,535"), "{error}");
}

#[test]
fn wrong_parameters_are_named() {
    for (q, params, message) in [
        (
            "select :a",
            "{}",
            "`params` has no value for the placeholder `:a`",
        ),
        (
            "select :a, :b",
            r#"[{"a":1,"b":2},{"a":1}]"#,
            "`params[1]` has no value for the placeholder `:b`",
        ),
        (
            "select :a",
            r#"{"a":1,"b":2}"#,
            "`params.b` names no placeholder of the statement",
        ),
        (
            "select 1",
            r#"[{},{"x":2}]"#,
            "`params[1].x` names no placeholder of the statement",
        ),
        ("select :a", r#"{"a":1,"a":2}"#, "`params.a`: given twice"),
        (
            "select :a",
            "[]",
            "`params`: an empty array, expected one object or more",
        ),
        (
            "select :a",
            "5",
            "`params`: a number, expected an object or an array of objects",
        ),
        (
            "select :a",
            r#"[{"a":1},2]"#,
            "`params[1]`: a number, expected an object",
        ),
    ] {
        assert_eq!(
            bind(q, params).unwrap_err().to_string(),
            message,
            "{q} {params}"
        );
    }
}

#[test]
fn hints_and_formats_go_to_their_placeholders_and_the_rest_is_for_columns() {
    let raw = json(r#"{"a":1,"b":2}"#);
    let statement = Arc::new(read("select :a, :b"));
    let params = Params::read(&raw, "params").unwrap();
    let bound = statement
        .bind(
            &params,
            &[("b", "int8"), ("column", "x")],
            &[("a", "Y-m-d")],
        )
        .unwrap();
    assert_eq!(bound.hints, [None, Some(TypeHint("int8".into()))]);
    let specifiers = |index: usize| {
        bound.formats[index]
            .as_ref()
            .map(|format| &*format.specifiers)
    };
    assert_eq!((specifiers(0), specifiers(1)), (Some("Y-m-d"), None));
    let zone = Zone::named("Europe/Copenhagen").unwrap();
    let bound = bound.in_zone(&zone);
    assert_eq!(
        bound.formats[0].as_ref().unwrap().zone.name(),
        "Europe/Copenhagen"
    );
}

#[test]
fn a_hint_of_an_own_type_makes_a_statement_stateful() {
    let raw = json(r#"{"a":1}"#);
    let statement = Arc::new(read("select :a"));
    let params = Params::read(&raw, "params").unwrap();
    for (hint, trust) in [
        ("int4", Purity::Stateless),
        ("int[]", Purity::Stateless),
        ("_TEXT", Purity::Stateless),
        ("timestamp with time zone", Purity::Stateless),
        ("pg_catalog.date", Purity::Stateless),
        ("my_domain", Purity::Stateful),
        ("public.date", Purity::Stateful),
        ("\"date\"", Purity::Stateful),
    ] {
        let bound = statement.bind(&params, &[("a", hint)], NONE).unwrap();
        assert_eq!(bound.purity(), trust, "{hint}");
    }
}
