//! Reading and binding statements.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::value::RawValue;
use tidegate_sql::datetime::Zone;
use tidegate_sql::statement::{Kind, Trust};
use tidegate_sql::{BoundStatement, InputError, Parameter, Params, Statement, TypeHint};

fn read(q: &str) -> Statement {
    Statement::parse(q).unwrap_or_else(|error| panic!("{q}: {error}"))
}

/// The text for PostgreSQL and the placeholders.
fn check(q: &str, text: &str, placeholders: &[&str]) {
    let statement = read(q);
    assert_eq!(statement.text(), text, "{q}");
    assert_eq!(statement.placeholders(), placeholders, "{q}");
}

fn check_unchanged(q: &str) {
    check(q, q, &[]);
}

fn refused(q: &str) -> InputError {
    match Statement::parse(q) {
        Err(error) => error,
        Ok(statement) => panic!("{q} was read as {statement:?}"),
    }
}

fn unreadable(q: &str, at: usize) {
    match refused(q) {
        InputError::UnreadableStatement { position, .. } => assert_eq!(position, at, "{q}"),
        other => panic!("{q}: {other}"),
    }
}

#[test]
fn placeholders_become_numbers_in_the_order_of_first_use() {
    check("select :a", "select $1", &["a"]);
    check("select :b, :a, :b", "select $1, $2, $1", &["b", "a"]);
    check(
        "select :a::int, :a ::int",
        "select $1::int, $1 ::int",
        &["a"],
    );
    check("select :_x1+:Y_2", "select $1+$2", &["_x1", "Y_2"]);
    check(
        "select a from t where b=:b and(c=:c)",
        "select a from t where b=$1 and(c=$2)",
        &["b", "c"],
    );
    check(
        "select meta ? :key from t",
        "select meta ? $1 from t",
        &["key"],
    );
    check(
        "select meta ?:key, d @>:d",
        "select meta ?$1, d @>$2",
        &["key", "d"],
    );
    check(
        "select f(a=>:a, b:=:b)",
        "select f(a=>$1, b:=$2)",
        &["a", "b"],
    );
    check(
        "select case when :a then :b else :c end",
        "select case when $1 then $2 else $3 end",
        &["a", "b", "c"],
    );
    check("select 'é', :a", "select 'é', $1", &["a"]);
    check("select (:a)::text", "select ($1)::text", &["a"]);
    check(
        "insert into t values (:a,:b) returning id",
        "insert into t values ($1,$2) returning id",
        &["a", "b"],
    );
    check("select ::a", "select ::a", &[]);
}

#[test]
fn a_colon_that_begins_no_name_stays() {
    check_unchanged("select a::int, b :: text, '1'::int8");
    check_unchanged("select f(a := 1)");
    check_unchanged("select 1:2");
    check_unchanged("select : a");
    check_unchanged("select :1");
    check_unchanged("select :é");
}

#[test]
fn a_colon_behind_an_operand_in_brackets_is_a_slice() {
    check_unchanged("select x[1:2], x[a:b], x[a :b], x[1:n]");
    check_unchanged("select x[:2], x[2:], x[:], x[f(1):n], x[y[1]:n]");
    check_unchanged("select x[\"a\":b], x[case when true then 1 end:n]");
    check(
        "select x[(:lo):(:hi)]",
        "select x[($1):($2)]",
        &["lo", "hi"],
    );
    check("select x[:lo:2]", "select x[$1:2]", &["lo"]);
    check("select x[:lo:hi]", "select x[$1:hi]", &["lo"]);
    check("select x[:lo::int:hi]", "select x[$1::int:hi]", &["lo"]);
    check("select x[1: :hi]", "select x[1: $1]", &["hi"]);
    check("select array[:a,:b]", "select array[$1,$2]", &["a", "b"]);
    check(
        "select array[1,:a::int, 2 +:b]",
        "select array[1,$1::int, 2 +$2]",
        &["a", "b"],
    );
    check(
        "select array[case when :a then :b else :c end, f(:d)]",
        "select array[case when $1 then $2 else $3 end, f($4)]",
        &["a", "b", "c", "d"],
    );
    check(
        "select x[f(a, :b)], (:c)",
        "select x[f(a, $1)], ($2)",
        &["b", "c"],
    );
}

