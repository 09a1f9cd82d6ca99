//! Tests of relationships with keys of every kind.

use crate::fixture::Fixture;

#[tokio::test]
async fn composite_keys_and_null_in_a_part_of_them() {
    let setup = "create table p (a int, b text, c text, primary key (a, b));
        create table q (id int primary key, x int, y text, foreign key (x, y) references p);
        insert into p values (1, 'x', 'one'), (1, 'y', 'two'), (2, 'x', 'three');
        insert into q values (1, 1, 'x'), (2, 1, 'y'), (3, 1, null), (4, null, 'x'), (5, 1, 'x')";
    let fixture = Fixture::new("plan_composite", setup).await;
    let data = fixture
        .data(r#"p({"order": ["a", "b"]}) { c q({"order": ["id"]}) { id } }"#)
        .await;
    assert_eq!(
        data,
        r#"{"p":[{"c":"one","q":[{"id":"1"},{"id":"5"}]},{"c":"two","q":[{"id":"2"}]},{"c":"three","q":[]}]}"#
    );
    let data = fixture
        .data(r#"p({"order": ["a", "b"]}) { c q({"order": ["id desc"], "limit": 1}) { id } }"#)
        .await;
    assert_eq!(
        data,
        r#"{"p":[{"c":"one","q":[{"id":"5"}]},{"c":"two","q":[{"id":"2"}]},{"c":"three","q":[]}]}"#
    );
    let data = fixture
        .data(r#"q({"order": ["id"]}) { p { c q({"order": ["id"]}) { id } } }"#)
        .await;
    assert_eq!(
        data,
        concat!(
            r#"{"q":[{"p":{"c":"one","q":[{"id":"1"},{"id":"5"}]}},{"p":{"c":"two","q":[{"id":"2"}]}},"#,
            r#"{"p":null},{"p":null},{"p":{"c":"one","q":[{"id":"1"},{"id":"5"}]}}]}"#
        )
    );
    let data =
        fixture.data(r#"update.q({"where": {"id": {"lt": 2}}, "data": {"x": 2}}) { id p { c } }"#);
    let error = data.await;
    assert!(error.contains("three"), "{error}");
}

/// Some keys are equal although their bytes differ, and some have unusual texts.
#[tokio::test]
async fn equality_is_that_of_the_database() {
    let setup = r#"create collation nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
        create table n (k numeric primary key); create table n2 (id int, k numeric references n);
        insert into n values (1.0), (2); insert into n2 values (1, 1.000), (2, 2.0);
        create table c (k text collate nocase primary key); create table c2 (id int, k text collate nocase references c);
        insert into c values ('Abc'); insert into c2 values (1, 'aBC'), (2, 'ABC');
        create table b (k char(5) primary key); create table b2 (id int, k char(8) references b);
        insert into b values ('x'); insert into b2 values (1, 'x');
        create table i (k int8 primary key); create table i2 (id int, k int2 references i);
        insert into i values (5), (5000000000); insert into i2 values (1, 5);
        create table t (k text primary key); create table t2 (id int, k varchar(40) references t);
        insert into t values ('a"b\c{},NULL '), (''), ('NULL'), (E'line\nbreak ''$1'' é');
        insert into t2 select row_number() over (order by k collate "C"), k from t;
        create table u (k uuid primary key); create table u2 (id int, k uuid references u);
        insert into u values ('a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'); insert into u2 select 1, k from u;
        create table d (k timestamptz primary key); create table d2 (id int, k timestamptz references d);
        insert into d values ('0044-03-15 12:00:00.000001+00 BC'), ('infinity'); insert into d2 select row_number() over (), k from d;
        create domain pos as int check (value > 0);
        create table o (k pos primary key); create table o2 (id int, k int references o);
        insert into o values (3); insert into o2 values (1, 3)"#;
    let fixture = Fixture::new("plan_equality", setup).await;
    for (name, expected) in [
        ("n", 2),
        ("c", 2),
        ("b", 1),
        ("i", 1),
        ("t", 4),
        ("u", 1),
        ("d", 2),
        ("o", 1),
    ] {
        let data = fixture
            .data(&format!("{name} {{ {name}2 {{ id }} }}"))
            .await;
        assert_eq!(data.matches("id").count(), expected, "{name}: {data}");
        let data = fixture
            .data(&format!(r#"{name} {{ {name}2({{"limit": 9}}) {{ id }} }}"#))
            .await;
        assert_eq!(
            data.matches("id").count(),
            expected,
            "{name}, limited: {data}"
        );
        let data = fixture
            .data(&format!("{name}2 {{ id {name} {{ k {name}2 {{ id }} }} }}"))
            .await;
        assert_eq!(data.matches("null").count(), 0, "{name}2: {data}");
        let text = format!(
            r#"update.{name}2({{"where": {{"id": {{"gt": 0}}}}, "data": {{"id": 7}}}}) {{ id {name} {{ k }} }}"#
        );
        let back = fixture.data(&text).await;
        assert_eq!(
            back.matches(r#""k""#).count(),
            expected,
            "{name}2, written: {back}"
        );
    }
}

#[tokio::test]
async fn keys_in_a_circle() {
    let setup = "create table a (id int primary key, b_id int); create table b (id int primary key, a_id int references a);
        alter table a add foreign key (b_id) references b;
        insert into a values (1, null), (2, null); insert into b values (1, 1); update a set b_id = 1";
    let fixture = Fixture::new("plan_circle", setup).await;
    let data = fixture
        .data(r#"a({"order": ["id"]}) { id b { a { b { id } } } }"#)
        .await;
    let b = r#"{"a":{"b":{"id":"1"}}}"#;
    assert_eq!(
        data,
        format!(r#"{{"a":[{{"id":"1","b":{b}}},{{"id":"2","b":{b}}}]}}"#)
    );
}

/// For these keys no array of their own type can be used. They are tested alone and in combination.
#[tokio::test]
async fn arrays_and_composite_types_are_keys() {
    let setup = r#"create type en as enum ('a', 'b,c'); create domain dar as int[];
        create type "C p" as (a int, b text); create domain dcp as "C p";
        create table ia (k int[] primary key); create table ia2 (id int, k int[] references ia);
        insert into ia values ('{1,2}'), ('{{1,2},{3,4}}'), ('{}'), ('[0:1]={1,2}');
        create table ta (k text[] primary key); create table ta2 (id int, k text[] references ta);
        insert into ta values ('{a,"b,c","d\"\\",NULL}'), ('{NULL}');
        create table ea (k en[] primary key); create table ea2 (id int, k en[] references ea);
        insert into ea values ('{a,"b,c"}');
        create table da (k dar primary key); create table da2 (id int, k dar references da);
        insert into da values ('{1}'), ('{1,2}');
        create table dia (k dar primary key); create table dia2 (id int, k int[] references dia);
        insert into dia values ('{1}');
        create table cp (k "C p" primary key); create table cp2 (id int, k "C p" references cp);
        insert into cp values ('(1,"x,y")'), ('(,"a""b\\")');
        create table dc (k dcp primary key); create table dc2 (id int, k dcp references dc);
        insert into dc values ('(1,x)');
        create table ca (k "C p"[] primary key); create table ca2 (id int, k "C p"[] references ca);
        insert into ca values ('{"(1,x)",NULL}');
        create table mx (k int[], l "C p", m int, primary key (k, l, m));
        create table mx2 (id int, k int[], l "C p", m int, foreign key (k, l, m) references mx);
        insert into mx values ('{1,2}', '(1,x)', 1), ('{1,2}', '(1,x)', 2);
        insert into mx2 select row_number() over (), k, l, m from mx"#;
    let fixture = Fixture::new("plan_array_keys", setup).await;
    for (name, expected) in [
        ("ia", 4),
        ("ta", 2),
        ("ea", 1),
        ("da", 2),
        ("dia", 1),
        ("cp", 2),
        ("dc", 1),
        ("ca", 1),
        ("mx", 2),
    ] {
        if name != "mx" {
            let fill = format!("insert into {name}2 select row_number() over (), k from {name}");
            fixture.admin.batch_execute(&fill).await.unwrap();
        }
        for below in ["", r#"({"limit": 9})"#] {
            let list = format!("{name}2{below} {{ id }}");
            // The first two documents nest one list in another. In the third one, the parent row is
            // joined.
            for text in [
                format!("{name} {{ {list} }}"),
                format!(r#"{name}({{"limit": 9}}) {{ {list} }}"#),
                format!("{name}2 {{ {name} {{ {list} }} }}"),
            ] {
                let data = fixture.data(&text).await;
                assert_eq!(data.matches("id").count(), expected, "{text}: {data}");
            }
        }
        let text = format!(
            r#"update.{name}2({{"where": {{"id": {{"gt": 0}}}}, "data": {{"id": 7}}}}) {{ id {name} {{ k {name}2 {{ id }} }} }}"#
        );
        let back = fixture.data(&text).await;
        assert_eq!(back.matches(r#""k""#).count(), expected, "{text}: {back}");
    }
}
