use tidegate_methods::{Signature, SignatureField, method::to_json_array};
use tidegate_sql::Params;
use tidegate_values::Type;

use crate::fixture::method;

#[test]
fn a_method_that_was_never_dry_run_has_nulls() {
    let bare = method(r#"{"method":"a","q":"select \"x\""}"#, None);
    assert_eq!(
        bare.to_json(),
        r#"{"q":"select \"x\"","method":"a","type_hints":null,"type_formats":null,"output_format":null,"input_schema":null,"output_schema":null}"#
    );
}

#[test]
fn everything_is_shown_in_order() {
    let signature = Signature {
        parameters: vec![SignatureField::new(
            "z".to_owned(),
            &Type::INT4_ARRAY,
            false,
        )],
        columns: vec![
            SignatureField::new("id".to_owned(), &Type::INT8, false),
            SignatureField::new("a".to_owned(), &Type::VARCHAR, true),
        ],
    };
    let full = r#"{"output_format":"ndjson","type_formats":{"d":"Y","c":"m"},
        "type_hints":{"z":"int[]"},"q":"select 1","method":"a"}"#;
    let full = method(full, Some(signature));
    let expected = r#"{"q":"select 1","method":"a","type_hints":{"z":"int[]"},"type_formats":{"d":"Y","c":"m"},"output_format":"ndjson","input_schema":{"z":{"type":"int4","array":true,"nullable":false}},"output_schema":{"id":{"type":"int8","array":false,"nullable":false},"a":{"type":"varchar","array":false,"nullable":true}}}"#;
    assert_eq!(full.to_json(), expected);
    let bare = method(r#"{"method":"b","q":"select 1"}"#, None);
    let array = to_json_array(&[full, bare.clone()]);
    assert_eq!(array, format!("[{expected},{}]", bare.to_json()));
    assert_eq!(to_json_array(&[]), "[]");
}

#[test]
fn a_call_binds_under_the_methods_hints_and_formats() {
    let method = method(
        r#"{"method":"a","q":"select :d, :n","type_hints":{"n":"int","column":"text"},"type_formats":{"d":"Y"}}"#,
        None,
    );
    let values = serde_json::from_str::<Box<serde_json::value::RawValue>>(r#"{"n":1,"d":"2026"}"#);
    let bound = method
        .bind(&Params::read(&values.unwrap(), "params").unwrap())
        .unwrap();
    assert_eq!(bound.statement.text(), "select $1, $2");
    assert_eq!(bound.hints[0], None);
    assert_eq!(bound.hints[1].as_ref().unwrap().0, "int");
    assert_eq!(bound.formats[0].as_ref().unwrap().specifiers, "Y");
    assert_eq!(bound.sets.len(), 1);
    assert!(method.bind(&Params::default()).is_err());
    assert!(method.without_values().unwrap().sets.is_empty());
}

#[test]
fn a_stored_statement_that_is_refused_today_does_not_hide_the_method() {
    let mut record = method(r#"{"method":"a","q":"select 1"}"#, None)
        .record()
        .clone();
    record.definition.q = "commit".to_owned();
    let old = tidegate_methods::Method::new(record);
    assert!(old.statement().is_err());
    assert!(old.bind(&Params::default()).is_err());
    assert!(old.to_json().contains(r#""q":"commit""#));
}
