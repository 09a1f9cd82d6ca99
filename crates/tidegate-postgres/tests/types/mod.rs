//! User-defined types, and hints.

use tidegate_embedded::testing;
use tidegate_sql::{Error, InputError};
use tidegate_values::{TypeKind, WireFormat};

use crate::fixture::{Fixture, Sql};

const SETUP: &str = "create schema shapes; grant usage, create on schema shapes to public;
    create type mood as enum ('sad', 'ok', 'happy');
    create domain positive as int check (value > 0);
    create type pair as (a int, b text);
    create type nested as (p pair, ms mood[]);
    create type span as range (subtype = numeric);
    create type shapes.odd as enum ('x');
    create table t (m mood, p positive, c pair, n nested, s span, ms mood[]);
    grant all on t to public;
    insert into t values ('ok', 3, (1, 'x'), ((2, 'y'), '{sad,happy}'), '[1,2)', '{ok}')";

#[tokio::test]
async fn types_are_resolved_down_to_their_parts() {
    let fixture = Fixture::new("parts").await;
    fixture.admin.batch_execute(SETUP).await.unwrap();
    // The guest comes first, because its statement is unnamed while its types are looked up.
    for login in [fixture.guest(), fixture.owner()] {
        let query = "select m, p, c, n, s, ms, span(1, 2) as f, array[c] as cs from t";
        let rows = Sql::new(query).run(&fixture, &login).await.unwrap();
        let kind = |index: usize| rows.columns[index].r#type.kind().clone();
        assert!(matches!(kind(0), TypeKind::Enum(labels) if labels == ["sad", "ok", "happy"]));
        assert_eq!(rows.columns[1].r#type.name(), "int4");
        let TypeKind::Composite(fields) = kind(2) else {
            panic!("{:?}", kind(2))
        };
        assert_eq!((fields[1].name(), fields[1].type_().name()), ("b", "text"));
        let TypeKind::Composite(fields) = kind(3) else {
            panic!("{:?}", kind(3))
        };
        assert!(matches!(fields[0].type_().kind(), TypeKind::Composite(inner) if inner.len() == 2));
        assert!(matches!(fields[1].type_().kind(), TypeKind::Array(inner)
            if matches!(inner.kind(), TypeKind::Enum(_))));
        assert!(matches!(kind(4), TypeKind::Range(sub) if sub.name() == "numeric"));
        assert!(matches!(kind(5), TypeKind::Array(_)));
        assert!(matches!(kind(7), TypeKind::Array(inner)
            if matches!(inner.kind(), TypeKind::Composite(_))));
        assert_eq!(rows.values[0][2], r#"{"a":1,"b":"x"}"#);
        assert_eq!(
            rows.values[0][3],
            r#"{"p":{"a":2,"b":"y"},"ms":["sad","happy"]}"#
        );
    }
}

#[tokio::test]
async fn a_multirange_of_a_type_of_ones_own_is_known() {
    // PostgreSQL 13 has no multiranges.
    if testing::cluster().version().major < 14 {
        return;
    }
    let fixture = Fixture::new("multirange").await;
    fixture.admin.batch_execute(SETUP).await.unwrap();
    let rows = Sql::new("select span_multirange(span(1, 2)) as m")
        .run(&fixture, &fixture.owner())
        .await;
    let kind = rows.unwrap().columns[0].r#type.kind().clone();
    assert!(matches!(kind, TypeKind::Multirange(sub) if sub.name() == "numeric"));
}

#[tokio::test]
async fn a_composite_type_that_changes_is_seen_at_once_when_this_service_changes_it() {
    let fixture = Fixture::new("changes").await;
    let owner = fixture.owner();
    Sql::new("create type pair as (a int)")
        .run(&fixture, &owner)
        .await
        .unwrap();
    let query = || Sql::new("select null::pair as p");
    let attributes = async || {
        let rows = query().run(&fixture, &owner).await.unwrap();
        match rows.columns[0].r#type.kind() {
            TypeKind::Composite(fields) => fields.len(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(attributes().await, 1);
    Sql::new("alter type pair add attribute b text")
        .run(&fixture, &owner)
        .await
        .unwrap();
    assert_eq!(attributes().await, 2);
}

#[tokio::test]
async fn hints_are_names_as_postgresql_reads_them() {
    let fixture = Fixture::new("hints").await;
    fixture.admin.batch_execute(SETUP).await.unwrap();
    let owner = fixture.owner();
    for (hint, value, expected) in [
        ("int4", "1", "integer"),
        ("integer", "1", "integer"),
        ("double precision", "1", "double precision"),
        (
            "timestamp with time zone",
            r#""2020-01-01""#,
            "timestamp with time zone",
        ),
        ("int4[]", "[1]", "integer[]"),
        ("_int4", "[1]", "integer[]"),
        ("varchar(2)", r#""longer""#, "character varying"),
        ("mood", r#""ok""#, "mood"),
        ("public.mood[]", r#"["ok"]"#, "mood[]"),
        ("shapes.odd", r#""x""#, "shapes.odd"),
        ("positive", "4", "positive"),
        ("pair", r#"{"a":1,"b":"x"}"#, "pair"),
    ] {
        let query = Sql::new("select pg_typeof(:v)::text")
            .hint(hint)
            .set([value]);
        assert_eq!(
            query.value(&fixture, &owner).await,
            format!("\"{expected}\""),
            "{hint}"
        );
    }
}

#[tokio::test]
async fn a_hint_that_is_no_type_is_named() {
    let fixture = Fixture::new("no_type").await;
    for login in [fixture.owner(), fixture.guest()] {
        for hint in [
            "nonsense",
            "int4; drop table t",
            "",
            "no.such.type",
            "record",
            "'x'",
            "a\0b",
        ] {
            let query = Sql::new("select :value").hint(hint).set(["1"]);
            let error = query.run(&fixture, &login).await.unwrap_err();
            assert!(
                matches!(&error, Error::Input(InputError::UnknownHint { name, hint: named })
                    if name == "value" && named == hint),
                "{hint}: {error:?}"
            );
        }
        let text = "select count(*) from pg_prepared_statements where statement like '%regtype%'
            and statement not like '%select count%'";
        assert_eq!(Sql::new(text).value(&fixture, &login).await, "0");
    }
}

#[tokio::test]
async fn a_hint_follows_the_roles_search_path_and_its_changes() {
    let fixture = Fixture::new("hint_path").await;
    let owner = fixture.owner();
    let odd = || {
        Sql::new("select pg_typeof(:v)::text")
            .hint("odd")
            .set([r#""x""#])
    };
    assert!(odd().run(&fixture, &owner).await.is_err());
    Sql::new("create type odd as enum ('x')")
        .run(&fixture, &owner)
        .await
        .unwrap();
    assert_eq!(odd().value(&fixture, &owner).await, r#""odd""#);
    Sql::new("drop type odd")
        .run(&fixture, &owner)
        .await
        .unwrap();
    assert!(odd().run(&fixture, &owner).await.is_err());
}

#[tokio::test]
async fn what_we_do_not_decode_comes_as_text() {
    let fixture = Fixture::new("as_text").await;
    let query = "select '1.5'::money as m, 'a b'::tsvector as v, 'x'::name as n";
    let rows = Sql::new(query)
        .run(&fixture, &fixture.owner())
        .await
        .unwrap();
    assert_eq!(rows.columns[1].format, WireFormat::Text);
    assert_eq!(rows.values[0][1], r#""'a' 'b'""#);
}

#[tokio::test]
async fn a_column_shows_its_origin() {
    let fixture = Fixture::new("origin").await;
    fixture.admin.batch_execute(SETUP).await.unwrap();
    let rows = Sql::new("select p, p + 1 as q from t")
        .run(&fixture, &fixture.owner())
        .await
        .unwrap();
    assert_eq!(
        rows.columns[0].origin.map(|(_, attribute)| attribute),
        Some(2)
    );
    assert_eq!(rows.columns[1].origin, None);
}

#[tokio::test]
async fn an_unreadable_value_is_distinguished_from_a_failed_statement() {
    let fixture = Fixture::new("unread").await;
    let setup = "create domain even as int check (value % 2 = 0);
        create table t (a int); grant all on t to public";
    fixture.admin.batch_execute(setup).await.unwrap();
    let cases = [
        ("select :a::int", r#""x""#, "22P02", true),
        ("select :a::int2", "99999", "22003", true),
        ("select :a::date", r#""2000-02-31""#, "22008", true),
        ("select :a::date", r#""yesterday-ish""#, "22007", true),
        ("select :a::even", "3", "23514", true),
        ("insert into t values (:a)", r#""x""#, "22P02", true),
        ("select 1 / :a::int", "0", "22012", false),
        ("select :a::text::int", r#""$1""#, "22P02", false),
        (
            "select :a::text::int from pg_class",
            r#""x""#,
            "22P02",
            false,
        ),
        (
            "insert into t values (:a::text::int)",
            r#""x""#,
            "22P02",
            false,
        ),
    ];
    for login in [fixture.owner(), fixture.guest()] {
        for (text, value, sqlstate, unread) in cases {
            // In the second round the description is cached.
            for _ in 0..2 {
                let good = match text {
                    _ if text.contains("date") => r#""2000-01-01""#,
                    _ => "2",
                };
                let query = Sql::new(text).set([good]).set([value]);
                let error = query.run(&fixture, &login).await.unwrap_err();
                let Error::Rejected(rejection) = error else {
                    panic!("{text}: {error:?}")
                };
                assert_eq!(rejection.sqlstate, sqlstate, "{text}");
                // PostgreSQL 13 does not report which value it could not read.
                let told = unread && testing::cluster().version().major >= 14;
                let place = told.then_some("params[1].a");
                assert_eq!(rejection.place.as_deref(), place, "{text}");
            }
        }
    }
}