#[test]
fn what_is_quoted_is_not_read() {
    check_unchanged("select ':a', 'it''s :a', ''");
    check_unchanged(r"select 'ends with a backslash \', ':a'");
    check_unchanged(r"select E'it\'s :a', e'\\', ':a', E'x'':a'");
    check_unchanged("select E'a'\n  '\\' :a'");
    check_unchanged("select E'a' -- it's a comment\n -- and one more\n '\\' :a'");
    check_unchanged(r"select U&'\0061:a', u&'it''s :a'");
    check_unchanged(r#"select U&"\0061:a", "a:b", "say "":a""""#);
    check_unchanged("select B'01', b':a', X'1F', x':a', N':a'");
    check_unchanged("select $$ :a ' $$, $tag$ :a $$ $tag $tag$, $_é1$:a$_é1$");
    check_unchanged("select a$$b, c$x$, d$1 from t");
    check_unchanged("select 1 -- :a '");
    check_unchanged("select 1 -- :a\r, 2");
    check_unchanged("select /* :a ' /* :b */ \" */ 1");
    check_unchanged("select /**/ 1 /* /*/ */ */");
    check_unchanged("select 2 */* :a */ 3, 2 /-- :a\n 3");
    check("select E'\\\\':a", "select E'\\\\'$1", &["a"]);
    check("select E'a' '\\':a", "select E'a' '\\'$1", &["a"]);
    check("select fe'a\\':a", "select fe'a\\'$1", &["a"]);
    check("select a$b:c", "select a$b $1", &["c"]);
}

#[test]
fn a_number_never_melts_into_a_word_before_it() {
    check("select a:b", "select a $1", &["b"]);
    check("select 1:b", "select 1 $1", &["b"]);
    check("select é:b", "select é $1", &["b"]);
    check("select \"a\":b", "select \"a\"$1", &["b"]);
}

#[test]
fn an_encoded_plus_is_a_plus_outside_of_quotes() {
    check("select 1 %2B 2", "select 1 + 2", &[]);
    check(
        "select a%2Bb, 1%2B1, :a%2B:b",
        "select a+b, 1+1, $1+$2",
        &["a", "b"],
    );
    check("select 1 %2B%2B 2", "select 1 ++ 2", &[]);
    check("select 5%%2B1", "select 5%+1", &[]);
    check_unchanged("select '50%2B', \"a%2B\", $$%2B$$, E'%2B' /* %2B */ -- %2B");
    check_unchanged("select a like '%ad%', 5%2, 5%2b, '%20', 7%20");
}

#[test]
fn one_statement_may_end_with_one_semicolon() {
    check_unchanged("select 1;");
    check_unchanged("select 1 ; -- done ;\n /* ; */ ");
    check_unchanged("select ';', \";\", $$;$$");
    check_unchanged(
        "create rule r as on insert to t do also (insert into a values (1); insert into b values (2))",
    );
    check_unchanged(
        "create function f() returns int begin atomic select 1; \
         select case when true then 2 end; select x.end from x; end;",
    );
    check_unchanged("do $$ begin perform 1; perform 2; end $$");
    for (q, at) in [
        ("select 1; select 2", 9),
        ("select 'é'; select 2", 11),
        ("select 1;;", 9),
        ("; select 1", 1),
        (
            "create function f() returns int begin atomic select 1; end; select 2",
            59,
        ),
        ("create table atomic (a int); select 1", 28),
        ("select 1; begin atomic; end", 9),
    ] {
        assert_eq!(
            refused(q),
            InputError::SeveralStatements { position: at },
            "{q}"
        );
    }
}

#[test]
fn nothing_is_no_statement() {
    for q in [
        "",
        "  \n\t",
        "-- comment",
        "/* a /* b */ */",
        ";",
        " ; -- x",
    ] {
        assert_eq!(refused(q), InputError::EmptyStatement, "{q:?}");
    }
}

#[test]
fn what_has_no_end_is_named_with_its_position() {
    unreadable("select 'abc", 8);
    unreadable("select 'é', 'abc", 13);
    unreadable("select 'abc''", 8);
    unreadable(r"select E'abc\'", 8);
    unreadable("select E'abc\\", 8);
    unreadable("select E'a'\n'b", 8);
    unreadable("select \"abc", 8);
    unreadable("select U&'abc", 8);
    unreadable("select $$abc$", 8);
    unreadable("select $a$abc$$", 8);
    unreadable("select /* /* */", 8);
    unreadable("select \0", 8);
    unreadable("select 'a\0'", 10);
    unreadable("select 1, $1", 11);
    unreadable("select :grö", 11);
    unreadable("select :a$b", 10);
    let error = refused("select 1, $1").to_string();
    assert!(error.contains(":name"), "{error}");
}

#[test]
fn positions_are_those_of_the_callers_text() {
    let statement = read("select é, :first_name, 1 %2B x, :b, nowhere");
    assert_eq!(statement.text(), "select é, $1, 1 + x, $2, nowhere");
    let position = |text: &str, needle: &str| {
        u32::try_from(text.split(needle).next().unwrap().chars().count() + 1).unwrap()
    };
    for (rewritten, callers) in [
        ("é", "é"),
        ("$1", ":first"),
        ("+", "%2B"),
        ("x", "x"),
        ("$2", ":b"),
        ("nowhere", "nowhere"),
    ] {
        let from = position(statement.text(), rewritten);
        let to = position("select é, :first_name, 1 %2B x, :b, nowhere", callers);
        assert_eq!(statement.caller_position(from), to, "{rewritten}");
    }
    let end = u32::try_from(statement.text().chars().count() + 1).unwrap();
    assert_eq!(statement.caller_position(end), 44);
    assert_eq!(read("select a:b").caller_position(10), 9);
    assert_eq!(read("select 1").caller_position(3), 3);
}

#[test]
fn messages_call_placeholders_by_name() {
    let statement = read("select :a, :b_1, :c, :d, :e, :f, :g, :h, :i, :last");
    for (said, told) in [
        ("of parameter $1", "of parameter :a"),
        ("at or near \"$2\"", "at or near \":b_1\""),
        ("$10 and $1", ":last and :a"),
        (
            "$0, $11, $, $x, $99999999999999999999",
            "$0, $11, $, $x, $99999999999999999999",
        ),
        ("é$3é", "é:cé"),
        ("", ""),
    ] {
        assert_eq!(statement.caller_message(said), told);
    }
}

#[test]
fn the_first_keyword_decides_the_kind() {
    for (q, kind) in [
        ("select 1", Kind::Read),
        ("SELECT 1", Kind::Read),
        ("-- x\n /* y */ select 1", Kind::Read),
        ("(select 1) union (select 2)", Kind::Read),
        ("values (1)", Kind::Read),
        ("table t", Kind::Read),
        ("show search_path", Kind::Read),
        ("select 1 from t for update", Kind::Read),
        ("(select 1 from t) for update skip locked", Kind::Read),
        ("select 1 into t", Kind::Other),
        ("select 1 as into", Kind::Read),
        ("explain select 1", Kind::Read),
        ("explain insert into t values (1)", Kind::Read),
        ("explain analyze select 1", Kind::Read),
        ("explain (costs off) (select 1)", Kind::Read),
        ("explain ((select 1))", Kind::Read),
        (
            "explain analyze verbose insert into t values (1)",
            Kind::Other,
        ),
        ("explain (costs, analyze) delete from t", Kind::Other),
        ("insert into t values (1)", Kind::Write),
        ("update t set a = 1", Kind::Write),
        ("delete from t", Kind::Write),
        (
            "merge into t using u on true when matched then delete",
            Kind::Write,
        ),
        ("with a as (select 1) select * from a", Kind::Read),
        (
            "with a as (select 1) select * from a for update of a",
            Kind::Read,
        ),
        (
            "with a as (select 1 for no key update nowait) select * from a",
            Kind::Read,
        ),
        (
            "with a as (insert into t values (1) returning *) select * from a",
            Kind::Write,
        ),
        (
            "with a as not materialized (delete from t returning *) table a",
            Kind::Write,
        ),
        ("with a as (update t set a = 1) select 1", Kind::Write),
        (
            "with a as (select 1) insert into t select * from a",
            Kind::Write,
        ),
        ("with a as (select 1) update t set a = 1", Kind::Write),
        (
            "with recursive a as (select 1) cycle x set y using z update t set a = 1",
            Kind::Write,
        ),
        (
            "with a as (with b as (select 1) update t set a = 1) select 1",
            Kind::Write,
        ),
        ("with update as (select 1) select * from update", Kind::Read),
        ("do $$begin end$$", Kind::Procedural),
        ("call p(1)", Kind::Procedural),
        ("create table t (a int)", Kind::Other),
        ("create table t as select 1", Kind::Other),
        ("vacuum", Kind::Other),
        ("set statement_timeout = 0", Kind::Other),
        ("set local work_mem = '1MB'", Kind::Other),
        ("set constraints all deferred", Kind::Other),
        ("reset all", Kind::Other),
        ("declare c cursor for select 1", Kind::Other),
        ("fetch all from c", Kind::Other),
        ("selectx", Kind::Other),
    ] {
        assert_eq!(read(q).kind(), kind, "{q}");
    }
}

#[test]
fn refused_kinds_are_named_with_a_reason() {
    for (q, expected) in [
        ("begin", "BEGIN"),
        ("/*c*/ Begin;", "BEGIN"),
        ("start transaction", "START TRANSACTION"),
        ("commit", "COMMIT"),
        ("commit and chain", "COMMIT"),
        ("commit prepared 'x'", "COMMIT PREPARED"),
        ("END", "END"),
        ("/*c*/ rollback", "ROLLBACK"),
        ("-- c\nrollback to a", "ROLLBACK"),
        ("rollback prepared 'x'", "ROLLBACK PREPARED"),
        ("abort", "ABORT"),
        ("savepoint a", "SAVEPOINT"),
        ("release a", "RELEASE SAVEPOINT"),
        ("prepare transaction 'x'", "PREPARE TRANSACTION"),
        ("prepare x as select 1", "PREPARE"),
        ("execute x", "EXECUTE"),
        ("explain execute x", "EXECUTE"),
        ("deallocate all", "DEALLOCATE"),
        ("copy t to stdout", "COPY"),
        ("copy (select 1) to program 'x'", "COPY"),
        ("listen a", "LISTEN"),
        ("unlisten *", "UNLISTEN"),
        ("notify a, 'b'", "NOTIFY"),
        ("discard all", "DISCARD"),
        ("load 'x'", "LOAD"),
        ("set role none", "SET ROLE"),
        ("set local role x", "SET ROLE"),
        ("set session role x", "SET ROLE"),
        ("set \"role\" = 'x'", "SET ROLE"),
        ("set role = 'x'", "SET ROLE"),
        ("reset role", "RESET ROLE"),
        ("set session authorization x", "SET SESSION AUTHORIZATION"),
        (
            "set local session authorization x",
            "SET SESSION AUTHORIZATION",
        ),
        (
            "set session_authorization to x",
            "SET SESSION AUTHORIZATION",
        ),
        ("reset session authorization", "RESET SESSION AUTHORIZATION"),
        (
            "set session characteristics as transaction read only",
            "SET SESSION CHARACTERISTICS",
        ),
        ("set session search_path = x", "SET SESSION"),
        ("set transaction read write", "SET TRANSACTION"),
        ("set local transaction read write", "SET TRANSACTION"),
        ("reset transaction_isolation", "RESET TRANSACTION"),
    ] {
        match refused(q) {
            InputError::StatementNotAllowed { keyword, reason } => {
                assert_eq!(keyword, expected, "{q}");
                assert!(reason.len() > 10, "{q}");
            }
            other => panic!("{q}: {other}"),
        }
    }
}

#[test]
fn only_reads_with_known_calls_are_stateless() {
    for q in [
        "select 1",
        "select * from artists where id = :id",
        "select count(*), lower(name) from t group by rollup (a, b), c order by (name)",
        "select a::int, cast(b as numeric(8,2)), date '2020-01-01', interval '1 day', c::int[]",
        "select pg_catalog.lower(a), x::pg_catalog.text, 1::double precision",
        "select * from (values (1), (2)) as v(a) join (select 2) w on (true) where a in (1) and not (a = any (:b))",
        "with recursive n(i) as (select 1 union all (select i from n)) select sum(i) filter (where i > 1) over (partition by (i)) from n",
        "with a as materialized (select 1), b as not materialized (select 2) select exists (table a)",
        "select array(select 1), row(1, 2), coalesce(a, 'x'), extract(year from b), substring(a from 2 for 3)",
        "select 'a' 'b', E'x', a like 'x%' escape '!', now() at time zone 'UTC', timestamp with time zone '2020-01-01'",
        "select percentile_cont(0.5) within group (order by a) from t group by grouping sets ((a), (b))",
        "explain select 1",
        "show all",
        "select a.\"b\" from lateral (select 1) as a(\"b\")",
        "select x from t left join (u cross join v) on a = b order by 1 limit (1) offset (2)",
        "select cast(:a as text) as \"label\", (:b)",
    ] {
        assert_eq!(read(q).trust(), Trust::Stateless, "{q}");
    }
    for q in [
        "select set_config('role', 'x', false)",
        "select Set_Config('role', 'x', false)",
        "select pg_catalog.set_config('role', 'x', false)",
        "select pg_advisory_lock(1)",
        "select nextval('s')",
        "select setseed(0)",
        "select my_function()",
        "select \"lower\"(a)",
        "select public.lower(a)",
        "select lower . lower (a)",
        "select a.b.lower(a)",
        "select 1::my_domain",
        "select 1::public.text",
        "select 1::text.my_domain",
        "select 1::\"text\"",
        "select cast(1 as my_domain)",
        "select cast((select 1) as my_domain)",
        "select my_domain '1'",
        "select public.date '1'",
        "select \"date\" '1'",
        "select 1 operator(public.+) 2",
        "select over(1)",
        "select filter(1), join(1)",
        "select by(1)",
        "select my_function /* x */ -- y\n (1)",
        "select query_to_xml('select f()', true, true, '')",
        "select 1 into t",
        "with a as (insert into t values (1)) select 1",
        "insert into t values (1)",
        "create table t (a int)",
        "do $$begin end$$",
        "explain analyze insert into t values (1)",
        "explain insert into t values (f())",
        "select U&\"\\006c\"(1)",
        "select 1 union select my_function()",
    ] {
        assert_eq!(read(q).trust(), Trust::Stateful, "{q}");
    }
}

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
    let letters = |index: usize| bound.formats[index].as_ref().map(|format| &*format.letters);
    assert_eq!((letters(0), letters(1)), (Some("Y-m-d"), None));
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
        ("int4", Trust::Stateless),
        ("int[]", Trust::Stateless),
        ("_TEXT", Trust::Stateless),
        ("timestamp with time zone", Trust::Stateless),
        ("pg_catalog.date", Trust::Stateless),
        ("my_domain", Trust::Stateful),
        ("public.date", Trust::Stateful),
        ("\"date\"", Trust::Stateful),
    ] {
        let bound = statement.bind(&params, &[("a", hint)], NONE).unwrap();
        assert_eq!(bound.trust(), trust, "{hint}");
    }
}

