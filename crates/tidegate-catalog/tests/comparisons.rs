//! Tests of which comparisons the types of extensions support.

use crate::fixture::Fixture;

#[tokio::test]
async fn a_type_has_the_operators_of_its_owner() {
    let fixture = Fixture::new(
        "comparisons",
        "create schema ext; grant create, usage on schema ext to public;
         create extension hstore schema ext; create extension ltree schema ext;
         create role comparisons_other; set role comparisons_other;
         create function ext.hostile(ext.lquery, ext.lquery) returns bool
             language sql as 'select true';
         create operator ext.= (leftarg = ext.lquery, rightarg = ext.lquery, function = ext.hostile);
         reset role;
         create domain ext.paths as ext.ltree[]; create type ext.pair as (a ext.ltree, b ext.hstore);
         create table t (h ext.hstore, l ext.ltree, q ext.lquery, p ext.paths, c ext.pair, i int[])",
    )
    .await;
    let schema = fixture.public().await;
    let relation = &schema[schema.find("t").unwrap()];
    let reported = |name: &str| -> Vec<(String, bool, bool)> {
        let column = relation.column(relation.find_column(name).unwrap());
        let known = column.comparisons.iter();
        known
            .map(|known| (known.operators.join(" "), known.sorts, known.groups))
            .collect()
    };
    let hstore = ("<> =".to_owned(), true, true);
    let ltree = ("< <= <> = > >=".to_owned(), true, true);
    assert_eq!(reported("h"), std::slice::from_ref(&hstore));
    assert_eq!(reported("l"), std::slice::from_ref(&ltree));
    assert_eq!(reported("q"), [(String::new(), false, false)]);
    assert_eq!(reported("p"), std::slice::from_ref(&ltree));
    assert_eq!(reported("c"), [ltree, hstore]);
    assert_eq!(reported("i"), []);
}
