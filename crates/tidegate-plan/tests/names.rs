//! Tests of unusual names, unusual relations, and hostile texts in all places.

use crate::fixture::Fixture;

const HOSTILE: &str = "'; drop table t; --\\\"$1$$/*";

#[tokio::test]
async fn hostile_texts_are_names_and_values_and_nothing_else() {
    let name = HOSTILE.replace('"', "\"\"");
    let setup = format!(
        r#"create table t (id int);
        create table "{name}" ("{name}" int primary key, "select" text, "__typename" text, "1st" text, "Ü" text);
        create table "child of" ("{name}" int references "{name}", v text);
        insert into "{name}" values (1, 'x', 'y', 'z', 'ü'); insert into "child of" values (1, 'c')"#
    );
    let fixture = Fixture::new("plan_hostile", &setup).await;
    let child = fixture.schema.find("child of").unwrap();
    let back = &fixture.schema[child].relationships[0].name;
    let text = format!(
        r#"key: `{HOSTILE}` {{ `k'"\`: `{HOSTILE}` `select` `1st` `Ü` }}
        `child of`({{"where": {{"v": "c"}}}}) {{ v up: `{back}` {{ i: `{HOSTILE}` }} }}"#
    );
    let data = fixture.data(&text).await;
    assert_eq!(
        data,
        r#"{"key":[{"k'\"\\":"1","select":"x","1st":"z","Ü":"ü"}],"child of":[{"v":"c","up":{"i":"1"}}]}"#
    );
    let value = serde_json::Value::String(HOSTILE.to_owned());
    for text in [
        format!(r#"`child of`({{"where": {{"v": {value}}}}}) {{ v }}"#),
        format!(r#"`child of`({{"where": {{"v": {{"in": [{value}, "c"]}}}}}}) {{ v }}"#),
        format!(
            r#"update.`child of`({{"where": {{"v": {{"contains": {value}}}}}, "data": {{"v": {value}}}}}) {{ v }}"#
        ),
        format!(
            r#"insert.`child of`({{"objects": [{{"v": {value}}}, {{"v": {value}}}]}}) {{ v }}"#
        ),
        format!(r#"insert.`child of`({{"data": {{"v": {value}}}}}) {{ v }}"#),
        format!(r#"delete.`child of`({{"where": {{"v": {value}}}}}) {{ v }}"#),
    ] {
        let response = fixture.run(&text).await.unwrap();
        let parsed: serde_json::Value = serde_json::from_str(&response.data).unwrap();
        for row in parsed["child of"].as_array().unwrap() {
            assert!(row["v"] == value || row["v"] == "c", "{text}: {row}");
        }
        assert!(
            !response.texts.concat().contains("drop table t; --\\\\"),
            "{:?}",
            response.texts
        );
    }
    assert_eq!(
        fixture.sql("select count(*)::text from t").await,
        "0",
        "the table is there"
    );
}

#[tokio::test]
async fn relations_without_a_key_views_and_tables_without_columns() {
    let setup = "create table bag (a int, b text); insert into bag values (2, 'x'), (1, 'y'), (2, 'x');
        create view v as select a, count(*) as n from bag group by a;
        create materialized view m as select 1 as one;
        create table void (); insert into void default values; insert into void default values;
        create table part (id int, k int, primary key (id, k)) partition by list (k);
        create table part1 partition of part for values in (1); create table part2 partition of part for values in (2);
        insert into part values (1, 2), (2, 1)";
    let fixture = Fixture::new("plan_odd", setup).await;
    let data = fixture
        .data(r#"bag({"limit": 2, "order": ["b desc"]}) { a } v({"order": ["a"]}) { a n } m { one } void { __typename } part({"limit": 5}) { id k }"#)
        .await;
    assert_eq!(
        data,
        concat!(
            r#"{"bag":[{"a":1},{"a":2}],"v":[{"a":1,"n":"1"},{"a":2,"n":"2"}],"m":[{"one":1}],"#,
            r#""void":[{"__typename":"Void"},{"__typename":"Void"}],"part":[{"id":"1","k":"2"},{"id":"2","k":"1"}]}"#
        )
    );
    let data = fixture
        .data(r#"insert.part({"objects": [{"id": 3, "k": 2}, {"id": 3, "k": 1}]}) { id k }"#)
        .await;
    assert_eq!(data, r#"{"part":[{"id":"3","k":"2"},{"id":"3","k":"1"}]}"#);
    let data = fixture
        .data(r#"insert.void({"objects": [{}, {}]}) { __typename }"#)
        .await;
    assert_eq!(
        data,
        r#"{"void":[{"__typename":"Void"},{"__typename":"Void"}]}"#
    );
}

#[tokio::test]
async fn a_table_of_1600_columns() {
    let columns: Vec<_> = (0..1_600).map(|n| format!("c{n} int2")).collect();
    let fixture = Fixture::new(
        "plan_wide",
        &format!(
            "create table wide ({}); insert into wide (c0, c1599) values (1, 2)",
            columns.join(",")
        ),
    )
    .await;
    let names: Vec<_> = (0..1_600).map(|n| format!("c{n}")).collect();
    let data = fixture
        .data(&format!("wide {{ {} }}", names.join(" ")))
        .await;
    assert!(
        data.starts_with(r#"{"wide":[{"c0":1,"c1":null,"#),
        "{}",
        &data[..60]
    );
    assert!(data.ends_with(r#""c1598":null,"c1599":2}]}"#));
    let values: Vec<_> = (0..1_600).map(|n| format!(r#""c{n}": {n}"#)).collect();
    let object = format!("{{{}}}", values.join(","));
    let text = format!(
        r#"insert.wide({{"data": {object}}}) {{ c1599 }} two: insert.wide({{"objects": [{object}, {object}]}}) {{ c7 }}"#
    );
    assert_eq!(
        fixture.data(&text).await,
        r#"{"wide":[{"c1599":1599}],"two":[{"c7":7},{"c7":7}]}"#
    );
}

#[tokio::test]
async fn types_of_extensions_use_their_own_operators() {
    let setup = "create schema ext; create extension if not exists citext schema ext;
        create table p (k ext.citext primary key); create table q (id int, k ext.citext references p);
        insert into p values ('Abc'); insert into q values (1, 'aBC')";
    let fixture = Fixture::new("plan_citext", setup).await;
    fixture
        .admin
        .batch_execute("grant usage on schema ext to plan_citext")
        .await
        .unwrap();
    assert_eq!(
        fixture.data("p { q { id } }").await,
        r#"{"p":[{"q":[{"id":1}]}]}"#
    );
    assert_eq!(
        fixture.data("q { p { k } }").await,
        r#"{"q":[{"p":{"k":"Abc"}}]}"#
    );
    let data = fixture
        .data(r#"insert.p({"objects": [{"k": "x"}, {"k": "y"}]}) { k q { id } }"#)
        .await;
    assert_eq!(data, r#"{"p":[{"k":"x","q":[]},{"k":"y","q":[]}]}"#);
}

#[tokio::test]
async fn what_a_role_may_not_is_refused_by_the_database() {
    let setup = "create table s (id int primary key, secret text, open text); insert into s values (1, 'x', 'y');
        create table locked (id int)";
    let fixture = Fixture::new("plan_rights", setup).await;
    let revoke = "revoke all on s, locked from plan_rights; grant select (id, open), insert (id, open), update (open) on s to plan_rights";
    fixture.admin.batch_execute(revoke).await.unwrap();
    assert_eq!(
        fixture.data("s { id open }").await,
        r#"{"s":[{"id":"1","open":"y"}]}"#
    );
    assert_eq!(
        fixture.data(r#"insert.s({"objects": [{"id": 2, "open": "z"}, {"id": 3, "open": "w"}]}) { open }"#).await,
        r#"{"s":[{"open":"z"},{"open":"w"}]}"#
    );
    assert_eq!(
        fixture
            .data(r#"update.s({"where": {"id": 3}, "data": {"open": null}}) { __typename }"#)
            .await,
        r#"{"s":[{"__typename":"S"}]}"#
    );
    for text in [
        "s { secret }",
        "locked { id }",
        r#"insert.s({"data": {"id": 4, "secret": "t"}}) { id }"#,
        r#"delete.s({"where": {"id": 1}}) { id }"#,
    ] {
        assert_eq!(
            fixture.refusal(text).await.sqlstate(),
            Some("42501"),
            "{text}"
        );
    }
}
