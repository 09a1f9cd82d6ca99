//! Tests of the GraphQL forms of values.

use crate::fixture::Fixture;

const ZOO: &str = r#"create type mood as enum ('sad', 'o"k');
    create type pair as (a int, b text);
    create domain price as numeric(10, 2) check (value >= 0);
    create domain ints as int[];
    create table zoo (k bigint primary key, i2 int2, i8 int8, o oid, f4 real, f8 double precision, n numeric, b bool,
        t text, c char(4), bin bytea, u uuid, j json, jb jsonb, d date, tt time, tz timetz, ts timestamp, tst timestamptz,
        iv interval, mn money, ip inet, bt bit(3), m mood, pr pair, dm price, di ints,
        i8s int8[], f8s float8[], ivs interval[], prs pair[], ms mood[], js jsonb[],
        i8r int8range, nr numrange, mr int4multirange, p point, cr circle, pg polygon, pt path, ps point[],
        pgs polygon[], rs int4range[])"#;

async fn shown(fixture: &Fixture, sql: &str, fields: &str) -> (String, Vec<String>) {
    fixture
        .admin
        .batch_execute(&format!("delete from zoo; {sql}"))
        .await
        .unwrap();
    let response = fixture.run(&format!("zoo {{ {fields} }}")).await.unwrap();
    let field_errors = response.field_errors();
    let data = response
        .data
        .strip_prefix(r#"{"zoo":["#)
        .unwrap()
        .strip_suffix("]}")
        .unwrap();
    (data.to_owned(), field_errors)
}

#[tokio::test]
async fn every_type_has_its_form() {
    let fixture = Fixture::new("plan_values", ZOO).await;
    let (data, field_errors) = shown(
        &fixture,
        r#"insert into zoo values (9007199254740993, 7, -9223372036854775808, 4294967295, 1.5, 0.1, 123456789012345678901234567890.10, true,
            'a"\b', 'x', '\x00ff', 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11', '{"a" : 1}', '{"a": 1}', '0044-03-15 BC', '01:02:03.5', '01:02:03+02',
            'infinity', '2024-02-29 12:00:00+02', '1 year 2 days 03:04:05.5', 1234.5, '10.0.0.1/8', '101', 'o"k', '(1,"x y")', 7.5, '{1,2}',
            '{1,null,9007199254740993}', '{1.5,null}', '{1 day,null}', array[row(1,'z')::pair, null], '{sad,null}', array['{"a":1}'::jsonb, null],
            '[1,9007199254740993)', '(,1.50]', '{[1,3),[5,7)}', '(1,-2.5)', '<(1,2),3>', '((0,0),(1,1),(2,0))', '[(0,0),(1,1)]', '{"(1,2)",null}',
            array[polygon '((0,0),(1,1))'], '{"[1,3)",empty}')"#,
        "k i2 i8 o f4 f8 n b t c bin u j jb d tt tz ts tst iv mn ip bt m pr dm di i8s f8s ivs prs ms js i8r nr mr p cr pg pt ps rs",
    )
    .await;
    assert!(field_errors.is_empty(), "{field_errors:?}");
    let expected = concat!(
        r#"{"k":"9007199254740993","i2":7,"i8":"-9223372036854775808","o":"4294967295","f4":1.5,"f8":0.1,"#,
        r#""n":"123456789012345678901234567890.10","b":true,"t":"a\"\\b","c":"x   ","bin":"AP8=","#,
        r#""u":"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11","j":{"a" : 1},"jb":{"a": 1},"d":"0044-03-15 BC","tt":"01:02:03.5","#,
        r#""tz":"01:02:03+02:00","ts":"infinity","tst":"2024-02-29T10:00:00Z","iv":{"y":1,"m":0,"d":2,"h":3,"i":4,"s":5.5},"mn":"$1,234.50","#,
        r#""ip":"10.0.0.1/8","bt":"101","m":"o\"k","pr":{"a":1,"b":"x y"},"dm":"7.50","di":[1,2],"#,
        r#""i8s":["1",null,"9007199254740993"],"f8s":[1.5,null],"ivs":[{"y":0,"m":0,"d":1,"h":0,"i":0,"s":0},null],"prs":[{"a":1,"b":"z"},null],"ms":["sad",null],"#,
        r#""js":[{"a": 1},null],"#,
        r#""i8r":{"lower":"1","upper":"9007199254740993","lowerInclusive":true,"upperInclusive":false},"#,
        r#""nr":{"lower":null,"upper":"1.50","lowerInclusive":false,"upperInclusive":true},"mr":[{"lower":1,"upper":3,"lowerInclusive":true,"upperInclusive":false},{"lower":5,"upper":7,"lowerInclusive":true,"upperInclusive":false}],"#,
        r#""p":{"x":1,"y":-2.5},"cr":{"center":{"x":1,"y":2},"radius":3},"pg":[{"x":0,"y":0},{"x":1,"y":1},{"x":2,"y":0}],"#,
        r#""pt":{"open":true,"points":[{"x":0,"y":0},{"x":1,"y":1}]},"ps":[{"x":1,"y":2},null],"#,
        r#""rs":[{"lower":1,"upper":3,"lowerInclusive":true,"upperInclusive":false},"#,
        r#"{"lower":null,"upper":null,"lowerInclusive":false,"upperInclusive":false,"empty":true}]}"#,
    );
    assert_eq!(data, expected);
}