/// Pieces from which interesting texts are made.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "'", "''", "\"", "$$", "$a$", "$1", "E'", "U&'", "U&\"", "B'", "\\", "/*", "*/", "--",
        "\n", ":", "::", ":=", ":a", ":b", "[", "]", "(", ")", ";", "%2B", "%", "é", "a", "1", ".",
        " ", "select", "begin", "atomic", "end", "case", "create", "cast(", " as ", "\0", "+", "?",
    ]);
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

/// A piece of a statement and what becomes of it.
fn segment() -> impl Strategy<Value = (&'static str, &'static str)> {
    let same = |text| (text, text);
    let segments = [":a", ":b", ":long_name", ":_1"].map(|name| (name, ""));
    let inert = [
        "'it''s :a'",
        "':a\\'",
        "E'\\':a'",
        "E'a''\\\\'",
        "e'a'\n'\\':a'",
        "U&'\\:a'",
        "B'1'",
        "x':a'",
        "$$:a$$",
        "$q$ :a $$ $q$",
        "\"x:a\"",
        "\"x\"\"':a\"",
        "/* :a ' */",
        "/* /* :a */ \" */",
        "-- :a '\n",
        "--\r",
        "x::int",
        "f(y := 1)",
        "a$b",
        "(",
        ")",
        "x[1:n]",
        "x[a :b]",
        "%2",
        "%2b",
        "'%2B'",
        "1.5e-3",
        ".5",
        "@>",
        "<=",
        "é",
        "\t",
        "?|",
        "$",
        "case",
        "end",
    ];
    let segments = segments.into_iter().chain(inert.map(same));
    prop::sample::select(
        segments
            .chain([("%2B", "+"), ("a%2Bb", "a+b"), ("%%2B", "%+")])
            .collect::<Vec<_>>(),
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn no_text_makes_the_reader_panic(q in pieces()) {
        let _ = Statement::parse(&q);
    }

    #[test]
    fn no_unicode_makes_the_reader_panic(q in "\\PC*") {
        let _ = Statement::parse(&q);
    }

    #[test]
    fn segments_are_read_each_by_its_own_rule(segments in prop::collection::vec(segment(), 1..30)) {
        let mut names: Vec<&str> = Vec::new();
        let (mut q, mut expected) = ("select".to_owned(), "select".to_owned());
        for (text, rewritten) in segments {
            // A comma, as a string may go on behind white space.
            q.push_str(" , ");
            q.push_str(text);
            expected.push_str(" , ");
            if let Some(name) = text.strip_prefix(':') {
                let known = names.iter().position(|known| *known == name);
                let number = known.unwrap_or(names.len());
                if known.is_none() {
                    names.push(name);
                }
                expected.push('$');
                expected.push_str(&(number + 1).to_string());
            } else {
                expected.push_str(rewritten);
            }
        }
        let statement = read(&q);
        prop_assert_eq!(statement.text(), expected);
        prop_assert_eq!(statement.placeholders(), names);
        prop_assert_eq!(statement.kind(), Kind::Read);
    }

    #[test]
    fn strings_are_never_changed(inner in "[^'\0]*", name in "[a-z]{1,5}") {
        let quoted = format!("'{inner}'");
        let statement = read(&format!("select {quoted}, :{name}, \"{}\"", "x:y"));
        prop_assert_eq!(statement.text(), format!("select {quoted}, $1, \"x:y\""));
    }

    #[test]
    fn every_position_keeps_its_text(words in prop::collection::vec(prop::sample::select(vec![":a", ":bcd", "%2B", "x", "'é'", ","]), 1..20)) {
        let q = format!("select {} END_OF_TEXT", words.join(" "));
        let statement = read(&q);
        let at = |text: &str| u32::try_from(text.chars().count() - "END_OF_TEXT".len() + 1).unwrap();
        prop_assert_eq!(statement.caller_position(at(statement.text())), at(&q));
    }
}
