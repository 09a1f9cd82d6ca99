use proptest::prelude::*;
use tidegate_methods::{NotNull, Signature, ValueForm};
use tidegate_sql::{Description, Statement};
use tidegate_values::{Column, Type, WireFormat};

/// A result column: its name, type and origin.
type Shown<'a> = (&'a str, Type, Option<(u32, i16)>);

fn description(parameters: &[Type], columns: &[Shown<'_>]) -> Description {
    let columns = columns.iter().map(|(name, r#type, origin)| Column {
        name: (*name).to_owned(),
        r#type: r#type.clone(),
        format: WireFormat::Binary,
        origin: *origin,
    });
    Description {
        parameters: parameters.to_vec(),
        columns: columns.collect(),
    }
}

/// Whether an unchanged NOT NULL column counts as nullable in the result of this statement.
fn nullable(q: &str) -> bool {
    let statement = Statement::parse(q).unwrap();
    let description = description(&[], &[("id", Type::INT4, Some((7, 1)))]);
    let facts = NotNull::from_iter([(7, 1)]);
    let inferred = Signature::infer(&statement, &description, &facts).columns[0].nullable;
    let asked = NotNull::candidates(&statement, &description);
    assert_eq!(asked.is_empty(), inferred, "{q}");
    inferred
}

#[test]
fn parameters_and_columns_are_named_and_typed() {
    let statement = Statement::parse("select a, :y, :x, :y, a from t").unwrap();
    let description = description(
        &[Type::TEXT, Type::INT4_ARRAY],
        &[
            ("a", Type::INT4, Some((7, 1))),
            ("?column?", Type::TEXT, None),
            ("b", Type::INT4, Some((7, 2))),
            ("a", Type::INT4, Some((7, 1))),
        ],
    );
    assert_eq!(
        NotNull::candidates(&statement, &description),
        [(7, 1), (7, 2)]
    );
    let signature = Signature::infer(&statement, &description, &NotNull::from_iter([(7, 1)]));
    let shown = |fields: &[tidegate_methods::SignatureField]| -> Vec<String> {
        let fields = fields.iter();
        let text = |f: &tidegate_methods::SignatureField| {
            format!("{} {} {} {}", f.name, f.r#type, f.array, f.nullable)
        };
        fields.map(text).collect()
    };
    assert_eq!(
        shown(&signature.parameters),
        ["y text false false", "x int4 true false"]
    );
    assert_eq!(
        shown(&signature.columns),
        [
            "a int4 false false",
            "?column? text false true",
            "b int4 false true",
            "a_1 int4 false false"
        ]
    );
    assert_eq!(
        signature.parameters[1].form,
        ValueForm::Array(Box::new(ValueForm::Number))
    );
    assert_eq!(Signature::from_json(&signature.to_json()), Some(signature));
    assert_eq!(Signature::from_json(r#"{"parameters":[]}"#), None);
}

#[test]
fn a_column_of_one_table_or_an_inner_join_is_never_null() {
    for q in [
        "select id from t",
        "SELECT t.id FROM t JOIN u ON true WHERE t.x = 1 ORDER BY 1 LIMIT 3",
        "select id from t inner join u using (id) natural join v cross join w",
        "select id, left(name, 2) from t",
        "select id, right(name, 1) from t, u",
        "insert into t (x) values (:x) returning id",
        "insert into t (x) select 1 from u returning id",
        "update t set x = :x where id = :id returning id, x",
        "delete from t returning id",
        "table t",
        "select id from leftover join full_names f on news = f.older",
    ] {
        assert!(!nullable(q), "{q}");
    }
}

#[test]
fn whatever_may_put_a_null_beside_it_makes_it_nullable() {
    for q in [
        "select id from u left join t on true",
        "select id from u LEFT\tOUTER\nJOIN t on true",
        "select id from t right /* why */ join u on true",
        "select id from t natural full join u",
        "select id from u left--\njoin t on true",
        "select id from u join v on u.a = 1left join t on true",
        "select id from u join v on u.a = $$x$$left join t on true",
        "select id from u join v on u.a = 'x'left join t on true",
        "select id from t group by grouping sets ((id), ())",
        "select id from t group by rollup (id)",
        "select id from t group by cube(id)",
        "select id from t union select null",
        "select id from t intersect select null",
        "select id from t except select null",
        "select id from (select id from t) s",
        "with s as (select id from t) select id from s",
        "with s as (delete from t returning id) table s",
        "merge into t using s on t.id = s.id when matched then delete returning t.id",
        "insert into t values (1) returning old.id",
        "delete from t returning new.id",
    ] {
        assert!(nullable(q), "{q}");
    }
}

#[test]
fn a_column_that_shows_no_table_is_nullable() {
    let statement = Statement::parse("select id from t").unwrap();
    let description = description(&[], &[("id", Type::INT4, None)]);
    let signature = Signature::infer(&statement, &description, &NotNull::default());
    assert!(signature.columns[0].nullable);
}

proptest! {
    #[test]
    fn an_outer_join_is_seen_wherever_it_stands(
        before in "[a-z0-9_'\" ().,=%]{0,20}",
        kind in "(?i)(left|right|full)( outer)?",
        space in "[ \n\t]{1,3}",
        after in "[a-z0-9_'\" ().,=]{0,20}",
    ) {
        let q = format!("select id from t {before} {kind}{space}join u {after}");
        if Statement::parse(&q).is_ok() {
            prop_assert!(nullable(&q));
        }
    }
}