#[tokio::test]
async fn nulls_are_null_in_every_type() {
    let fixture = Fixture::new("plan_nulls", ZOO).await;
    let columns: Vec<_> = ZOO
        .split("create table zoo (")
        .nth(1)
        .unwrap()
        .split(", ")
        .collect();
    let names: Vec<_> = columns
        .iter()
        .map(|column| column.split_whitespace().next().unwrap())
        .collect();
    let (data, _) = shown(&fixture, "insert into zoo (k) values (1)", &names.join(" ")).await;
    let expected: Vec<_> = names[1..]
        .iter()
        .map(|name| format!(r#""{name}":null"#))
        .collect();
    assert_eq!(data, format!(r#"{{"k":"1",{}}}"#, expected.join(",")));
}

#[tokio::test]
async fn what_has_no_form_is_null_with_its_path() {
    let fixture = Fixture::new("plan_flaws", ZOO).await;
    let (data, field_errors) = shown(
        &fixture,
        "insert into zoo (k, f8, f4, f8s, i8s, p, ps, ivs, t) values
            (1, 'NaN', '-Infinity', '{1,NaN,Infinity}', '{{1,2},{3,4}}', '(NaN,1)', '{\"(1,2)\",\"(Infinity,0)\"}', '{{1 day},{2 days}}', 'kept')",
        "f8 same: f8 f4 f8s i8s p ps ivs t",
    )
    .await;
    assert_eq!(
        data,
        r#"{"f8":null,"same":null,"f4":null,"f8s":[1,null,null],"i8s":null,"p":null,"ps":[{"x":1,"y":2},null],"ivs":null,"t":"kept"}"#
    );
    assert_eq!(
        field_errors,
        [
            "zoo.0.f8",
            "zoo.0.same",
            "zoo.0.f4",
            "zoo.0.f8s.1",
            "zoo.0.f8s.2",
            "zoo.0.i8s",
            "zoo.0.p",
            "zoo.0.ps.1",
            "zoo.0.ivs"
        ]
    );
}

#[tokio::test]
async fn null_goes_up_from_values_that_may_not_be_null() {
    let setup = "create table a (id int primary key, f float8 not null);
        create table b (id int primary key, a_id int references a, g float8);
        create table c (id int primary key, b_id int references b, h float8 not null, hs float8[] not null);
        insert into a values (1, 'NaN'), (2, 2); insert into b values (1, 1, 'NaN'), (2, 2, 0);
        insert into c values (1, 1, 'NaN', '{}'), (2, 1, 1, '{NaN}'), (3, 2, 1, '{{1}}')";
    let fixture = Fixture::new("plan_up", setup).await;
    let response = fixture
        .run(r#"c({"order": ["id"]}) { id h hs }"#)
        .await
        .unwrap();
    assert_eq!(
        response.data,
        r#"{"c":[null,{"id":"2","h":1,"hs":[null]},null]}"#
    );
    assert_eq!(response.field_errors(), ["c.0.h", "c.1.hs.0", "c.2.hs"]);
    let response = fixture
        .run(r#"b({"order": ["id"]}) { before: id a { id f b { id } } g c({"order": ["id"]}) { h } after: id }"#)
        .await
        .unwrap();
    assert_eq!(
        response.data,
        concat!(
            r#"{"b":[{"before":"1","a":null,"g":null,"c":[null,{"h":1}],"after":"1"},"#,
            r#"{"before":"2","a":{"id":"2","f":2,"b":[{"id":"2"}]},"g":0,"c":[{"h":1}],"after":"2"}]}"#
        )
    );
    let mut field_errors = response.field_errors();
    field_errors.sort();
    assert_eq!(field_errors, ["b.0.a.f", "b.0.c.0.h", "b.0.g"]);
}

#[tokio::test]
async fn parts_of_values_can_be_selected() {
    let fixture = Fixture::new("plan_parts", ZOO).await;
    let (data, field_errors) = shown(
        &fixture,
        "insert into zoo (k, i8r, nr, p, cr, pg, pt, ps, pgs, rs) values (1, '[1,9007199254740993)', 'empty', '(1,2)', '<(3,4),NaN>',
            '((0,1),(2,3))', '((0,0),(1,1))', '{\"(1,NaN)\",\"(3,4)\",null}', array[polygon '((0,1),(2,3))'], '{\"[1,3)\",empty}')",
        "i8r { up: upper lower empty __typename } nr { empty lower } p { y x again: x } cr { center { y } } pg { points: itself { x } n: __typename }
         pt { open points { x y } } ps { x y } pgs { points: itself { y } } rs { lower }",
    )
    .await;
    assert_eq!(
        data,
        concat!(
            r#"{"i8r":{"up":"9007199254740993","lower":"1","empty":false,"__typename":"Value"},"nr":{"empty":true,"lower":null},"#,
            r#""p":{"y":2,"x":1,"again":1},"cr":{"center":{"y":4}},"pg":{"points":[{"x":0},{"x":2}],"n":"Value"},"#,
            r#""pt":{"open":false,"points":[{"x":0,"y":0},{"x":1,"y":1}]},"ps":[null,{"x":3,"y":4},null],"#,
            r#""pgs":[{"points":[{"y":1},{"y":3}]}],"rs":[{"lower":1},{"lower":null}]}"#
        )
    );
    assert_eq!(field_errors, ["zoo.0.ps.0.y"]);
    let (data, field_errors) = shown(
        &fixture,
        "insert into zoo (k, cr) values (1, '<(NaN,4),1>')",
        "k cr { center { x } radius }",
    )
    .await;
    assert_eq!(
        (&*data, &field_errors[..]),
        (
            r#"{"k":"1","cr":null}"#,
            &["zoo.0.cr.center.x".to_owned()][..]
        )
    );
}

#[tokio::test]
async fn primary_keys_are_ids_of_every_type() {
    for (at, (r#type, value, expected)) in [
        ("int", "-5", "-5"),
        ("boolean", "true", "true"),
        ("numeric", "1.50", "1.50"),
        ("float8", "'NaN'", "NaN"),
        (
            "uuid",
            "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'",
            "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
        ),
        (
            "timestamptz",
            "'2024-01-02 03:04:05Z'",
            "2024-01-02T03:04:05Z",
        ),
        ("interval", "'1 day'", "1 day"),
        ("int[]", "'{1,{2}}'::text::int[]", ""),
        ("int4range", "'[1,3)'", "[1,3)"),
        ("jsonb", "'{\"a\": 1}'", "{\\\"a\\\": 1}"),
        ("inet", "'::1'", "::1"),
        ("oid", "7", "7"),
    ]
    .into_iter()
    .filter(|(_, _, expected)| !expected.is_empty())
    .enumerate()
    {
        let setup =
            format!("create table t (id {type} primary key); insert into t values ({value})");
        let fixture = Fixture::new(&format!("plan_id_{at}"), &setup).await;
        assert_eq!(
            fixture.data("t { id }").await,
            format!(r#"{{"t":[{{"id":"{expected}"}}]}}"#),
            "{type}"
        );
    }
}
