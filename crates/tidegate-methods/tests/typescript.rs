use std::sync::Arc;

use postgres_types::Field as Attribute;
use tidegate_methods::{Method, Signature, SignatureField, typescript};
use tidegate_testkit::assert_golden;
use tidegate_values::{Type, TypeKind};

use crate::fixture::method;

/// The expected text for one method of each type. `tsc --strict --target es2022` must compile it
/// together with `use.ts` in the same directory.
const GOLDEN: &str = "tests/typescript/golden.ts";

fn made(name: &str, kind: TypeKind) -> Type {
    Type::new(name.to_owned(), 90_000, kind, "public".to_owned())
}

fn attribute(name: &str, r#type: Type) -> Attribute {
    Attribute::new(name.to_owned(), r#type)
}

/// A type for every row of the table of values, and types that are constructed of them.
fn every_type() -> Vec<(&'static str, Type)> {
    let geometry = made("geometry", TypeKind::Simple);
    let price = made("price", TypeKind::Domain(Type::NUMERIC));
    let tags = made("tags", TypeKind::Domain(Type::TEXT_ARRAY));
    let address = made(
        "address",
        TypeKind::Composite(vec![
            attribute("street", Type::TEXT),
            attribute("house no", Type::INT4_ARRAY),
            attribute("extra", Type::JSONB),
        ]),
    );
    vec![
        ("int2", Type::INT2),
        ("int4", Type::INT4),
        ("int8", Type::INT8),
        ("oid", Type::OID),
        ("float4", Type::FLOAT4),
        ("float8", Type::FLOAT8),
        ("numeric", Type::NUMERIC),
        ("bool", Type::BOOL),
        ("text", Type::TEXT),
        ("varchar", Type::VARCHAR),
        ("uuid", Type::UUID),
        ("inet", Type::INET),
        ("money", Type::MONEY),
        ("bit", Type::BIT),
        ("mood", made("mood", TypeKind::Enum(vec!["ok".to_owned()]))),
        ("price", price),
        ("json", Type::JSON),
        ("jsonb", Type::JSONB),
        ("date", Type::DATE),
        ("time", Type::TIME),
        ("timetz", Type::TIMETZ),
        ("timestamp", Type::TIMESTAMP),
        ("timestamptz", Type::TIMESTAMPTZ),
        ("interval", Type::INTERVAL),
        ("bytea", Type::BYTEA),
        ("point", Type::POINT),
        ("line", Type::LINE),
        ("lseg", Type::LSEG),
        ("box", Type::BOX),
        ("path", Type::PATH),
        ("polygon", Type::POLYGON),
        ("circle", Type::CIRCLE),
        ("int4range", Type::INT4_RANGE),
        ("numrange", Type::NUM_RANGE),
        ("tstzrange", Type::TSTZ_RANGE),
        ("int8multirange", Type::INT8MULTI_RANGE),
        ("address", address.clone()),
        ("addresses", made("_address", TypeKind::Array(address))),
        ("record", Type::RECORD),
        ("int4s", Type::INT4_ARRAY),
        ("texts", tags),
        ("jsons", Type::JSONB_ARRAY),
        ("ranges", Type::DATE_RANGE_ARRAY),
        ("geometry", geometry.clone()),
        ("geographies", made("_geometry", TypeKind::Array(geometry))),
    ]
}

fn fields(types: &[(&str, Type)], nullable: bool) -> Vec<SignatureField> {
    let field =
        |(name, r#type): &(&str, Type)| SignatureField::new((*name).to_owned(), r#type, nullable);
    types.iter().map(field).collect()
}

fn signature(parameters: &[(&str, Type)], columns: Vec<SignatureField>) -> Signature {
    let parameters = fields(parameters, false);
    Signature {
        parameters,
        columns,
    }
}

fn golden_methods() -> Vec<Arc<Method>> {
    let every = every_type();
    let typed = |body: &str, parameters: &[(&str, Type)], columns| {
        method(body, Some(signature(parameters, columns)))
    };
    let number = || vec![SignatureField::new("id".to_owned(), &Type::INT4, false)];
    let odd = [
        "a b", "1st", "é", "\"", "\\", "\n", "\u{2028}", "new", "_ok$1",
    ];
    let odd = odd.map(|name| (name, Type::INT4));
    let formatted = r#"{"method":"formatted","q":"select 1","type_formats":{"d":"U","r":"Y"}}"#;
    vec![
        typed(
            r#"{"method":"name","q":"select :a, :b"}"#,
            &[("a", Type::INT4), ("b", Type::TEXT)],
            number(),
        ),
        typed(
            r#"{"method":"every","q":"select 1"}"#,
            &every,
            fields(&every, false),
        ),
        typed(
            r#"{"method":"nullable","q":"select 1"}"#,
            &[],
            fields(&every, true),
        ),
        typed(
            formatted,
            &[("d", Type::DATE)],
            fields(&[("d", Type::DATE), ("r", Type::DATE_RANGE)], true),
        ),
        typed(
            r#"{"method":"nothing","q":"delete from t"}"#,
            &[],
            Vec::new(),
        ),
        typed(
            r#"{"method":"as-csv","q":"select 1","output_format":"csv"}"#,
            &[],
            number(),
        ),
        method(
            r#"{"method":"as.ndjson","q":"select 1","output_format":"ndjson"}"#,
            None,
        ),
        method(r#"{"method":"notDryRun","q":"select :a"}"#, None),
        typed(r#"{"method":"new","q":"select 1"}"#, &[], number()),
        typed(
            r#"{"method":"delete","q":"select 1"}"#,
            &[],
            fields(&odd, false),
        ),
    ]
}

#[test]
fn every_type_has_its_typescript() {
    let text = typescript::interfaces(&golden_methods());
    assert_golden(GOLDEN, &text);
}

#[test]
fn the_same_methods_give_the_same_bytes_in_any_order() {
    let mut methods = golden_methods();
    methods.reverse();
    assert_golden(GOLDEN, &typescript::interfaces(&methods));
}

#[test]
fn one_line_per_method_in_this_spacing() {
    let columns = fields(&[("id", Type::INT4)], false);
    let typed = method(
        r#"{"method":"name","q":"select :a, :b"}"#,
        Some(signature(&[("a", Type::INT4), ("b", Type::TEXT)], columns)),
    );
    let bare = method(r#"{"method":"undescribed","q":"select 1"}"#, None);
    assert_eq!(
        typescript::interfaces(&[bare, typed]),
        "export interface Api {\n    \
         name(params: { a: number; b: string; }): Promise<{ id: number; }[]>;\n    \
         undescribed(params: Record<string, unknown>): Promise<Record<string, unknown>[]>;\n\
         }\n"
    );
}

#[test]
fn without_methods_it_is_an_empty_interface() {
    assert_eq!(typescript::interfaces(&[]), "export interface Api {\n}\n");
}

#[test]
fn only_what_is_mentioned_is_declared() {
    let column = |r#type| fields(&[("a", r#type)], true);
    let polygon = method(
        r#"{"method":"a","q":"select 1"}"#,
        Some(signature(&[], column(Type::POLYGON))),
    );
    let text = typescript::interfaces(&[polygon]);
    assert!(
        text.ends_with("}\n\nexport type Point = { x: number; y: number; };\n"),
        "{text}"
    );
    assert_eq!(text.matches("export").count(), 2);
    let csv = r#"{"method":"a","q":"select 1","output_format":"csv"}"#;
    let text = typescript::interfaces(&[method(csv, Some(signature(&[], column(Type::CIRCLE))))]);
    assert_eq!(text.matches("export").count(), 1);
}
